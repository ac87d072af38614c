//! Descriptions of received and sent datagrams, shared by sockets and the core, and explicit
//! congestion notification: the ECN field of IP packets (RFC 3168 §5) and its validation on a path.

use std::net::{IpAddr, SocketAddr};

/// Index of one of an endpoint's sockets; the first is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId(pub u8);

/// Local address and socket of a path.
///
/// Exhaustive: a driver must say everything about a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Local {
    /// Local socket.
    pub socket: SocketId,
    /// Local IP address, if the socket reports it; `None` lets the system choose.
    pub ip: Option<IpAddr>,
}

/// Addresses and mark of a received datagram.
///
/// Exhaustive: a driver must say everything about a datagram.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Address of the sender.
    pub peer: SocketAddr,
    /// Local address and socket that received it.
    pub local: Local,
    /// ECN codepoint; `None` is Not-ECT.
    pub ecn: Option<Ecn>,
}

impl Arrival {
    /// Returns true if the sender can be answered ([`is_answerable`]).
    #[must_use]
    pub const fn is_answerable(&self) -> bool {
        is_answerable(self.peer)
    }
}

/// Returns true if a datagram can be sent to this address as to a single host: its port is not 0,
/// and it is neither unspecified nor a broadcast or multicast address. Other source addresses are
/// forged, and the system refuses to send to them.
#[must_use]
pub const fn is_answerable(peer: SocketAddr) -> bool {
    if peer.port() == 0 {
        return false;
    }
    match peer.ip().to_canonical() {
        IpAddr::V4(ip) => !(ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast()),
        IpAddr::V6(ip) => !(ip.is_unspecified() || ip.is_multicast()),
    }
}

/// Datagrams to send: `size` bytes from the start of the buffer that was passed in.
///
/// Exhaustive: a driver must heed every field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Address to send to.
    pub peer: SocketAddr,
    /// Local address and socket to send from.
    pub local: Local,
    /// ECN codepoint to set.
    pub ecn: Option<Ecn>,
    /// Bytes of all datagrams.
    pub size: usize,
    /// Bytes of each datagram in a GSO train; the last may be shorter. `None` for a single
    /// datagram.
    pub segment_size: Option<usize>,
}

impl Transmit {
    /// Returns the number of datagrams.
    #[must_use]
    pub fn datagrams(&self) -> u64 {
        let segment = self.segment_size.filter(|segment| *segment > 0);
        segment.map_or(1, |segment| self.size.div_ceil(segment)) as u64
    }
}

/// Converts an IPv4-mapped IPv6 address to IPv4; returns other addresses unchanged.
#[must_use]
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}

/// The ECN mark of a datagram; "not ECT" is its absence.
///
/// Exhaustive: RFC 3168 §5 has no other codepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// ECN capable, 0b01: the sender responds to marks in proportion (RFC 9331).
    Ect1,
    /// ECN capable, 0b10.
    Ect0,
    /// Congestion experienced, 0b11.
    Ce,
}

/// State of ECN validation on a path (RFC 9000 §A.4).
///
/// ```text
///            10 packets, 2 PTO          counts are valid
/// Testing ───────────────────► Unknown ──────────────────► Capable
///    │                            │                           │
///    └────────────────────────────┴───────────────────────────┴──► Failed
///         counts are wrong or missing, every marked packet lost, every one CE
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EcnState {
    /// ECN is switched off.
    #[default]
    Disabled,
    /// Packets are marked until enough were sent to judge the path.
    Testing,
    /// Enough packets were marked; the peer has not reported them yet.
    Unknown,
    /// The path carries marks, and the peer counts them.
    Capable,
    /// The path does not carry marks, or the peer's counts are invalid: packets are no longer
    /// marked.
    Failed,
}
