//! Barrier between the clients of a fleet: combines their messages for the one server process.
//!
//! ```text
//!            all joined        all said Measure        all said Stop
//!  Gathering ──────────► WarmUp ──────────────► Measuring ─────────► Over
//! ```
//! A client that leaves is no longer waited for.

use std::collections::BTreeMap;

use crate::engine::ToServer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Gathering,
    WarmUp,
    Measuring,
    Over,
}

/// Waits until all clients have sent the same message.
#[derive(Debug)]
pub(super) struct Barrier {
    size: u32,
    stage: Stage,
    /// Number of connections so far of each client that spoke in this stage.
    said: BTreeMap<u32, Option<u64>>,
    /// Number of connections of clients that left after they had spoken.
    left_connections: u64,
    left: Vec<u32>,
}

impl Barrier {
    pub(super) fn new(size: u32) -> Self {
        Self {
            size,
            stage: Stage::Gathering,
            said: BTreeMap::new(),
            left_connections: 0,
            left: Vec::new(),
        }
    }

    /// Returns true if all clients have joined.
    pub(super) fn join(&mut self, client: u32) -> Result<bool, String> {
        if self.stage != Stage::Gathering {
            return Err("the fleet has begun without this client".to_owned());
        }
        if self.said.contains_key(&client) {
            return Err(format!(
                "client {client} of the fleet is here already: give each client another number"
            ));
        }
        self.said.insert(client, None);
        let full = self.said.len() as u64 == u64::from(self.size);
        if full {
            self.stage = Stage::WarmUp;
        }
        Ok(full)
    }

    /// Returns the message for the server if this was the last client to speak.
    pub(super) fn say(&mut self, client: u32, said: &ToServer) -> Result<Option<ToServer>, String> {
        let connections = match (self.stage, said) {
            (Stage::WarmUp, ToServer::Measure { after })
            | (Stage::Measuring, ToServer::Stop { after }) => *after,
            _ => return Err("the client spoke out of turn".to_owned()),
        };
        match self.said.get_mut(&client) {
            Some(place @ None) => *place = Some(connections),
            _ => return Err("the client said the same twice".to_owned()),
        }
        Ok(self.advance())
    }

    /// Returns the message for the server if all others were waiting for this client.
    pub(super) fn leave(&mut self, client: u32) -> Option<ToServer> {
        let said = self.said.remove(&client)?;
        if matches!(self.stage, Stage::Gathering | Stage::Over) {
            return None;
        }
        self.left.push(client);
        self.left_connections = self.left_connections.saturating_add(said.unwrap_or(0));
        self.advance()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    pub(super) fn clients(&self) -> usize {
        self.said.len()
    }

    /// Returns the clients that left early.
    pub(super) fn left(&self) -> &[u32] {
        &self.left
    }

    fn advance(&mut self) -> Option<ToServer> {
        if self.said.is_empty() || self.said.values().any(Option::is_none) {
            return None;
        }
        let connections = self.said.values().flatten().copied();
        let after = connections.fold(self.left_connections, u64::saturating_add);
        self.said.values_mut().for_each(|said| *said = None);
        self.left_connections = 0;
        match self.stage {
            Stage::WarmUp => {
                self.stage = Stage::Measuring;
                Some(ToServer::Measure { after })
            }
            Stage::Measuring => {
                self.stage = Stage::Over;
                Some(ToServer::Stop { after })
            }
            Stage::Gathering | Stage::Over => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Barrier;
    use crate::engine::ToServer;

    fn measure(after: u64) -> ToServer {
        ToServer::Measure { after }
    }

    fn stop(after: u64) -> ToServer {
        ToServer::Stop { after }
    }

    fn of_two() -> Barrier {
        let mut barrier = Barrier::new(2);
        assert_eq!(barrier.join(1), Ok(false));
        assert_eq!(barrier.join(0), Ok(true));
        barrier
    }

    #[test]
    fn the_server_is_told_once_all_have_said_so_and_is_told_the_sum() {
        let mut barrier = of_two();
        assert!(barrier.say(0, &measure(3)).unwrap().is_none());
        let told = barrier.say(1, &measure(4)).unwrap();
        assert!(matches!(told, Some(ToServer::Measure { after: 7 })));
        assert!(barrier.say(1, &stop(100)).unwrap().is_none());
        let told = barrier.say(0, &stop(50)).unwrap();
        assert!(matches!(told, Some(ToServer::Stop { after: 150 })));
    }

    #[test]
    fn a_client_that_leaves_is_not_waited_for() {
        let mut barrier = of_two();
        assert!(barrier.say(0, &measure(3)).unwrap().is_none());
        assert!(matches!(
            barrier.leave(1),
            Some(ToServer::Measure { after: 3 })
        ));
        assert_eq!(barrier.left(), [1]);
        assert!(matches!(
            barrier.say(0, &stop(9)),
            Ok(Some(ToServer::Stop { after: 9 }))
        ));
        assert!(barrier.leave(0).is_none());
        assert!(barrier.is_empty());
    }

    #[test]
    fn what_a_client_said_before_it_left_still_counts() {
        let mut barrier = of_two();
        assert!(barrier.say(1, &measure(4)).unwrap().is_none());
        assert!(barrier.leave(1).is_none());
        let told = barrier.say(0, &measure(3)).unwrap();
        assert!(matches!(told, Some(ToServer::Measure { after: 7 })));
        // Only once: the server then starts to count again.
        let told = barrier.say(0, &stop(9)).unwrap();
        assert!(matches!(told, Some(ToServer::Stop { after: 9 })));
        assert_eq!(barrier.left(), [1]);
    }

    #[test]
    fn who_leaves_before_the_start_may_come_back() {
        let mut barrier = Barrier::new(2);
        assert_eq!(barrier.join(0), Ok(false));
        assert!(barrier.leave(0).is_none());
        assert_eq!(barrier.join(0), Ok(false));
        assert_eq!(barrier.join(1), Ok(true));
        assert!(barrier.left().is_empty());
    }

    #[test]
    fn nobody_speaks_twice_or_out_of_turn_or_under_another_number() {
        let mut barrier = Barrier::new(3);
        assert_eq!(barrier.join(0), Ok(false));
        assert!(barrier.join(0).unwrap_err().contains("client 0"));
        assert!(barrier.say(0, &measure(1)).is_err());
        let mut barrier = of_two();
        assert!(barrier.join(2).is_err());
        assert!(barrier.say(0, &stop(1)).is_err());
        assert!(barrier.say(7, &measure(1)).is_err());
        assert!(barrier.say(0, &measure(1)).is_ok());
        assert!(barrier.say(0, &measure(1)).is_err());
    }
}
