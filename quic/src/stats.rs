//! Counters of a connection.

use std::time::Duration;

use crate::proto::recovery::EcnState;

/// What a connection did so far. Bytes are UDP payload bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Datagrams, or packets in them, that were dropped: undecryptable, duplicate, malformed.
    pub packets_dropped: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets received and accepted.
    pub packets_received: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Of those, packets that were acknowledged later.
    pub spurious_losses: u64,
    /// Probe timeouts.
    pub ptos: u64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Congestion window in bytes.
    pub congestion_window: u64,
    /// Bytes sent and neither acknowledged nor lost.
    pub bytes_in_flight: u64,
    /// How many packets may overtake one before it counts as lost; it grows where the path reorders.
    pub packet_threshold: u64,
    /// Whether the path carries ECN marks.
    pub ecn: EcnState,
    /// Packets that the peer received with a mark of congestion.
    pub ecn_ce: u64,
}
