//! Probe timeouts.

use std::time::{Duration, Instant};

use hybriq_tls::Side;

use super::{Amplification, Context, Outcome, Progress, Recovery, Timeout};
use crate::wire::packet::Space;

/// Largest number of doublings of the probe timeout.
const MAX_BACKOFF: u32 = 16;

/// Longest probe timeout after backoff.
const MAX_PTO: Duration = Duration::from_secs(60);

/// Ack-eliciting packets that a probe timeout may send (RFC 9002 §6.2.4).
const PROBES: u8 = 2;

/// Purpose of the PTO timer.
#[derive(Clone, Copy, Debug)]
enum Pto {
    /// The last ack-eliciting packet of a space was not acknowledged.
    Unacknowledged(Space),
    /// A server may have reached its anti-amplification limit and be waiting for us (RFC 9002
    /// §6.2.2.1).
    AntiDeadlock(Space),
}

impl<R: 'static> Recovery<R> {
    /// Returns the probe timeout of a space, without backoff (RFC 9002 §6.2.1).
    #[inline]
    pub fn pto(&self, space: Space, peer_max_ack_delay: Duration) -> Duration {
        let pto = self.rtt.pto();
        match space {
            Space::Initial | Space::Handshake => pto,
            Space::Data => pto.saturating_add(peer_max_ack_delay),
        }
    }

    /// Returns the time at which [`Recovery::on_timeout`] must be called next.
    ///
    /// If a probe turns out to have been due earlier, it is due at the moment this becomes known:
    /// on another path, which ends the backoff, or when a server's amplification limit is lifted
    /// (RFC 9002 §A.6).
    pub fn next_timeout(&self, context: &Context) -> Option<Instant> {
        self.loss_time()
            .or_else(|| self.pto_time(context).map(|(at, _)| at))
    }

    /// Handles a timeout that is due. Returns `None` if there was none.
    pub fn on_timeout(
        &mut self,
        now: Instant,
        context: &Context,
        outcome: &mut Outcome<R>,
    ) -> Option<Timeout> {
        if self.loss_time().is_some_and(|at| at <= now) {
            for space in Space::ALL {
                if self.space(space).loss_time.is_some_and(|at| at <= now) {
                    self.detect_lost(now, space, context, outcome);
                }
            }
            self.rearm(now);
            return Some(Timeout::Lost);
        }
        let (at, pto) = self.pto_time(context)?;
        if at > now {
            return None;
        }
        let (space, probes) = match pto {
            Pto::Unacknowledged(space) => (space, PROBES),
            Pto::AntiDeadlock(space) => (space, 1),
        };
        self.pto_count = self.pto_count.saturating_add(1);
        self.totals.ptos += 1;
        self.ecn.on_pto(self.pto_count);
        // The next timeout counts from here even if the probe is not sent at once: a timer must
        // never stay in the past.
        self.rearm(now);
        self.spaces.at(space).last_eliciting_sent = Some(now);
        self.request_probes(space, probes);
        Some(Timeout::Probe(space))
    }

    /// Requests probes before their timeout, for a peer that evidently lacks what was sent (RFC
    /// 9002 §6.2.3). Returns false if nothing is in flight, or if it was sent so recently that the
    /// peer may not have received it yet.
    pub fn probe_early(&mut self, now: Instant, space: Space) -> bool {
        let state = self.space(space);
        let Some(sent) = state.last_eliciting_sent else {
            return false;
        };
        let ago = now.saturating_duration_since(sent);
        if state.eliciting_in_flight == 0 || ago < self.rtt.min() {
            return false;
        }
        self.rearm(now);
        self.spaces.at(space).last_eliciting_sent = Some(now);
        self.request_probes(space, PROBES);
        true
    }

    /// Requests probes of a space, and of the other handshake space if that has data in flight: the
    /// peer may have the keys of only one of them (RFC 9002 §6.2.4).
    fn request_probes(&mut self, space: Space, probes: u8) {
        self.spaces.at(space).probes = probes;
        let other = match space {
            Space::Initial => Space::Handshake,
            Space::Handshake => Space::Initial,
            Space::Data => return,
        };
        if self.space(other).eliciting_in_flight > 0 {
            self.spaces.at(other).probes = probes;
        }
    }

    /// Notes that the probe timer moved, perhaps to a time in the past: then it is due now.
    pub fn rearm(&mut self, now: Instant) {
        self.timer_base = self.timer_base.max(now);
    }

    pub(super) fn loss_time(&self) -> Option<Instant> {
        self.spaces.iter().filter_map(|space| space.loss_time).min()
    }

    fn pto_time(&self, context: &Context) -> Option<(Instant, Pto)> {
        if context.amplification == Amplification::Blocked {
            return None;
        }
        let unacknowledged = Space::ALL
            .into_iter()
            // 1-RTT packets may wait for keys the peer does not have yet (RFC 9002 §6.2.1).
            .filter(|&space| space != Space::Data || context.handshake == Progress::Confirmed)
            .filter_map(|space| {
                let state = self.spaces.get(space)?;
                let base = state.last_eliciting_sent?;
                if state.eliciting_in_flight == 0 {
                    return None;
                }
                let at = base + self.backed_off(self.pto(space, context.peer_max_ack_delay));
                Some((at.max(self.timer_base), Pto::Unacknowledged(space)))
            })
            .min_by_key(|&(at, _)| at);
        if unacknowledged.is_some() || self.peer_validated_address(context) {
            return unacknowledged;
        }
        let space = match context.handshake {
            Progress::InitialOnly => Space::Initial,
            Progress::Keys | Progress::Confirmed => Space::Handshake,
        };
        let at = self.timer_base + self.backed_off(self.pto(space, context.peer_max_ack_delay));
        Some((at, Pto::AntiDeadlock(space)))
    }

    fn backed_off(&self, pto: Duration) -> Duration {
        pto.saturating_mul(1 << self.pto_count.min(MAX_BACKOFF))
            .min(MAX_PTO.max(pto))
    }

    /// Returns true if the server is known to have validated our address (RFC 9002 §6.2.2.1). A
    /// client need not validate the server's address.
    pub(super) fn peer_validated_address(&self, context: &Context) -> bool {
        self.side == Side::Server
            || self.handshake_acked
            || context.handshake == Progress::Confirmed
    }
}
