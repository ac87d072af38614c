//! Systems that tell nothing about datagrams of a socket that is not connected.

use std::net::SocketAddr;

use hybriq_proto::wire::error::SystemError;

/// A report that a datagram did not arrive. There is none.
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
