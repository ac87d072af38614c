//! Datagrams between a socket and the core: how one came, where some go.

use std::net::{IpAddr, SocketAddr};

use super::space::Ecn;

/// How a datagram came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Where it came from.
    pub remote: SocketAddr,
    /// Which of our addresses it came to, if the socket tells.
    pub local_ip: Option<IpAddr>,
    /// Its ECN codepoint; `None` is Not-ECT.
    pub ecn: Option<Ecn>,
}

/// Datagrams to send: `size` bytes from the start of the buffer that was passed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub remote: SocketAddr,
    /// From which of our addresses; `None` lets the system choose.
    pub local_ip: Option<IpAddr>,
    /// The ECN codepoint to set.
    pub ecn: Option<Ecn>,
    /// Bytes in all.
    pub size: usize,
    /// When several datagrams follow one another: bytes of each but the last, which may be
    /// shorter (a GSO train).
    pub segment_size: Option<usize>,
}
