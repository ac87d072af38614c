//! Plain data of an endpoint: slots of connections, and counters.

/// Identifier of a connection within its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// Counters of one worker. Bytes are UDP payload bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Useless datagrams that belonged to no connection.
    pub datagrams_dropped: u64,
    /// Current number of partial ClientHellos.
    pub partial_hellos: u64,
    /// Current number of clients whose 0-RTT packets wait for a connection.
    pub early_clients: u64,
    /// Current number of complete ClientHellos waiting for a decision.
    pub waiting_incoming: u64,
    /// Current number of connections.
    pub connections: u64,
    /// Connections refused before any public-key work because the client offered no post-quantum
    /// group.
    pub key_exchange_refused: u64,
    /// Version Negotiation packets sent.
    pub version_negotiations: u64,
    /// Current number of accepted connections whose handshake is not complete.
    pub handshaking: u64,
    /// 1 while adaptive address validation sends Retry packets, else 0.
    pub retrying: u64,
    /// Retry packets sent.
    pub retries_sent: u64,
    /// Clients that proved their address by a token.
    pub addresses_validated: u64,
    /// Tokens rejected because they were forged, expired, or issued for another address.
    pub tokens_rejected: u64,
    /// Tokens rejected because they were used before.
    pub tokens_replayed: u64,
    /// Stateless resets sent.
    pub stateless_resets: u64,
}
