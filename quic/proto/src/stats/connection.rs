//! Counters of a connection, and measurements of its path.

use std::time::{Duration, Instant};

use super::declare::{by_label, counters};
use crate::wire::{frame::EcnCounts, udp::EcnState};

counters! {
    /// Counters of a connection. Bytes are UDP payload bytes.
    pub struct ConnectionStats {
        /// Datagrams sent.
        datagrams_sent: u64;
        /// Bytes sent.
        bytes_sent: u64;
        /// Datagrams received.
        datagrams_received: u64;
        /// Bytes received.
        bytes_received: u64;
        /// Datagrams, or packets in them, that were dropped: undecryptable, duplicate, malformed.
        packets_dropped: u64;
        /// Datagrams and packets dropped, by reason.
        drops: PacketDrops => ["hybriq_packets_dropped_total" by reason];
        /// Packets sent.
        packets_sent: u64 => ["hybriq_packets_sent_total"];
        /// Packets received and accepted.
        packets_received: u64 => ["hybriq_packets_received_total"];
        /// Packets declared lost.
        packets_lost: u64 => ["hybriq_packets_lost_total"];
        /// Packets declared lost that were acknowledged later.
        spurious_losses: u64 => ["hybriq_spurious_losses_total"];
        /// Episodes of congestion shown by losses or marks; those of one round trip count once.
        congestion_events: u64 => ["hybriq_congestion_events_total"];
        /// Probe timeouts.
        ptos: u64 => ["hybriq_probe_timeouts_total"];
        /// Datagrams sent to find out whether the path carries their size.
        mtu_probes_sent: u64 => ["hybriq_mtu_probes_sent_total"];
        /// MTU probes lost, which do not count as packets lost.
        mtu_probes_lost: u64 => ["hybriq_mtu_probes_lost_total"];
        /// Times that the path stopped carrying a datagram size that it had carried before.
        mtu_black_holes: u64 => ["hybriq_mtu_black_holes_total"];
        /// Packets sent with an ACK frame.
        acks_sent: u64 => ["hybriq_acks_sent_total"];
        /// ACK frames received.
        acks_received: u64 => ["hybriq_acks_received_total"];
        /// Packets sent, by ECN mark; no sender sets CE.
        ecn_sent: EcnCounts => ["hybriq_ecn_sent_total" by mark];
        /// Packets sent, by the mark with which the peer received them.
        ecn_echoed: EcnCounts => ["hybriq_ecn_echoed_total" by mark];
        /// Packets received, by ECN mark.
        ecn_received: EcnCounts => ["hybriq_ecn_received_total" by mark];
        /// Key updates of 1-RTT packets, by either end.
        key_updates: u64 => ["hybriq_key_updates_total"];
        /// Smoothed round-trip time.
        rtt: Duration;
        /// Congestion window in bytes.
        congestion_window: u64;
        /// Bytes sent that are neither acknowledged nor lost.
        bytes_in_flight: u64;
        /// Counters of DATAGRAM frames (RFC 9221).
        datagram_frames: DatagramStats => [each];
    }
}

by_label! {
    /// Numbers of dropped datagrams and packets of a connection, by the reason that
    /// [`DropTrigger`](crate::events::DropTrigger) explains.
    pub struct PacketDrops: u32 {
        /// Malformed, or not allowed in the state of the connection.
        invalid = "invalid";
        /// Packets of another version, or of a kind that no longer changes anything.
        unsupported = "unsupported";
        /// From another address, or with an id of no connection.
        connection_unknown = "connection_unknown";
        /// Without keys, and with no room to keep them.
        key_unavailable = "key_unavailable";
        /// Not authentic.
        decryption_failure = "decryption_failure";
        /// Already received.
        duplicate = "duplicate";
    }
}

counters! {
    /// Counters of the DATAGRAM frames of a connection (RFC 9221): each was one call of
    /// `send_datagram`.
    pub struct DatagramStats {
        /// DATAGRAM frames sent.
        sent: u64 => ["hybriq_datagram_frames_sent_total"];
        /// DATAGRAM frames acknowledged: the peer's transport received them, though it may have dropped
        /// them for lack of room.
        acknowledged: u64 => ["hybriq_datagram_frames_acknowledged_total"];
        /// DATAGRAM frames sent in packets that were declared lost. They are not sent again; a few may have
        /// arrived anyway.
        lost: u64 => ["hybriq_datagram_frames_lost_total" by reason "network"];
        /// Datagrams never sent: newer ones replaced them in the queue, the path became too small for them, or the
        /// connection ended.
        dropped_unsent: u64 => ["hybriq_datagram_frames_lost_total" by reason "unsent"];
        /// Datagrams dropped unsent because their deadline had passed.
        expired: u64 => ["hybriq_datagram_frames_lost_total" by reason "expired"];
        /// DATAGRAM frames received.
        received: u64 => ["hybriq_datagram_frames_received_total"];
        /// DATAGRAM frames received and dropped because the application did not read them in time.
        dropped_unread: u64 => ["hybriq_datagram_frames_lost_total" by reason "unread"];
    }
}

by_label! {
    /// Bytes of memory that a connection holds, by kind. Estimates: they leave out what the TLS
    /// library and the allocator add.
    pub struct MemoryHeld: u64 {
        /// The connection itself.
        connection = "connections";
        /// Tables of streams that are not over.
        streams = "streams";
        /// Stream data that the application has not read, gaps included.
        received = "received";
        /// Stream data that is not sent, or not acknowledged.
        sent = "sent";
        /// Datagrams that wait to be sent or read.
        datagrams = "datagrams";
        /// Records of packets in flight.
        packets = "packets";
    }
}

by_label! {
    /// Entries of the tables of a connection that its peer can make grow: the current numbers, or
    /// their limits.
    pub struct Tables: usize {
        /// Paths, the one in use included.
        paths = "paths";
        /// Our connection ids that the peer may use.
        local_cids = "local connection ids";
        /// Ranges of received packet numbers, in the space with the most.
        ack_ranges = "ranges of received packets";
        /// Packets sent that are neither acknowledged nor lost, in all spaces.
        sent_packets = "packets sent";
        /// Packets declared lost that may still be acknowledged, in all spaces.
        lost_packets = "packets lost";
        /// Sending and receiving halves of streams that are not over.
        streams = "halves of streams";
        /// Separate pieces in which received stream data is held.
        stream_pieces = "pieces of streams";
    }
}

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
    /// Latest measured delivery rate, in bytes per second. Lower than what the path can carry if the application had
    /// less to send.
    pub delivery_rate: Option<u64>,
    /// Time of that measurement: its age is `at.elapsed()`.
    pub delivery_rate_at: Option<Instant>,
    /// Rate in bytes per second that the congestion controller expects to get through, for applications that choose
    /// how much they send, such as encoders of video: the bandwidth that BBR has measured, or the window of the
    /// others per round trip.
    pub target_rate: u64,
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
