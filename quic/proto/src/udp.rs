//! Datagrams between a socket and the core: how one came, where some go.

use std::net::{IpAddr, SocketAddr};

use super::space::Ecn;

/// Names one of an endpoint's sockets; the first is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId(pub u8);

/// Our end of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Local {
    /// Which of our sockets.
    pub socket: SocketId,
    /// Which of our addresses, if the socket tells; `None` lets the system choose.
    pub ip: Option<IpAddr>,
}

/// How a datagram came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Where it came from.
    pub peer: SocketAddr,
    /// Where it came to.
    pub local: Local,
    /// Its ECN codepoint; `None` is Not-ECT.
    pub ecn: Option<Ecn>,
}

/// Datagrams to send: `size` bytes from the start of the buffer that was passed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub peer: SocketAddr,
    /// Where from.
    pub local: Local,
    /// The ECN codepoint to set.
    pub ecn: Option<Ecn>,
    /// Bytes in all.
    pub size: usize,
    /// When several datagrams follow one another: bytes of each but the last, which may be
    /// shorter (a GSO train).
    pub segment_size: Option<usize>,
}
