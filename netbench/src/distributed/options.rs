//! Settings of an agent.

use std::time::Duration;

use super::token::Token;
use crate::machine::Machine;

/// Settings of an agent.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) token: Option<Token>,
    /// Port on which server processes listen; 0 for any.
    pub(super) data_port: u16,
    /// Maximum number of controllers at once.
    pub(super) sessions: usize,
    /// Number of clients that share a server process.
    pub(super) fleet: u32,
    /// Maximum time that the first client of a fleet waits for the last.
    pub(super) wait: Duration,
    /// Maximum silence of a controller.
    pub(super) silence: Duration,
    /// The only scenario that is served.
    pub(super) scenario_id: Option<String>,
    /// Number of this server in its scenario.
    pub(super) server_id: Option<usize>,
    pub(super) machine: Machine,
}
