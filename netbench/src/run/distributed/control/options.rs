//! Settings of an agent.

use std::time::Duration;

use super::token::Token;
use crate::system::machine::Machine;

/// Settings of an agent.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) token: Option<Token>,
    /// Port on which server processes listen; 0 for any.
    pub(crate) data_port: u16,
    /// Maximum number of controllers at once.
    pub(crate) sessions: usize,
    /// Number of clients that share a server process.
    pub(crate) fleet: u32,
    /// Maximum time that the first client of a fleet waits for the last.
    pub(crate) wait: Duration,
    /// Maximum silence of a controller.
    pub(crate) silence: Duration,
    /// The only scenario that is served.
    pub(crate) scenario_id: Option<String>,
    /// Number of this server in its scenario.
    pub(crate) server_id: Option<usize>,
    pub(crate) machine: Machine,
}
