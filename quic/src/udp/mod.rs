//! The UDP socket of a worker: batches, GSO, GRO, ECN and local addresses through `quinn-udp`.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod message;
mod offload;
mod registered;
mod reports;
mod setup;
mod socket;

use std::net::{IpAddr, SocketAddr};

use hybriq_proto::wire::udp::{Ecn, canonical};
use quinn_udp::EcnCodepoint;

pub(crate) use offload::refuses_train;
pub(crate) use reports::{Report, cause_of};
#[cfg(unix)]
pub(crate) use setup::bind::passed;
pub(crate) use setup::bind::{check, is_shared};
pub(crate) use setup::buffers::Buffers;
#[cfg(test)]
pub(crate) use socket::Network;
pub use socket::{DatagramSocket, Outgoing, Received};
pub(crate) use socket::{Opened, Prepared, Socket};

/// Open file of the system, for another process.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) type Handle = std::os::fd::OwnedFd;

/// Open file for another process; no system call passes one on.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[derive(Debug)]
pub(crate) enum Handle {}

/// Options for opening sockets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// True if one system call may send several datagrams.
    pub(crate) gso: bool,
    /// Number of bytes that the system is asked to buffer for each direction.
    pub(crate) buffer_size: usize,
    /// Whether one socket or several use the address.
    pub(crate) sharing: Sharing,
}

/// Events for which the runtime watches a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// Waiting datagrams, and room to send.
    Both,
    /// Room to send: another process receives.
    Sending,
}

/// How sockets use an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// One socket has the address.
    Alone,
    /// Sockets of the same user share the address (`SO_REUSEPORT`).
    Shared,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            gso: true,
            buffer_size: 8 * 1024 * 1024,
            sharing: Sharing::Alone,
        }
    }
}

/// Returns true if a socket bound to `local` can reach `peer`.
pub(crate) fn can_reach(local: SocketAddr, peer: SocketAddr) -> bool {
    let peer = canonical(peer);
    if peer.port() == 0 || peer.ip().is_unspecified() {
        return false;
    }
    match local.ip() {
        IpAddr::V4(_) => peer.is_ipv4(),
        IpAddr::V6(ip) => peer.is_ipv6() || ip.is_unspecified(),
    }
}

fn codepoint(ecn: Ecn) -> EcnCodepoint {
    match ecn {
        Ecn::Ect0 => EcnCodepoint::Ect0,
        Ecn::Ect1 => EcnCodepoint::Ect1,
        Ecn::Ce => EcnCodepoint::Ce,
    }
}

fn ecn(codepoint: EcnCodepoint) -> Ecn {
    match codepoint {
        EcnCodepoint::Ect0 => Ecn::Ect0,
        EcnCodepoint::Ect1 => Ecn::Ect1,
        EcnCodepoint::Ce => Ecn::Ce,
    }
}

#[cfg(test)]
mod tests;
