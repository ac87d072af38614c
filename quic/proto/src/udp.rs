//! Datagrams between a socket and the core: how one came, where some go.

use std::net::{IpAddr, SocketAddr};

use super::space::Ecn;

/// Index of one of an endpoint's sockets; the first is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId(pub u8);

/// Our end of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Local {
    /// Our socket.
    pub socket: SocketId,
    /// Our address, if the socket tells; `None` lets the system choose.
    pub ip: Option<IpAddr>,
}

/// Addresses and mark of a datagram that came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Address it came from.
    pub peer: SocketAddr,
    /// Our end that it came to.
    pub local: Local,
    /// Its ECN codepoint; `None` is Not-ECT.
    pub ecn: Option<Ecn>,
}

/// Datagrams to send: `size` bytes from the start of the buffer that was passed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Address to send to.
    pub peer: SocketAddr,
    /// Our end to send from.
    pub local: Local,
    /// The ECN codepoint to set.
    pub ecn: Option<Ecn>,
    /// Bytes in all.
    pub size: usize,
    /// Bytes of each datagram but the last, where several follow one another; the last may be
    /// shorter (a GSO train).
    pub segment_size: Option<usize>,
}
