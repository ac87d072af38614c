//! What a controller and an agent say to each other before the engine's messages begin.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::drivers::Certificates;
use crate::engine::ServerSpec;
use crate::fleet::Fleet;
use crate::machine::Machine;

/// Changes with every change of what is said, also of the engine's messages.
pub(super) const PROTOCOL: u32 = 1;

/// The longest line before an agent knows who it talks to.
pub(super) const MAX_GREETING: usize = 4 << 10;

/// The longest line: a scenario with its certificates, or a report.
pub(super) const MAX_LINE: usize = 8 << 20;

/// The agent's first line. Older and newer versions understand it too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Welcome {
    pub(super) netbench: String,
    pub(super) protocol: u32,
    /// To be answered with a proof of the token; `None`: there is no token.
    #[serde(default)]
    pub(super) challenge: Option<String>,
}

/// The controller's first line. Older and newer versions understand the first two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) netbench: String,
    pub(super) protocol: u32,
    #[serde(default)]
    pub(super) proof: Option<String>,
    /// Id of the scenario as it was written, before the values of a cell were put in.
    #[serde(default)]
    pub(super) scenario_id: String,
    /// Which of the scenario's servers the agent is to this controller.
    #[serde(default)]
    pub(super) server: usize,
    /// Number of clients that share the server process, and which of them this is.
    #[serde(default)]
    pub(super) fleet: Fleet,
    /// Counts the server processes that the controller has asked this agent for: the clients of a
    /// fleet meet in the same one.
    #[serde(default)]
    pub(super) round: u64,
}

/// Says that the controller may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Accepted;

/// Server process that the controller wants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) spec: ServerSpec,
    /// Certificates that the clients need: those of a fleet all take the first one's.
    pub(super) certificates: Certificates,
}

/// Says that the server process listens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Listening {
    /// As the agent sees it. The controller takes the port, and the host it has reached the agent
    /// at: there may be address translation between them.
    pub(super) address: SocketAddr,
    /// Certificates that the clients need; the first client of a fleet has brought them.
    pub(super) certificates: Certificates,
    pub(super) machine: Machine,
}

impl Welcome {
    pub(super) fn new(challenge: Option<String>) -> Self {
        Self {
            netbench: version(),
            protocol: PROTOCOL,
            challenge,
        }
    }

    /// Says why the two cannot work together.
    pub(super) fn check(&self) -> Result<(), String> {
        check("the agent", &self.netbench, self.protocol)
    }
}

impl Hello {
    /// Says why the two cannot work together.
    pub(super) fn check(&self) -> Result<(), String> {
        check("the client", &self.netbench, self.protocol)
    }
}

pub(super) fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

fn check(who: &str, netbench: &str, protocol: u32) -> Result<(), String> {
    let ours = version();
    if netbench == ours && protocol == PROTOCOL {
        return Ok(());
    }
    let theirs: String = netbench
        .chars()
        .filter(|c| !c.is_control())
        .take(40)
        .collect();
    Err(format!(
        "{who} is netbench {theirs} with protocol {protocol}, this is netbench {ours} with \
         protocol {PROTOCOL}: install the same on both hosts"
    ))
}

#[cfg(test)]
mod tests {
    use super::{Hello, Welcome};

    #[test]
    fn other_versions_are_told_apart_whatever_else_they_say() {
        let newer = r#"{"netbench":"9.9.9","protocol":7,"unheard_of":[1]}"#;
        let welcome: Welcome = serde_json::from_str(newer).unwrap();
        let refused = welcome.check().unwrap_err();
        assert!(
            refused.contains("the agent is netbench 9.9.9 with protocol 7"),
            "{refused}"
        );
        let hello: Hello = serde_json::from_str(newer).unwrap();
        assert!(
            hello
                .check()
                .unwrap_err()
                .contains("the client is netbench 9.9.9")
        );
        assert_eq!(Welcome::new(None).check(), Ok(()));
    }
}
