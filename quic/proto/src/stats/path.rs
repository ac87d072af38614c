//! Measurements of a path.

use std::time::Duration;

use crate::wire::udp::EcnState;

/// Measurements of the path that a connection uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathStats {
    /// Latest sample of the round trip; like the others, a guess until there is a sample.
    pub latest_rtt: Duration,
    /// Smallest round trip.
    pub min_rtt: Duration,
    /// Moving average of the round trip (RFC 9002 §5.3).
    pub smoothed_rtt: Duration,
    /// Mean deviation of the round trip.
    pub rtt_variance: Duration,
    /// Bytes that may be in flight.
    pub congestion_window: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// Window at which slow start ends, if the controller has such a threshold and knows it.
    pub slow_start_threshold: Option<u64>,
    /// Name of the congestion controller.
    pub controller: &'static str,
    /// Phase of the congestion controller.
    pub phase: Phase,
    /// Latest measured delivery rate, in bytes per second.
    pub delivery_rate: Option<u64>,
    /// Pacing rate, in bytes per second.
    pub pacing_rate: Option<u64>,
    /// Number of packets that may overtake a packet before it counts as lost; it grows if the path
    /// reorders packets.
    pub packet_threshold: u64,
    /// Age at which a packet counts as lost if a later one arrived; it grows if the path reorders
    /// packets.
    pub time_threshold: Duration,
    /// Probe timeouts since the last progress.
    pub pto_count: u32,
    /// Bytes of a full datagram.
    pub datagram_size: u16,
    /// State of ECN validation on the path.
    pub ecn: EcnState,
}

/// Phase of a congestion controller.
///
/// Exhaustive: qlog names each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Searching for the capacity, fast (RFC 9002 §7.3.1).
    SlowStart,
    /// Responding to congestion (§7.3.2).
    Recovery,
    /// Growing slowly from the capacity that was found (§7.3.3).
    Avoidance,
}
