//! Plain data of an endpoint: names of connections, counters.

/// Name of a connection within its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// Counters of one worker. Bytes are UDP payload bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Datagrams that belonged to no connection and were useless.
    pub datagrams_dropped: u64,
    /// Partial ClientHellos held now.
    pub partial_hellos: u64,
    /// Complete ClientHellos that wait for a decision now.
    pub waiting_incoming: u64,
    /// Connections now.
    pub connections: u64,
    /// Connections refused before any public-key work because the client offered no
    /// post-quantum group.
    pub key_exchange_refused: u64,
    /// Version Negotiation packets sent.
    pub version_negotiations: u64,
    /// Accepted connections that have not completed their handshake now.
    pub handshaking: u64,
    /// 1 while adaptive address validation sends clients away.
    pub retrying: u64,
    /// Retry packets sent.
    pub retries_sent: u64,
    /// Clients that proved their address by a token.
    pub addresses_validated: u64,
    /// Tokens of ours that were forged, expired, or meant for another address.
    pub tokens_rejected: u64,
    /// Tokens that were used before.
    pub tokens_replayed: u64,
    /// Stateless resets sent.
    pub stateless_resets: u64,
}
