//! Stateless resets from a peer that lost its state (RFC 9000 §10.3).

use std::time::Instant;

use super::Connection;
use crate::wire::ResetToken;
use crate::{error::ConnectionError, limits};

impl Connection {
    /// Returns the tokens with which the peer may end the connection, for its ids in use.
    pub(crate) fn reset_tokens(&self) -> impl Iterator<Item = &ResetToken> {
        self.cids.peer.reset_tokens()
    }

    /// Returns true if an unusable datagram ends with the reset token of an id in use. The
    /// comparison takes constant time (RFC 9000 §10.3.1).
    pub(super) fn is_reset(&self, tail: Option<ResetToken>) -> bool {
        let Some(tail) = tail.filter(|_| !self.state.is_drained()) else {
            return false;
        };
        self.reset_tokens()
            .fold(false, |found, token| found | (tail == *token))
    }

    /// Ends the connection without sending anything: the peer does not know it any more.
    pub(super) fn on_reset(&mut self, now: Instant) {
        self.end_by_peer(now, ConnectionError::Reset);
    }
}

/// Returns the last bytes of a datagram that could be a stateless reset, which looks like a 1-RTT
/// packet.
pub(crate) fn reset_tail(datagram: &[u8]) -> Option<ResetToken> {
    let short = datagram.first().is_some_and(|first| first & 0x80 == 0);
    let tail = datagram.last_chunk().copied().map(ResetToken::new);
    tail.filter(|_| short && datagram.len() >= limits::MIN_STATELESS_RESET)
}
