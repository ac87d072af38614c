//! Counters and measurements of a connection, in quinn's form.

use std::time::Duration;

use hybriq::stats as theirs;

/// UDP datagrams of one direction.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct UdpStats {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes of UDP payload.
    pub bytes: u64,
}

/// Frames of one direction, as far as hybriq counts them.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct FrameStats {
    /// ACK frames.
    pub acks: u64,
    /// DATAGRAM frames.
    pub datagram: u64,
}

/// Measurements of the path.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PathStats {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Smallest round-trip time; zero before the handshake is complete.
    pub min_rtt: Duration,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Episodes of congestion.
    pub congestion_events: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Probes for a larger datagram size sent.
    pub sent_plpmtud_probes: u64,
    /// Probes for a larger datagram size lost.
    pub lost_plpmtud_probes: u64,
    /// Times that the path stopped carrying a datagram size.
    pub black_holes_detected: u64,
    /// Size of datagrams now, in bytes of UDP payload; 0 before the handshake is complete.
    pub current_mtu: u16,
}

/// Counters and measurements of a connection.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Datagrams sent.
    pub udp_tx: UdpStats,
    /// Datagrams received.
    pub udp_rx: UdpStats,
    /// Frames sent.
    pub frame_tx: FrameStats,
    /// Frames received.
    pub frame_rx: FrameStats,
    /// The path.
    pub path: PathStats,
}

impl ConnectionStats {
    pub(crate) fn of(counted: &theirs::ConnectionStats, path: Option<&theirs::PathStats>) -> Self {
        Self {
            udp_tx: UdpStats {
                datagrams: counted.datagrams_sent,
                bytes: counted.bytes_sent,
            },
            udp_rx: UdpStats {
                datagrams: counted.datagrams_received,
                bytes: counted.bytes_received,
            },
            frame_tx: FrameStats {
                acks: counted.acks_sent,
                datagram: counted.datagram_frames.sent,
            },
            frame_rx: FrameStats {
                acks: counted.acks_received,
                datagram: counted.datagram_frames.received,
            },
            path: PathStats {
                rtt: counted.rtt,
                min_rtt: path.map(|it| it.min_rtt).unwrap_or_default(),
                cwnd: counted.congestion_window,
                congestion_events: counted.congestion_events,
                lost_packets: counted.packets_lost,
                sent_packets: counted.packets_sent,
                sent_plpmtud_probes: counted.mtu_probes_sent,
                lost_plpmtud_probes: counted.mtu_probes_lost,
                black_holes_detected: counted.mtu_black_holes,
                current_mtu: path.map(|it| it.datagram_size).unwrap_or_default(),
            },
        }
    }
}
