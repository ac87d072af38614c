//! Limits of an endpoint on new clients.

/// Limits of an endpoint on new clients.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// Largest number of connections at once.
    pub(crate) connections: Option<usize>,
    /// Largest number of clients that have not completed their handshake.
    pub(crate) handshakes: Option<usize>,
    /// Largest rate of new connections of each source network.
    pub(crate) per_network: Option<NetworkRate>,
}

/// Rate of new connections of a network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NetworkRate {
    /// Connections in a second.
    pub(crate) per_second: u32,
    /// Connections at once after a silence.
    pub(crate) burst: u32,
}
