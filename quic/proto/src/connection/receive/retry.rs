//! Retry: a server demands proof of the client's address before it commits resources (RFC 9000
//! §8.1.2, §17.2.5).

use std::time::Instant;

use hybriq_tls::Side;

use crate::{
    connection::Connection,
    wire::packet::{self, Cid, Space},
};

/// Contents of a Retry.
#[derive(Debug)]
pub(in crate::connection) struct Retried {
    /// Source connection id of the Retry, which the server's transport parameters must confirm.
    pub(in crate::connection) scid: Cid,
    /// Token in every later Initial.
    pub(in crate::connection) token: Box<[u8]>,
}

impl Retried {
    /// Creates the record of a Retry that this server sent.
    pub(in crate::connection) fn by_us(scid: Cid) -> Self {
        Self {
            scid,
            token: Box::default(),
        }
    }
}

impl Connection {
    /// Starts again with the same ClientHello and returns true. Ignores a Retry that is forged,
    /// late or not the first.
    pub(in crate::connection) fn on_retry(
        &mut self,
        now: Instant,
        retry: &packet::Retry<'_>,
    ) -> bool {
        let meant = self.awaits_server()
            && retry.version == self.original_version()
            && self.cids.local.active().any(|cid| cid == retry.dcid)
            && retry.scid != self.cids.original;
        if !meant || !retry.verify(&self.cids.original) {
            return false;
        }
        self.opening.set_retried(Retried {
            scid: retry.scid,
            token: retry.token.into(),
        });
        self.cids.peer.set_first(retry.scid);
        let keys = packet::initial_keys(retry.version, &retry.scid, Side::Client);
        self.handshake.keys_mut().replace_initial(keys);
        let mut outcome = std::mem::take(&mut self.acks.settled);
        self.recovery.on_retry(now, &mut outcome);
        self.deliver(Space::Initial, &mut outcome);
        self.streams.on_retry();
        self.acks.settled = outcome;
        true
    }

    /// Returns true if a client has received no valid packet from the server, so that a Retry or
    /// Version Negotiation packet may still be followed.
    pub(in crate::connection) fn awaits_server(&self) -> bool {
        self.side.is_client()
            && self.state.is_handshaking()
            && self.opening.retried().is_none()
            && self.acks.largest(Space::Initial).is_none()
    }
}
