//! Plain data of an endpoint: slots of connections, and counters.

use std::ops::AddAssign;

/// Identifier of a connection within its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// Reason why a datagram that belongs to no connection was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// The header cannot be read, or its ids have a length that no version of ours uses.
    Malformed,
    /// The version is unknown, and there is no server to say so, or the datagram is too small for an
    /// answer.
    UnknownVersion,
    /// No connection has its id, and no stateless reset was due.
    UnknownConnection,
    /// The datagram belongs to a ClientHello and adds nothing to it: it is not authentic, repeats
    /// what is known, or is too small.
    UselessHello,
    /// The datagram came before its connection exists, and is not kept.
    TooEarly,
    /// Too many clients wait, or too many answers.
    Overload,
    /// The source cannot be answered: its port is 0, or its address is not that of a single host.
    ImpossibleSource,
}

/// Numbers of dropped datagrams that belong to no connection, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatagramDrops {
    /// Those of [`DropReason::Malformed`].
    pub malformed: u64,
    /// Those of [`DropReason::UnknownVersion`].
    pub unknown_version: u64,
    /// Those of [`DropReason::UnknownConnection`].
    pub unknown_connection: u64,
    /// Those of [`DropReason::UselessHello`].
    pub useless_hello: u64,
    /// Those of [`DropReason::TooEarly`].
    pub too_early: u64,
    /// Those of [`DropReason::Overload`].
    pub overload: u64,
    /// Those of [`DropReason::ImpossibleSource`].
    pub impossible_source: u64,
}

impl DatagramDrops {
    /// Counts a datagram.
    pub const fn add(&mut self, reason: DropReason) {
        match reason {
            DropReason::Malformed => self.malformed += 1,
            DropReason::UnknownVersion => self.unknown_version += 1,
            DropReason::UnknownConnection => self.unknown_connection += 1,
            DropReason::UselessHello => self.useless_hello += 1,
            DropReason::TooEarly => self.too_early += 1,
            DropReason::Overload => self.overload += 1,
            DropReason::ImpossibleSource => self.impossible_source += 1,
        }
    }

    /// Returns each number with the name of its reason.
    pub const fn by_reason(&self) -> [(&'static str, u64); 7] {
        [
            ("malformed", self.malformed),
            ("unknown_version", self.unknown_version),
            ("unknown_connection", self.unknown_connection),
            ("useless_hello", self.useless_hello),
            ("too_early", self.too_early),
            ("overload", self.overload),
            ("impossible_source", self.impossible_source),
        ]
    }
}

impl AddAssign for DatagramDrops {
    fn add_assign(&mut self, other: Self) {
        self.malformed += other.malformed;
        self.unknown_version += other.unknown_version;
        self.unknown_connection += other.unknown_connection;
        self.useless_hello += other.useless_hello;
        self.too_early += other.too_early;
        self.overload += other.overload;
        self.impossible_source += other.impossible_source;
    }
}

/// Counters of one worker. Bytes are UDP payload bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointCounters {
    /// Useless datagrams that belonged to no connection.
    pub datagrams_dropped: u64,
    /// The same datagrams by reason.
    pub drops: DatagramDrops,
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
