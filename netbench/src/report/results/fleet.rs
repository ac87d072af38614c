//! Identity of a client in a fleet.

use serde::{Deserialize, Serialize};

/// Clients that share server processes and measure at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Fleet {
    /// Number of clients.
    pub(crate) size: u32,
    /// Number of this client, counted from 0.
    pub(crate) client: u32,
}

impl Default for Fleet {
    fn default() -> Self {
        Self { size: 1, client: 0 }
    }
}
