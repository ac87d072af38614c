//! Counters of a connection, and measurements of its path.

use std::{ops::AddAssign, time::Duration};

use crate::{congestion::Phase, ecn::EcnState, frame::EcnCounts};

/// Counters of a connection. Bytes are UDP payload bytes.
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
    /// The same by reason.
    pub drops: PacketDrops,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets received and accepted.
    pub packets_received: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Packets declared lost that were acknowledged later.
    pub spurious_losses: u64,
    /// Episodes of congestion shown by losses or marks; those of one round trip count once.
    pub congestion_events: u64,
    /// Probe timeouts.
    pub ptos: u64,
    /// Datagrams sent to find out whether the path carries their size.
    pub mtu_probes_sent: u64,
    /// MTU probes lost, which do not count as packets lost.
    pub mtu_probes_lost: u64,
    /// Times that the path stopped carrying a size that it had carried.
    pub mtu_black_holes: u64,
    /// Packets sent with an ACK frame.
    pub acks_sent: u64,
    /// ACK frames received.
    pub acks_received: u64,
    /// Packets sent, by ECN mark; no sender sets CE.
    pub ecn_sent: EcnCounts,
    /// Packets sent, by the mark with which the peer received them.
    pub ecn_echoed: EcnCounts,
    /// Packets received, by ECN mark.
    pub ecn_received: EcnCounts,
    /// Key updates of 1-RTT packets, by either end.
    pub key_updates: u64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Congestion window in bytes.
    pub congestion_window: u64,
    /// Bytes sent that are neither acknowledged nor lost.
    pub bytes_in_flight: u64,
    /// Counters of DATAGRAM frames (RFC 9221).
    pub datagram_frames: DatagramStats,
}

/// Numbers of dropped datagrams and packets of a connection, by the reason that
/// [`DropTrigger`](crate::events::DropTrigger) explains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketDrops {
    /// Malformed, or not allowed in the state of the connection.
    pub invalid: u32,
    /// Packets of another version, or of a kind that changes nothing any more.
    pub unsupported: u32,
    /// From another address, or with an id of no connection.
    pub connection_unknown: u32,
    /// Without keys, and with no room to keep them.
    pub key_unavailable: u32,
    /// Not authentic.
    pub decryption_failure: u32,
    /// Received before.
    pub duplicate: u32,
}

impl PacketDrops {
    /// Returns each number with the name of its reason.
    pub const fn by_reason(&self) -> [(&'static str, u32); 6] {
        [
            ("invalid", self.invalid),
            ("unsupported", self.unsupported),
            ("connection_unknown", self.connection_unknown),
            ("key_unavailable", self.key_unavailable),
            ("decryption_failure", self.decryption_failure),
            ("duplicate", self.duplicate),
        ]
    }
}

impl AddAssign for PacketDrops {
    fn add_assign(&mut self, other: Self) {
        for (count, more) in [
            (&mut self.invalid, other.invalid),
            (&mut self.unsupported, other.unsupported),
            (&mut self.connection_unknown, other.connection_unknown),
            (&mut self.key_unavailable, other.key_unavailable),
            (&mut self.decryption_failure, other.decryption_failure),
            (&mut self.duplicate, other.duplicate),
        ] {
            *count = count.saturating_add(more);
        }
    }
}

/// Counters of the DATAGRAM frames of a connection (RFC 9221): each was one call of
/// `send_datagram`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatagramStats {
    /// Frames sent.
    pub sent: u64,
    /// Frames acknowledged: the peer's transport received them, though it may have dropped them for
    /// lack of room.
    pub acknowledged: u64,
    /// Frames sent in packets that were declared lost. They are not sent again; a few may have
    /// arrived anyway.
    pub lost: u64,
    /// Datagrams never sent: newer ones replaced them in the queue, the path became too small for
    /// them, or the connection ended.
    pub dropped_unsent: u64,
    /// Frames received.
    pub received: u64,
    /// Frames received and dropped because the application did not read them in time.
    pub dropped_unread: u64,
}

/// Measurements of the path that a connection uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathStats {
    /// Latest sample of the round trip; a guess, like the others, until there is one.
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
    /// Number of packets that may overtake one before it counts as lost; it grows if the path
    /// reorders.
    pub packet_threshold: u64,
    /// Age at which a packet counts as lost if a later one arrived; it grows if the path reorders.
    pub time_threshold: Duration,
    /// Probe timeouts since the last progress.
    pub pto_count: u32,
    /// Bytes of a full datagram.
    pub datagram_size: u16,
    /// State of ECN validation on the path.
    pub ecn: EcnState,
}

/// Bytes of memory that a connection holds, by what holds it. Estimates: they leave out what the TLS
/// library and the allocator add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryHeld {
    /// The connection itself.
    pub connection: u64,
    /// Tables of streams that are not over.
    pub streams: u64,
    /// Stream data that the application has not read, gaps included.
    pub received: u64,
    /// Stream data that is not sent, or not acknowledged.
    pub sent: u64,
    /// Datagrams that wait to be sent or read.
    pub datagrams: u64,
    /// Records of packets in flight.
    pub packets: u64,
}

impl MemoryHeld {
    /// Returns each number with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("connections", self.connection),
            ("streams", self.streams),
            ("received", self.received),
            ("sent", self.sent),
            ("datagrams", self.datagrams),
            ("packets", self.packets),
        ]
        .into_iter()
    }
}

impl AddAssign for MemoryHeld {
    fn add_assign(&mut self, other: Self) {
        self.connection += other.connection;
        self.streams += other.streams;
        self.received += other.received;
        self.sent += other.sent;
        self.datagrams += other.datagrams;
        self.packets += other.packets;
    }
}

/// Entries of the tables of a connection that grow with what its peer does: the current numbers, or
/// their bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tables {
    /// Paths, the one in use included.
    pub paths: usize,
    /// Our connection ids that the peer may use.
    pub local_cids: usize,
    /// Ranges of received packet numbers, in the space that has most.
    pub ack_ranges: usize,
    /// Packets sent that are neither acknowledged nor lost, in all spaces.
    pub sent_packets: usize,
    /// Packets declared lost that may still be acknowledged, in all spaces.
    pub lost_packets: usize,
    /// Sending and receiving halves of streams that are not over.
    pub streams: usize,
    /// Separate pieces in which received stream data is held.
    pub stream_pieces: usize,
}

impl Tables {
    /// Returns each number with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, usize)> {
        [
            ("paths", self.paths),
            ("local connection ids", self.local_cids),
            ("ranges of received packets", self.ack_ranges),
            ("packets sent", self.sent_packets),
            ("packets lost", self.lost_packets),
            ("halves of streams", self.streams),
            ("pieces of streams", self.stream_pieces),
        ]
        .into_iter()
    }
}
