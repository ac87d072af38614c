//! ProbeBW (draft §5.3.3), the state of a flow most of the time: a cycle of slowing down, cruising,
//! refilling the path and speeding up.

use std::time::{Duration, Instant};

use super::{
    Bbr, Sample, State,
    params::{MIN_RENO_ROUNDS, PROBE_WAIT, RENO_ROUNDS, UNBOUNDED},
};

/// How current acknowledgements relate to the last probe (§2.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    /// There was no probe.
    Init,
    /// The path is filled at the estimated bandwidth.
    Refilling,
    /// The rate is raised, but packets sent earlier are still being acknowledged.
    ProbeStarting,
    /// Packets of the probe are being acknowledged.
    ProbeFeedback,
    /// The rate is normal again, but packets of the probe are still being acknowledged.
    ProbeStopping,
}

/// Position of the flow in its cycle.
#[derive(Clone, Debug)]
pub(super) struct Cycle {
    pub(super) ack_phase: AckPhase,
    /// True if acknowledgements and losses belong to a probe that has not been answered yet.
    pub(super) is_probe_sample: bool,
    /// Bytes acknowledged since `inflight_longterm` last grew, and the number at which it grows
    /// again.
    up_acked: u64,
    up_acked_per_increment: u64,
    up_rounds: u32,
    rounds_since_up: u64,
    pub(super) wait: Duration,
    /// Time at which the cycle began.
    pub(super) stamp: Instant,
    /// True if the last probe lost too much.
    pub(super) prev_too_high: bool,
    /// True if the last probe stopped where the previous one had lost too much.
    prev_precautionary: bool,
}

impl Cycle {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            ack_phase: AckPhase::Init,
            is_probe_sample: false,
            up_acked: 0,
            up_acked_per_increment: UNBOUNDED,
            up_rounds: 0,
            rounds_since_up: 0,
            wait: Duration::ZERO,
            stamp: now,
            prev_too_high: false,
            prev_precautionary: false,
        }
    }
}

impl Bbr {
    pub(super) fn start_down(&mut self, now: Instant) {
        self.signals.reset();
        self.cycle.up_acked_per_increment = UNBOUNDED;
        self.pick_probe_wait();
        self.cycle.stamp = now;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.restart_round();
        self.state = State::Down;
    }

    pub(super) fn start_cruise(&mut self) {
        self.state = State::Cruise;
    }

    /// Forgets losses since the last probe, and fills the path before probing for more, so that an
    /// immediate loss is not attributed to too little in flight.
    pub(super) fn start_refill(&mut self) {
        self.model.reset_short_term();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0;
        self.cycle.prev_precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.restart_round();
        self.state = State::Refill;
    }

    fn start_up(&mut self, sample: &Sample) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.restart_round();
        self.restart_full_pipe(sample);
        self.state = State::Up;
        self.raise_inflight_longterm_slope();
    }

    /// Draws the wait for the next probe, in rounds and in time, so that flows do not probe
    /// together.
    fn pick_probe_wait(&mut self) {
        let random = self.random.draw();
        self.cycle.rounds_since_up = random & 1;
        self.cycle.wait = PROBE_WAIT + Duration::from_millis((random >> 1) % 1000);
    }

    pub(super) fn update_probe_bw_cycle(&mut self, sample: &Sample) {
        if self.model.round.started {
            self.cycle.rounds_since_up += 1;
        }
        if !self.full_pipe.reached || self.adapt_long_term_model(sample) {
            return;
        }
        if self.state == State::Up {
            self.check_time_to_go_down(sample);
            return;
        }
        match self.state {
            State::Down => {
                if self.is_time_to_probe(sample.now) {
                    self.start_refill();
                } else if self.is_time_to_cruise(sample) {
                    self.start_cruise();
                }
            }
            State::Cruise if self.is_time_to_probe(sample.now) => self.start_refill(),
            State::Refill if self.model.round.started => {
                self.cycle.is_probe_sample = true;
                self.start_up(sample);
            }
            _ => {}
        }
    }

    /// Advances the meaning of acknowledgements, forgets bandwidth that is two cycles old, and
    /// raises the bound of the bytes in flight while that costs little. Returns true if the state
    /// changed.
    fn adapt_long_term_model(&mut self, sample: &Sample) -> bool {
        let phase = self.cycle.ack_phase;
        if self.model.round.started && phase == AckPhase::ProbeStarting {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.model.round.started
            && phase == AckPhase::ProbeStopping
            && self.on_probe_feedback_complete(sample)
        {
            return true;
        }
        if self.is_inflight_too_high(sample.lost, sample.tx_in_flight)
            || self.model.inflight_longterm == UNBOUNDED
        {
            return false;
        }
        self.model.inflight_longterm = self.model.inflight_longterm.max(sample.tx_in_flight);
        if self.state == State::Up {
            self.probe_inflight_longterm_upward(sample);
        }
        false
    }

    /// Follows a probe that stopped early as a precaution and lost little with a full one at once.
    fn on_probe_feedback_complete(&mut self, sample: &Sample) -> bool {
        self.cycle.is_probe_sample = false;
        self.cycle.ack_phase = AckPhase::Init;
        if !self.state.is_probe_bw() {
            return false;
        }
        if !sample.app_limited {
            self.model.max_bw.advance();
        }
        let again = self.cycle.prev_precautionary && !self.cycle.prev_too_high;
        if again {
            self.start_refill();
        }
        again
    }

    fn is_time_to_probe(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.cycle.stamp) > self.cycle.wait
            || self.is_reno_coexistence_probe_time()
    }

    /// Returns true once as many rounds have passed as datagrams are in flight. Reno, which adds a
    /// datagram per round, would then lose some anyway, so a probe costs it nothing more.
    fn is_reno_coexistence_probe_time(&self) -> bool {
        let rounds = self.target_inflight() / self.datagram_size;
        self.cycle.rounds_since_up >= rounds.clamp(MIN_RENO_ROUNDS, RENO_ROUNDS)
    }

    fn is_time_to_cruise(&self, sample: &Sample) -> bool {
        sample.in_flight <= self.inflight_with_headroom()
            && sample.in_flight <= self.inflight(self.model.max_bw.get())
    }

    fn check_time_to_go_down(&mut self, sample: &Sample) {
        let limit = self.model.inflight_longterm;
        // A window that is not a whole number of datagrams is never reached exactly.
        let reached = sample.prior_in_flight.saturating_add(self.datagram_size) > limit;
        let cautious = self.cycle.prev_too_high && reached;
        if !cautious && sample.window_limited && self.window >= limit {
            // The bound limits the rate, not the path.
            self.restart_full_pipe(sample);
            return;
        }
        if cautious || self.full_pipe.now {
            self.cycle.prev_precautionary |= cautious;
            self.cycle.prev_too_high = false;
            self.start_down(sample.now);
        }
    }

    fn restart_full_pipe(&mut self, sample: &Sample) {
        self.full_pipe.restart(sample.rate);
    }

    /// Lets the bound grow by 1, 2, 4… datagrams in successive rounds.
    fn raise_inflight_longterm_slope(&mut self) {
        let growth = 1 << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(30);
        self.cycle.up_acked_per_increment = (self.window / growth).max(self.datagram_size);
    }

    fn probe_inflight_longterm_upward(&mut self, sample: &Sample) {
        if !sample.window_limited || self.window < self.model.inflight_longterm {
            return;
        }
        let step = self.cycle.up_acked_per_increment;
        self.cycle.up_acked = self.cycle.up_acked.saturating_add(sample.newly_acked);
        let increments = self.cycle.up_acked / step;
        self.cycle.up_acked -= increments * step;
        let growth = increments.saturating_mul(self.datagram_size);
        self.model.inflight_longterm = self.model.inflight_longterm.saturating_add(growth);
        if self.model.round.started {
            self.raise_inflight_longterm_slope();
        }
    }
}
