//! Systems that report nothing about the datagrams of an unconnected socket.

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
