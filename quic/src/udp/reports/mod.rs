//! The system's reports about datagrams that did not leave or did not arrive.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod queue;

use std::{
    io,
    net::{IpAddr, UdpSocket},
};

use hybriq_proto::connection::RefusalCause;

pub(crate) use queue::Report;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) use queue::{keep, next};

/// Returns the cause of the refusal to send a datagram; `None` if it says nothing about the next
/// one. `from` is the local address that the datagram was to leave from, if it named one.
pub(crate) fn cause_of(error: &io::Error, from: Option<IpAddr>) -> Option<RefusalCause> {
    use io::ErrorKind as Kind;

    match (error.kind(), from) {
        (Kind::InvalidInput | Kind::AddrNotAvailable, Some(_)) => Some(RefusalCause::OwnAddress),
        // Newer releases of Linux report this too.
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
        // No room, no memory, a datagram too large for the path: the next one may be sent.
        _ => None,
    }
}

/// Returns false if the system says that this machine does not have the address.
fn is_ours(address: IpAddr) -> bool {
    let bound = UdpSocket::bind((address, 0));
    bound.map_or_else(
        |error| error.kind() != io::ErrorKind::AddrNotAvailable,
        |_| true,
    )
}

/// Systems that report nothing about the datagrams of an unconnected socket.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod queue {
    use std::net::SocketAddr;

    use hybriq_proto::wire::error::SystemError;

    /// A report that a datagram did not arrive. None exists on these systems.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Report {
        pub(crate) peer: SocketAddr,
        pub(crate) reason: SystemError,
    }

    impl Report {
        #[expect(clippy::unused_self, reason = "the reports of Linux have bytes")]
        pub(crate) const fn quoted(&self) -> &[u8] {
            &[]
        }
    }
}
