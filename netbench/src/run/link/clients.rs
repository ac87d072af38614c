//! Clients of the relay: a bounded table, with a socket towards the server for each.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::socket::Socket;

/// Silence after which a client makes room for another.
const IDLE: Duration = Duration::from_mins(1);

pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    /// Our address that the client knows.
    pub(crate) reply_from: Option<IpAddr>,
    /// Socket towards the server.
    pub(crate) socket: Socket,
    last_heard: Duration,
}

/// Table of clients. Their numbers are never reused.
pub(crate) struct Clients {
    server: SocketAddr,
    most: usize,
    by_address: HashMap<SocketAddr, u64>,
    by_number: BTreeMap<u64, Client>,
    next: u64,
}

impl Clients {
    pub(crate) fn new(server: SocketAddr, most: usize) -> Self {
        Self {
            server,
            most,
            by_address: HashMap::new(),
            by_number: BTreeMap::new(),
            next: 0,
        }
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Client> {
        self.by_number.get(&number)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Client)> {
        self.by_number
            .iter()
            .map(|(&number, client)| (number, client))
    }

    /// Returns the number of clients so far.
    pub(crate) fn seen(&self) -> u64 {
        self.next
    }

    /// Returns the number of a client, adding it if it is new; `None` if the table is full, or the
    /// system has no socket left.
    pub(crate) fn find_or_add(
        &mut self,
        now: Duration,
        address: SocketAddr,
        reply_from: Option<IpAddr>,
    ) -> Option<u64> {
        if let Some(&number) = self.by_address.get(&address) {
            self.by_number.get_mut(&number)?.last_heard = now;
            return Some(number);
        }
        if self.by_number.len() >= self.most && !self.forget_idle(now) {
            return None;
        }
        let client = Client {
            address,
            reply_from,
            socket: Socket::towards(self.server).ok()?,
            last_heard: now,
        };
        let number = self.next;
        self.next += 1;
        self.by_address.insert(address, number);
        self.by_number.insert(number, client);
        Some(number)
    }

    /// Gives every client a new socket, and returns the old ones.
    pub(crate) fn rebind(&mut self) -> io::Result<Vec<Socket>> {
        let server = self.server;
        self.by_number
            .values_mut()
            .map(|client| {
                Ok(std::mem::replace(
                    &mut client.socket,
                    Socket::towards(server)?,
                ))
            })
            .collect()
    }

    /// Removes an idle client if there is one.
    fn forget_idle(&mut self, now: Duration) -> bool {
        let idlest = self
            .by_number
            .iter()
            .min_by_key(|(_, client)| client.last_heard);
        let Some((&number, client)) = idlest else {
            return false;
        };
        if now.saturating_sub(client.last_heard) < IDLE {
            return false;
        }
        self.by_address.remove(&client.address);
        self.by_number.remove(&number).is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use super::{Clients, IDLE};

    #[test]
    fn the_table_is_bounded_and_only_the_silent_make_room() {
        let server = "127.0.0.1:9".parse().unwrap();
        let mut clients = Clients::new(server, 2);
        let from = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let start = Duration::ZERO;
        assert_eq!(clients.find_or_add(start, from(1), None), Some(0));
        assert_eq!(clients.find_or_add(start, from(2), None), Some(1));
        assert_eq!(clients.find_or_add(start, from(3), None), None);
        assert_eq!(clients.find_or_add(IDLE, from(1), None), Some(0));
        assert_eq!(clients.find_or_add(IDLE, from(3), None), Some(2));
        assert_eq!(clients.find_or_add(IDLE, from(2), None), None);
        assert!(clients.get(1).is_none());
        assert_eq!(clients.seen(), 3);
    }

    #[test]
    fn a_new_socket_has_another_port() {
        let mut clients = Clients::new("127.0.0.1:9".parse().unwrap(), 2);
        let client = SocketAddr::from(([127, 0, 0, 1], 1));
        let number = clients.find_or_add(Duration::ZERO, client, None).unwrap();
        let old = clients.rebind().unwrap().remove(0);
        let new = &clients.get(number).unwrap().socket;
        assert_ne!(old.address().unwrap(), new.address().unwrap());
    }
}
