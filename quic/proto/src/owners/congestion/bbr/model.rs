//! Model of the path (draft §5.5): its delivery rate, its round trip, and how much may be in
//! flight.

use std::time::{Duration, Instant};

use super::{
    Bbr, Sample, State,
    filters::{CycleMax, WindowedMax},
    params::{EXTRA_ACKED_ROUNDS, Gain, UNBOUNDED, volume},
};

/// Packet-timed round trips (§5.5.1): one ends when a packet is acknowledged that was sent after
/// the previous one ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    pub(super) count: u64,
    /// True if the acknowledgement being processed begins a round.
    pub(super) started: bool,
    /// Bytes delivered when a packet was sent whose acknowledgement ends the round.
    end: u64,
}

impl Round {
    /// Lets only packets sent from now on end the current round.
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

/// Bytes acknowledged in excess of the estimated bandwidth, as happens when acknowledgements arrive
/// in bursts (§5.5.9).
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

    /// Starts over after idle time, which is not aggregation.
    pub(super) fn restart(&mut self, now: Instant) {
        self.start = now;
    }
}

/// Estimates of the path.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) round: Round,
    /// Bytes per second, the largest of this and the previous probing cycle.
    pub(super) max_bw: CycleMax,
    /// Upper bound of the rate due to losses since the last probe.
    pub(super) bw_shortterm: u64,
    /// Rate in use: the smaller of the two.
    pub(super) bw: u64,
    /// Volume beyond which probes lost too much.
    pub(super) inflight_longterm: u64,
    /// Upper bound of the volume due to losses since the last probe.
    pub(super) inflight_shortterm: u64,
    /// `None` until a round trip was measured.
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

    /// Removes the bounds due to losses since the last probe.
    pub(super) fn reset_short_term(&mut self) {
        self.bw_shortterm = UNBOUNDED;
        self.inflight_shortterm = UNBOUNDED;
    }

    /// Counts rounds, and feeds the delivery rate into the filter (§5.5.5). Samples that the
    /// application limited count only if they exceed the estimate.
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
    /// Updates the estimate of aggregation (§5.5.9).
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

    /// Returns the bandwidth-delay product at rate `bw`, times `gain`.
    pub(super) fn bdp_multiple(&self, bw: u64, gain: Gain) -> u64 {
        match self.model.min_rtt {
            Some(min_rtt) => gain.of(volume(bw, min_rtt)),
            None => self.initial_window,
        }
    }

    /// Returns the bandwidth-delay product.
    pub(super) fn bdp(&self) -> u64 {
        self.bdp_multiple(self.model.bw, Gain::ONE)
    }

    /// Raises `inflight` to what the sender needs for sending, and the receiver for acknowledging,
    /// in trains.
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

    /// Returns the bytes in flight that fill the path at rate `bw` without a queue.
    pub(super) fn inflight(&self, bw: u64) -> u64 {
        self.quantization_budget(self.bdp_multiple(bw, Gain::ONE))
    }

    /// Returns the largest number of bytes in flight that the model allows (§5.6.4.2).
    pub(super) fn max_inflight(&self) -> u64 {
        let inflight = self
            .bdp_multiple(self.model.bw, self.state.window_gain())
            .saturating_add(self.model.aggregation.extra_acked());
        self.quantization_budget(inflight)
    }

    /// Returns the largest volume found, less headroom for other flows.
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        let limit = self.model.inflight_longterm;
        if limit == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = Gain::HEADROOM.of(limit).max(self.datagram_size);
        limit.saturating_sub(headroom).max(self.min_pipe_window())
    }

    /// Returns the number of bytes that should be in flight: the bandwidth-delay product, unless
    /// congestion reduced the window below it.
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp().min(self.window)
    }
}
