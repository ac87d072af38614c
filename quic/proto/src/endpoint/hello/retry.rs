//! Clients that must return with a token (RFC 9000 §8.1.2). No state is kept for them: everything a
//! connection needs comes back in the token.

use std::time::{Duration, Instant};

use super::table::Hello;
use crate::{
    config::AddressValidation,
    endpoint::{
        Arrival, Endpoint, Incoming, TokenRecord,
        admit::admission::{Initial, Presence, Proof, Verdict},
    },
    remembered::token::{Binding, Keys},
    wire::packet::{Cid, Packets, Retry, Version},
};

/// Fields of an Initial that a Retry answers.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoint) struct Answered {
    pub(in crate::endpoint) version: Version,
    pub(in crate::endpoint) dcid: Cid,
    pub(in crate::endpoint) scid: Cid,
}

impl Endpoint {
    /// Validates addresses with tokens of these keys, and issues clients tokens for their next
    /// connections. Before the first call tokens are neither requested nor issued.
    pub fn set_address_validation(&mut self, keys: impl Keys + 'static, policy: AddressValidation) {
        self.admission.set(Box::new(keys), policy);
    }

    /// Sets the record of used tokens, for endpoints that share one. By default each endpoint has
    /// its own record.
    pub fn set_token_record(&mut self, spent: impl TokenRecord + 'static) {
        self.admission.set_record(Box::new(spent));
    }

    /// Sets the clock: `unix` is the time since 1970 at `now`. Without it other endpoints cannot
    /// understand the tokens.
    pub fn set_clock(&mut self, now: Instant, unix: Duration) {
        self.admission.set_clock(now, unix);
    }

    /// Reports the time that a handshake took from the caller.
    pub fn on_handshake_cost(&mut self, now: Instant, took: Duration) {
        self.admission.on_handshake(now, took);
    }

    /// Returns the number of clients that wait to be accepted or have an unfinished handshake.
    pub fn unfinished(&self) -> usize {
        self.hellos.len() + self.waiting + self.handshaking
    }

    /// Sets the number of such clients at other endpoints that serve the same address, which also
    /// count for [`AddressValidation::Adaptive`].
    pub const fn set_unfinished_elsewhere(&mut self, clients: usize) {
        self.unfinished_elsewhere = clients;
    }

    /// Sets whether the caller has room only for clients that proved their address: others get a
    /// Retry in answer to their first packet, regardless of the policy. Clients that sent more
    /// already could not follow it.
    pub const fn set_crowded(&mut self, crowded: bool) {
        self.crowded = crowded;
    }

    /// Returns true if the maximum number of clients without a proven address is waiting. The rest
    /// of the backlog is for clients with one.
    pub(in crate::endpoint) const fn has_waiting_enough(&self) -> bool {
        self.waiting_unproven >= self.backlog.div_ceil(2)
    }

    /// Decides on a first Initial by its token and the load.
    pub(in crate::endpoint) fn judge(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        packets: &Packets<'_>,
    ) -> Option<(Answered, Verdict)> {
        let fields = packets.fields()?;
        let unfinished = self.unfinished() + self.unfinished_elsewhere;
        let version = fields.version?;
        let initial = Initial {
            version: version.number(),
            dcid: fields.dcid,
            token: packets.token(),
        };
        let presence = Presence {
            unfinished,
            crowded: self.crowded || self.hellos.is_full() || self.has_waiting_enough(),
        };
        let verdict = self.admission.judge(now, arrival.peer, &initial, presence);
        let answered = Answered {
            version,
            dcid: fields.dcid,
            scid: fields.scid,
        };
        Some((answered, verdict))
    }

    /// Queues a Retry. Returns true if there was room.
    pub(in crate::endpoint) fn send_retry(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        to: &Answered,
    ) -> bool {
        let scid = self.new_cid();
        let binding = Binding::retry(arrival.peer, scid, to.version.number());
        let random = &mut *self.random;
        let Some(token) = self.admission.retry_token(now, &binding, &to.dcid, random) else {
            return false;
        };
        let mut unused = [0];
        random.fill(&mut unused);
        let retry = Retry::new(to.version, to.scid, scid, &token);
        let sent = self.answers.retry(arrival, &retry, &to.dcid, unused[0]);
        self.admission.stats.retries_sent += u64::from(sent);
        sent
    }

    /// Asks a client to prove its address; [`Endpoint::poll_transmit`] returns the Retry.
    ///
    /// # Errors
    /// The client would ignore it: see [`Incoming::may_retry`].
    pub fn retry(&mut self, now: Instant, incoming: Incoming) -> Result<(), Box<Incoming>> {
        if !incoming.may_retry() {
            return Err(Box::new(incoming));
        }
        self.on_decided(&incoming);
        let hello = incoming.hello;
        self.forget_routes(&hello);
        self.send_retry(now, &hello.arrival(), &hello.answered());
        Ok(())
    }
}

impl Hello {
    /// Returns the addresses of the client's datagrams.
    pub(in crate::endpoint) const fn arrival(&self) -> Arrival {
        Arrival {
            peer: self.peer,
            local: self.local,
            ecn: None,
        }
    }

    /// Returns the fields that a Retry answers.
    pub(in crate::endpoint) const fn answered(&self) -> Answered {
        Answered {
            version: self.version,
            dcid: self.dcid,
            scid: self.peer_cid,
        }
    }
}

impl Incoming {
    /// Returns true if the client proved its address with a token.
    pub const fn is_validated(&self) -> bool {
        self.hello.proof.validated
    }

    /// Returns true if the client would follow a Retry: it follows at most one, and none after it
    /// has received another packet from us (RFC 9000 §17.2.5.2).
    pub const fn may_retry(&self) -> bool {
        self.hello.proof.retried.is_none() && self.hello.next_pn.get() == 0
    }
}

impl Proof {
    /// Returns the connection id of the client's first packet, if it followed a Retry.
    pub(in crate::endpoint) fn original_dcid(&self) -> Option<Cid> {
        self.retried.map(|opened| opened.original_dcid)
    }
}
