//! A server's preferred address (RFC 9000 §9.6).

use super::Connection;
use crate::proto::datagram::Local;

impl Connection {
    /// Whether it is where a server would rather be: anywhere but where it was found first.
    pub(super) fn is_preferred(&self, local: Local) -> bool {
        let first = self.first_local;
        let other_ip = first.ip.zip(local.ip).is_some_and(|(a, b)| a != b);
        self.side.is_server() && (first.socket != local.socket || other_ip)
    }

    /// Whether a client went to where the server prefers to be.
    pub(super) fn used_preferred(&self) -> bool {
        self.path.peer() != self.first_peer
    }
}
