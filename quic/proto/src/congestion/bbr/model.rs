//! The model of the path (draft §5.5): how fast it delivers, how long its round trip is, and how
//! much may be in flight on it.

use std::time::{Duration, Instant};

use super::{
    Bbr, Sample, State,
    filters::{CycleMax, WindowedMax},
    params::{EXTRA_ACKED_ROUNDS, Gain, UNBOUNDED, volume},
};

/// Packet-timed round trips (§5.5.1): one ends when a packet is acknowledged that was sent after the
/// previous one ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    pub(super) count: u64,
    /// True if the acknowledgement being processed begins one.
    pub(super) started: bool,
    /// A packet sent with so much delivered ends it.
    end: u64,
}

impl Round {
    /// Lets the current round end only with a packet that is sent from now on.
    pub(super) fn restart(&mut self, delivered: u64) {
        self.end = delivered;
    }

    fn on_acked(&mut self, sample: &Sample) {
        self.started = sample.prior_delivered >= self.end;
        if self.started {
            self.restart(sample.total_delivered);
            self.count += 1;
        }
    }
}

/// How much more is acknowledged at times than the bandwidth explains (§5.5.9).
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregation {
    start: Instant,
    delivered: u64,
    filter: WindowedMax,
}

impl Aggregation {
    fn new(now: Instant) -> Self {
        Self {
            start: now,
            delivered: 0,
            filter: WindowedMax::default(),
        }
    }

    pub(super) fn extra_acked(&self) -> u64 {
        self.filter.get()
    }

    /// An idle time is no aggregation.
    pub(super) fn restart(&mut self, now: Instant) {
        self.start = now;
    }
}

/// What is known of the path.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) round: Round,
    /// Bytes per second, of this and the previous probing cycle.
    pub(super) max_bw: CycleMax,
    /// What losses since the last probe allow.
    pub(super) bw_shortterm: u64,
    /// What is used: the lesser of both.
    pub(super) bw: u64,
    /// The volume beyond which probes lost too much.
    pub(super) inflight_longterm: u64,
    /// What losses since the last probe allow.
    pub(super) inflight_shortterm: u64,
    /// `None`: nothing was measured yet.
    pub(super) min_rtt: Option<Duration>,
    pub(super) aggregation: Aggregation,
}

impl Model {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            round: Round::default(),
            max_bw: CycleMax::default(),
            bw_shortterm: UNBOUNDED,
            bw: 0,
            inflight_longterm: UNBOUNDED,
            inflight_shortterm: UNBOUNDED,
            min_rtt: None,
            aggregation: Aggregation::new(now),
        }
    }

    /// Forgets what was lost since the last probe.
    pub(super) fn reset_short_term(&mut self) {
        self.bw_shortterm = UNBOUNDED;
        self.inflight_shortterm = UNBOUNDED;
    }

    /// Counts rounds, and takes the delivery rate into the filter (§5.5.5). What the application
    /// limited says nothing of the path unless it is more than was known.
    pub(super) fn update_max_bw(&mut self, sample: &Sample) {
        self.round.on_acked(sample);
        if sample.rate > 0 && (sample.rate >= self.max_bw.get() || !sample.app_limited) {
            self.max_bw.update(sample.rate);
        }
    }

    pub(super) fn bound_bw(&mut self) {
        self.bw = self.max_bw.get().min(self.bw_shortterm);
    }
}

impl Bbr {
    /// §5.5.9.
    pub(super) fn update_ack_aggregation(&mut self, sample: &Sample) {
        let bw = self.model.bw;
        let round = self.model.round.count;
        let aggregation = &mut self.model.aggregation;
        let interval = sample.now.saturating_duration_since(aggregation.start);
        let mut expected = volume(bw, interval);
        if aggregation.delivered <= expected {
            aggregation.delivered = 0;
            aggregation.start = sample.now;
            expected = 0;
        }
        aggregation.delivered = aggregation.delivered.saturating_add(sample.newly_acked);
        let extra = (aggregation.delivered - expected.min(aggregation.delivered)).min(self.window);
        let window = if self.full_pipe.reached {
            EXTRA_ACKED_ROUNDS
        } else {
            1
        };
        aggregation.filter.update(extra, round, window);
    }

    /// So many times what the path holds at rate `bw`.
    pub(super) fn bdp_multiple(&self, bw: u64, gain: Gain) -> u64 {
        match self.model.min_rtt {
            Some(min_rtt) => gain.of(volume(bw, min_rtt)),
            None => self.initial_window,
        }
    }

    /// The bandwidth-delay product.
    pub(super) fn bdp(&self) -> u64 {
        self.bdp_multiple(self.model.bw, Gain::ONE)
    }

    /// What must be in flight at least, however small the path is, for the sender to send and the
    /// receiver to acknowledge in trains.
    fn quantization_budget(&self, inflight: u64) -> u64 {
        let budget = inflight
            .max(self.send_quantum())
            .max(self.min_pipe_window());
        if self.state == State::Up {
            budget.saturating_add(2 * self.datagram_size)
        } else {
            budget
        }
    }

    /// Returns what has to be in flight to fill the path at rate `bw` without a queue.
    pub(super) fn inflight(&self, bw: u64) -> u64 {
        self.quantization_budget(self.bdp_multiple(bw, Gain::ONE))
    }

    /// The most that may be in flight by the model (§5.6.4.2).
    pub(super) fn max_inflight(&self) -> u64 {
        let inflight = self
            .bdp_multiple(self.model.bw, self.state.window_gain())
            .saturating_add(self.model.aggregation.extra_acked());
        self.quantization_budget(inflight)
    }

    /// The volume that was found to be the limit, less some room for others.
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        let limit = self.model.inflight_longterm;
        if limit == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = Gain::HEADROOM.of(limit).max(self.datagram_size);
        limit.saturating_sub(headroom).max(self.min_pipe_window())
    }

    /// What should be in flight: what the path holds, unless congestion cut the window below it.
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp().min(self.window)
    }
}
