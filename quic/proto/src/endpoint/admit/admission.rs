//! Admission of clients: directly, or after they prove their address (RFC 9000 §8.1).

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    load::Load,
    replay::{SpentTokens, TokenRecord},
};
use crate::{
    config::AddressValidation,
    random::Random,
    remembered::token::{Binding, Keys, Kind, Opened, Ring, SEED_LEN, Token},
    stats::EndpointStats,
    wire::{limits, packet::Cid},
};

/// What a client proved before its handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::endpoint) struct Proof {
    /// True if the client is known to receive at its address.
    pub(in crate::endpoint) validated: bool,
    /// Token of the Retry that it followed.
    pub(in crate::endpoint) retried: Option<Opened>,
}

/// Decision on a client's first Initial.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoint) enum Verdict {
    /// The client may start its handshake.
    Admit(Proof),
    /// The client must return with a token.
    Retry,
    /// The client returned with an invalid token, and will not follow another Retry.
    Invalid,
}

/// Load of the endpoint when a client arrives.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoint) struct Presence {
    /// Number of unfinished handshakes.
    pub(in crate::endpoint) unfinished: usize,
    /// True if there is room only for clients that proved their address, whatever the policy.
    pub(in crate::endpoint) crowded: bool,
}

/// Fields of an Initial that can be read without keys.
#[derive(Clone, Copy, Debug)]
pub(in crate::endpoint) struct Initial<'a> {
    pub(in crate::endpoint) version: u32,
    pub(in crate::endpoint) dcid: Cid,
    pub(in crate::endpoint) token: &'a [u8],
}

/// Decides whether first Initials are admitted.
#[derive(Debug)]
pub(in crate::endpoint) struct Admission {
    keys: Option<Box<dyn Keys>>,
    policy: AddressValidation,
    /// True if clients are issued tokens for their next connection.
    issues: bool,
    /// An instant, and the time since 1970 at that instant.
    clock: Option<(Instant, Duration)>,
    latest: Option<Instant>,
    load: Load,
    spent: Box<dyn TokenRecord>,
    pub(in crate::endpoint) stats: EndpointStats,
}

impl Default for Admission {
    fn default() -> Self {
        Self {
            keys: None,
            policy: AddressValidation::Never,
            issues: false,
            clock: None,
            latest: None,
            load: Load::default(),
            spent: Box::<SpentTokens>::default(),
            stats: EndpointStats::default(),
        }
    }
}

impl Admission {
    pub(in crate::endpoint) fn set(&mut self, keys: Box<dyn Keys>, policy: AddressValidation) {
        self.keys = Some(keys);
        self.policy = policy;
        self.issues = true;
    }

    pub(in crate::endpoint) fn set_record(&mut self, spent: Box<dyn TokenRecord>) {
        self.spent = spent;
    }

    /// Sets the clock: `unix` is the time since 1970 at `now`.
    pub(in crate::endpoint) const fn set_clock(&mut self, now: Instant, unix: Duration) {
        self.clock = Some((now, unix));
    }

    pub(in crate::endpoint) const fn at(&mut self, now: Instant) {
        self.latest = Some(now);
    }

    /// Counts the time that a handshake took from the worker.
    pub(in crate::endpoint) fn on_handshake(&mut self, now: Instant, took: Duration) {
        if self.policy == AddressValidation::Adaptive {
            self.load.on_handshake(now, took);
        }
    }

    pub(in crate::endpoint) const fn is_load_high(&self) -> bool {
        self.load.is_on()
    }

    fn unix(&mut self, now: Instant) -> u64 {
        let (then, unix) = *self.clock.get_or_insert((now, Duration::ZERO));
        unix.saturating_add(now.saturating_duration_since(then))
            .as_secs()
    }

    /// Decides on a first Initial, given the load.
    pub(in crate::endpoint) fn judge(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        initial: &Initial<'_>,
        presence: Presence,
    ) -> Verdict {
        let kind = Kind::of(initial.token).filter(|_| self.keys.is_some());
        match kind {
            Some(Kind::Retry) => return self.judge_retry(now, peer, initial),
            Some(Kind::New) if self.is_good_new_token(now, peer, initial) => {
                self.stats.addresses_validated += 1;
                return Verdict::Admit(Proof {
                    validated: true,
                    retried: None,
                });
            }
            _ => {}
        }
        let retry = match self.policy {
            AddressValidation::Always => true,
            AddressValidation::Never => false,
            AddressValidation::Adaptive => self.load.is_high(now, presence.unfinished),
        };
        if retry || presence.crowded {
            Verdict::Retry
        } else {
            Verdict::Admit(Proof::default())
        }
    }

    /// Decides on a Retry token. A token that was already used leads to its connection or restarts
    /// it, but no longer proves the address, because others may have seen it.
    fn judge_retry(&mut self, now: Instant, peer: SocketAddr, initial: &Initial<'_>) -> Verdict {
        let binding = Binding::retry(peer, initial.dcid, initial.version);
        let Some(opened) = self.open(now, &binding, initial.token, limits::RETRY_TOKEN_LIFETIME)
        else {
            self.stats.tokens_rejected += 1;
            return Verdict::Invalid;
        };
        let replayed = self
            .spent
            .contains(Kind::Retry, opened.issued, &opened.seed);
        self.stats.tokens_replayed += u64::from(replayed);
        self.stats.addresses_validated += u64::from(!replayed);
        Verdict::Admit(Proof {
            validated: !replayed,
            retried: Some(opened),
        })
    }

    fn is_good_new_token(&mut self, now: Instant, peer: SocketAddr, initial: &Initial<'_>) -> bool {
        let binding = Binding::new_token(peer.ip(), initial.version);
        let Some(opened) = self.open(now, &binding, initial.token, limits::NEW_TOKEN_LIFETIME)
        else {
            self.stats.tokens_rejected += 1;
            return false;
        };
        let first = self.spent.spend(Kind::New, opened.issued, &opened.seed);
        self.stats.tokens_replayed += u64::from(!first);
        first
    }

    fn open(
        &mut self,
        now: Instant,
        binding: &Binding,
        token: &[u8],
        lifetime: u64,
    ) -> Option<Opened> {
        let opened = self.keys.as_ref()?.ring().open(binding, token)?;
        let now = self.unix(now);
        let not_from_the_future = opened.issued <= now.saturating_add(limits::CLOCK_SKEW);
        let not_expired = now.saturating_sub(opened.issued) <= lifetime;
        (not_from_the_future && not_expired).then_some(opened)
    }

    /// Marks the Retry token of an accepted connection as spent.
    pub(in crate::endpoint) fn on_accepted(&mut self, proof: &Proof) {
        if let Some(opened) = &proof.retried {
            self.spent.spend(Kind::Retry, opened.issued, &opened.seed);
        }
    }

    /// Returns a token for a Retry packet.
    pub(in crate::endpoint) fn retry_token(
        &mut self,
        now: Instant,
        binding: &Binding,
        original_dcid: &Cid,
        random: &mut dyn Random,
    ) -> Option<Token> {
        let issued = self.unix(now);
        let keys = self.keys.get_or_insert_with(|| {
            let mut secret = [0; 32];
            random.fill(&mut secret);
            Box::new(Arc::new(Ring::new(&secret)))
        });
        keys.ring()
            .seal(binding, seed(random), issued, original_dcid)
    }

    /// Returns a token for a client's next connection.
    pub(in crate::endpoint) fn new_token(
        &mut self,
        ip: IpAddr,
        version: u32,
        random: &mut dyn Random,
    ) -> Option<Token> {
        let ring = self.keys.as_ref().filter(|_| self.issues)?.ring();
        let now = self.latest?;
        let issued = self.unix(now);
        let binding = Binding::new_token(ip, version);
        ring.seal(&binding, seed(random), issued, &Cid::EMPTY)
    }
}

fn seed(random: &mut dyn Random) -> [u8; SEED_LEN] {
    let mut seed = [0; SEED_LEN];
    random.fill(&mut seed);
    seed
}
