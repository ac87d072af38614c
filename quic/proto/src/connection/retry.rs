//! Retry: a server that wants to see our address proved before it spends anything on us
//! (RFC 9000 §8.1.2, §17.2.5).

use std::time::Instant;

use hybriq_tls::Side;

use super::Connection;
use crate::packet::{self, Cid, Space};

/// What a Retry told.
#[derive(Debug)]
pub(super) struct Retried {
    /// The server's id in it, which its transport parameters must confirm.
    pub(super) scid: Cid,
    /// What every further Initial carries.
    pub(super) token: Box<[u8]>,
}

impl Retried {
    /// A Retry that a server sent itself.
    pub(super) fn by_us(scid: Cid) -> Self {
        Self {
            scid,
            token: Box::default(),
        }
    }
}

impl Connection {
    /// Where a server's client sends its Initial packets before it knows our own id.
    pub(super) const fn initial_dcid(&self) -> Cid {
        self.cids.initial
    }

    /// Returns the token in our Initial packets: every one, so that each proves the address by
    /// itself.
    pub(super) fn initial_token(&self) -> &[u8] {
        self.retried()
            .map_or(self.memory.tokens.spent(), |retried| &retried.token)
    }

    /// Begins again, with the same ClientHello. A Retry that is not genuine, not the first, or late
    /// is ignored; says whether it was followed.
    pub(super) fn on_retry(&mut self, now: Instant, retry: &packet::Retry<'_>) -> bool {
        let meant = self.awaits_server()
            && retry.version == self.original_version()
            && self.cids.local.active().any(|cid| cid == retry.dcid)
            && retry.scid != self.cids.original;
        if !meant || !retry.verify(&self.cids.original) {
            return false;
        }
        if let Some(opening) = &mut self.opening {
            opening.retried = Some(Retried {
                scid: retry.scid,
                token: retry.token.into(),
            });
        }
        self.cids.peer.set_first(retry.scid);
        let keys = packet::initial_keys(retry.version, &retry.scid, Side::Client);
        self.handshake.keys_mut().replace_initial(keys);
        let mut outcome = std::mem::take(&mut self.acks.settled);
        self.recovery.on_retry(now, &mut outcome);
        self.deliver(Space::Initial, &mut outcome);
        self.acks.settled = outcome;
        true
    }

    /// Whether a client has heard nothing of the server that counts: until then it may be told to
    /// begin again, or with another version.
    pub(super) fn awaits_server(&self) -> bool {
        self.side.is_client()
            && self.state.is_handshaking()
            && self.retried().is_none()
            && self.acks.received[Space::Initial].largest().is_none()
    }
}
