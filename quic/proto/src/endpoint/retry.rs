//! Clients that are sent away to come back with a token (RFC 9000 §8.1.2). Nothing is kept of them:
//! all that a connection needs to know comes back in the token.

use std::time::{Duration, Instant};

use super::{
    Arrival, Endpoint, Incoming,
    admission::{Initial, Proof, Verdict},
};
use crate::{
    config::AddressValidation,
    error::{Code, TransportError},
    packet::{Cid, Packets, Retry, Version},
    token::{Binding, Keys},
};

/// The fields of an Initial that a Retry answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub(super) version: Version,
    pub(super) dcid: Cid,
    pub(super) scid: Cid,
}

impl Endpoint {
    /// Validates addresses by tokens of these keys, and gives clients tokens for their next
    /// connections. Before the first call no tokens are asked for and none are given.
    pub fn set_address_validation(&mut self, keys: impl Keys + 'static, policy: AddressValidation) {
        self.admission.set(Box::new(keys), policy);
    }

    /// Tells that so much time had passed since 1970 at `now`. Tokens are only understood by others
    /// if it is called.
    pub fn set_clock(&mut self, now: Instant, unix: Duration) {
        self.admission.set_clock(now, unix);
    }

    /// Tells that a handshake took so much of the caller's time.
    pub fn on_handshake_cost(&mut self, now: Instant, took: Duration) {
        self.admission.on_handshake(now, took);
    }

    /// Clients that wait to be accepted or have not completed their handshake.
    fn unfinished(&self) -> usize {
        self.hellos.len() + self.waiting + self.handshaking
    }

    /// Decides on a first Initial by its token and the load.
    pub(super) fn judge(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        packets: &Packets<'_>,
    ) -> Option<(Answered, Verdict)> {
        let fields = packets.fields()?;
        let unfinished = self.unfinished();
        let version = fields.version?;
        let initial = Initial {
            version: version.number(),
            dcid: fields.dcid,
            token: packets.token(),
        };
        let verdict = self
            .admission
            .judge(now, arrival.peer, &initial, unfinished);
        let answered = Answered {
            version,
            dcid: fields.dcid,
            scid: fields.scid,
        };
        Some((answered, verdict))
    }

    /// Queues a Retry; says whether there was room.
    pub(super) fn send_retry(&mut self, now: Instant, arrival: &Arrival, to: &Answered) -> bool {
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
        self.admission.counters.retries += u64::from(sent);
        sent
    }

    /// Sends a client away to prove its address; the answer comes out of
    /// [`Endpoint::poll_transmit`].
    ///
    /// # Errors
    /// The client would ignore it: [`Incoming::may_retry`].
    pub fn retry(&mut self, now: Instant, incoming: Incoming) -> Result<(), Box<Incoming>> {
        if !incoming.may_retry() {
            return Err(Box::new(incoming));
        }
        self.waiting = self.waiting.saturating_sub(1);
        let hello = incoming.hello;
        self.forget_routes(&hello);
        let arrival = Arrival {
            peer: hello.peer,
            local: hello.local,
            ecn: None,
        };
        let answered = Answered {
            version: hello.version,
            dcid: hello.dcid,
            scid: hello.peer_cid,
        };
        self.send_retry(now, &arrival, &answered);
        Ok(())
    }
}

impl Incoming {
    /// Returns true if the client proved by a token that it receives at its address.
    pub const fn is_validated(&self) -> bool {
        self.hello.proof.validated
    }

    /// Returns true if the client would follow a Retry: it follows one at most, and none once it
    /// heard of us (RFC 9000 §17.2.5.2).
    pub const fn may_retry(&self) -> bool {
        self.hello.proof.retried.is_none() && self.hello.next_pn.get() == 0
    }
}

impl Proof {
    /// Returns the connection id that the client sent its first packet to, if it followed a Retry.
    pub(super) fn original_dcid(&self) -> Option<Cid> {
        self.retried.map(|opened| opened.original_dcid)
    }
}

/// The answer to a Retry token that is not good (RFC 9000 §8.1.3).
pub(super) fn invalid_token() -> TransportError {
    TransportError::new(Code::INVALID_TOKEN, "the Retry token is not valid")
}
