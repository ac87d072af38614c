//! Messages between a controller and an agent before those of the engine.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::drivers::Certificates;
use crate::engine::ServerSpec;
use crate::report::results::Fleet;
use crate::system::machine::Machine;

/// Version, which changes with every change of these messages or the engine's.
pub(crate) const PROTOCOL: u32 = 2;

/// Maximum length of a line before the agent knows its peer.
pub(crate) const MAX_GREETING: usize = 4 << 10;

/// Maximum length of a line: a scenario with its certificates, or a report.
pub(crate) const MAX_LINE: usize = 8 << 20;

/// First line of the agent. Older and newer versions understand it too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Welcome {
    pub(crate) netbench: String,
    pub(crate) protocol: u32,
    /// Number that the agent never used before; `None` if it asks for no token.
    #[serde(default)]
    pub(crate) nonce: Option<String>,
}

/// First line of the controller. Older and newer versions understand its first two fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) netbench: String,
    pub(crate) protocol: u32,
    /// Number that the controller never used before; `None` without a token. Its next line is the proof of
    /// the token.
    #[serde(default)]
    pub(crate) nonce: Option<String>,
    /// Id of the scenario before the values of a cell were inserted.
    #[serde(default)]
    pub(crate) scenario_id: String,
    /// Number of the scenario's server that the agent plays for this controller.
    #[serde(default)]
    pub(crate) server: usize,
    /// Number of clients that share the server process, and the number of this one.
    #[serde(default)]
    pub(crate) fleet: Fleet,
    /// Number of server processes that the controller has requested from this agent. The clients of
    /// a fleet meet in the same one.
    #[serde(default)]
    pub(crate) round: u64,
}

/// Permission for the controller to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Accepted;

/// Server process that the controller wants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) spec: ServerSpec,
    /// Certificates for the clients. All clients of a fleet use those of the first.
    pub(crate) certificates: Certificates,
}

/// Report that the server process listens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Listening {
    /// Address as the agent sees it. The controller uses the port, and the host at which it reached
    /// the agent, because of address translation.
    pub(crate) address: SocketAddr,
    /// Certificates for the clients, supplied by the first client of a fleet.
    pub(crate) certificates: Certificates,
    pub(crate) machine: Machine,
}

impl Welcome {
    pub(crate) fn new(nonce: Option<String>) -> Self {
        Self {
            netbench: version(),
            protocol: PROTOCOL,
            nonce,
        }
    }

    /// Returns an error that says why the two cannot work together.
    pub(crate) fn check(&self) -> Result<(), String> {
        check("the agent", &self.netbench, self.protocol)
    }
}

impl Hello {
    /// Returns an error that says why the two cannot work together.
    pub(crate) fn check(&self) -> Result<(), String> {
        check("the client", &self.netbench, self.protocol)
    }
}

pub(crate) fn version() -> String {
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
