//! Limits of an endpoint on new clients.

/// Limits of an endpoint on new clients.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// Largest number of simultaneous connections.
    pub(crate) connections: Option<usize>,
    /// Largest number of clients that have not completed their handshake.
    pub(crate) handshakes: Option<usize>,
    /// Largest rate of new connections from each source network.
    pub(crate) per_network: Option<NetworkRate>,
    /// Size of a network.
    pub(crate) prefixes: Prefixes,
}

/// Lengths of the prefixes that the addresses of one network share, in bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefixes {
    pub(crate) v4: u8,
    pub(crate) v6: u8,
}

impl Default for Prefixes {
    /// Returns the lengths that one customer typically has.
    fn default() -> Self {
        Self { v4: 24, v6: 56 }
    }
}

/// Rate of new connections from a network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NetworkRate {
    /// Connections per second.
    pub(crate) per_second: u32,
    /// Connections at once after a pause.
    pub(crate) burst: u32,
}
