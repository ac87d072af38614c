//! What the system means by refusing to send.

use std::{
    io,
    net::{IpAddr, UdpSocket},
};

use hybriq_proto::connection::RefusalCause;

/// Returns what the refusal to send a datagram is about; `None` for one that says nothing about the next.
/// `from` is the address of this machine that the datagram was to leave from, if it named one.
pub(crate) fn cause_of(error: &io::Error, from: Option<IpAddr>) -> Option<RefusalCause> {
    use io::ErrorKind as Kind;

    match (error.kind(), from) {
        (Kind::InvalidInput | Kind::AddrNotAvailable, Some(_)) => Some(RefusalCause::OwnAddress),
        // Newer releases of Linux say so as well.
        (Kind::NetworkUnreachable | Kind::HostUnreachable, Some(from)) if !is_ours(from) => {
            Some(RefusalCause::OwnAddress)
        }
        (
            Kind::InvalidInput
            | Kind::AddrNotAvailable
            | Kind::NetworkUnreachable
            | Kind::HostUnreachable
            | Kind::NetworkDown
            | Kind::PermissionDenied
            | Kind::ConnectionRefused,
            _,
        ) => Some(RefusalCause::Peer),
        // No room, no memory, a datagram too large for the path: the next may be sent.
        _ => None,
    }
}

/// Returns false if the system says that this machine does not have an address.
fn is_ours(address: IpAddr) -> bool {
    let bound = UdpSocket::bind((address, 0));
    bound.map_or_else(
        |error| error.kind() != io::ErrorKind::AddrNotAvailable,
        |_| true,
    )
}
