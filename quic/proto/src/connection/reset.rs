//! Stateless resets: a server that lost its state says so (RFC 9000 §10.3).

use std::time::Instant;

use aws_lc_rs::constant_time::verify_slices_are_equal;

use super::Connection;
use crate::{error::ConnectionError, limits};

impl Connection {
    /// The tokens by which the peer may end the connection while we use its ids.
    pub(crate) fn reset_tokens(&self) -> impl Iterator<Item = &[u8; 16]> {
        self.cids.peer.reset_tokens()
    }

    /// Whether a datagram of which nothing could be used ends with that token. The time it takes
    /// says nothing of the token (RFC 9000 §10.3.1).
    pub(super) fn is_reset(&self, tail: Option<[u8; 16]>) -> bool {
        let Some(tail) = tail.filter(|_| self.state.is_open()) else {
            return false;
        };
        self.reset_tokens().fold(false, |found, token| {
            found | verify_slices_are_equal(&tail, token).is_ok()
        })
    }

    /// Nothing may be sent any more: there is nobody who knows this connection.
    pub(super) fn on_reset(&mut self, now: Instant) {
        self.end_by_peer(now, ConnectionError::Reset);
    }
}

/// The last bytes of what could be a stateless reset: it looks like a 1-RTT packet.
pub(crate) fn reset_tail(datagram: &[u8]) -> Option<[u8; 16]> {
    let short = datagram.first().is_some_and(|first| first & 0x80 == 0);
    let tail = datagram.last_chunk().copied();
    tail.filter(|_| short && datagram.len() >= limits::MIN_STATELESS_RESET)
}
