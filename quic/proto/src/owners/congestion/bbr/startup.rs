//! Startup and Drain (draft §5.3.1, §5.3.2): double the rate each round until the path is full,
//! then drain the queue that this built up.

use super::{
    Bbr, Resume, Sample, State,
    params::{DRAIN_ROUNDS, FULL_PIPE_ROUNDS, Gain, STARTUP_LOSS_RANGES, STARTUP_MARKED_ROUNDS},
};
use crate::owners::congestion::delivery::rate;

/// Detection of a full path: a delivery rate that no longer grows with the sending rate (§5.3.1.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// True if the path was ever full.
    pub(super) reached: bool,
    /// True if the path was found full since the search last began.
    pub(super) now: bool,
    /// Rate to exceed.
    baseline: u64,
    /// Rounds that did not exceed it.
    pub(super) rounds: u8,
}

impl FullPipe {
    /// Restarts the search with `baseline` as the rate to exceed.
    pub(super) fn restart(&mut self, baseline: u64) {
        self.now = false;
        self.baseline = baseline;
        self.rounds = 0;
    }

    /// Compares the rate of a round with the baseline. A round without a sample, or limited by the
    /// application, is ignored.
    pub(super) fn on_round(&mut self, sample: &Sample) {
        if self.now || sample.app_limited || sample.rate == 0 {
            return;
        }
        if sample.rate >= Gain::GROWTH.of(self.baseline) {
            self.restart(sample.rate);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= FULL_PIPE_ROUNDS;
        self.reached |= self.now;
    }
}

impl Bbr {
    pub(super) fn check_startup_done(&mut self, sample: &Sample) {
        self.check_startup_congestion(sample);
        if self.state == State::Startup && self.full_pipe.reached {
            self.enter_drain();
        }
    }

    /// Considers the path full after losses throughout a round, or marks in two rounds (§5.3.1.3).
    /// The draft has no rule for marks.
    fn check_startup_congestion(&mut self, sample: &Sample) {
        if self.state != State::Startup || !self.signals.round_started {
            return;
        }
        let lossy = self.signals.lost_ranges >= STARTUP_LOSS_RANGES
            && self.is_inflight_too_high(sample.lost, sample.tx_in_flight);
        if !lossy && self.signals.startup_marked_rounds < STARTUP_MARKED_ROUNDS {
            return;
        }
        self.undo.state = Some(State::Startup);
        self.full_pipe.reached = true;
        self.full_pipe.now = true;
        self.model.inflight_longterm = self.bdp().max(self.signals.inflight_latest);
    }

    /// Sets the window (RFC 9959). In Startup the rate follows, so that the window can be used;
    /// after a jump that was too large, its measurements are the only ones, and Startup ends.
    pub(super) fn handle_resume(&mut self, resume: &Resume) {
        let is_jump = resume.window > self.window;
        self.window = resume.window;
        let (State::Startup, Some(rtt)) = (self.state, self.smoothed_rtt) else {
            return;
        };
        if resume.slow_start_threshold.is_some() && self.model.bw > 0 {
            self.full_pipe.reached = true;
            self.enter_drain();
            self.set_pacing_rate(self.state.pacing_gain());
            return;
        }
        let resumed = rate(resume.window, rtt).max(Gain::STARTUP_PACING.of(self.model.bw));
        self.pacing_rate = if is_jump {
            self.pacing_rate.max(resumed)
        } else {
            resumed.max(self.datagram_size)
        };
    }

    fn enter_drain(&mut self) {
        self.state = State::Drain;
        self.drain_start_round = self.model.round.count;
    }

    /// Ends Drain once the queue is gone, or once it cannot drain because the bandwidth was
    /// overestimated.
    pub(super) fn check_drain_done(&mut self, sample: &Sample) {
        if self.state == State::Drain
            && (sample.in_flight <= self.inflight(self.model.bw)
                || self.model.round.count > self.drain_start_round + DRAIN_ROUNDS)
        {
            self.start_down(sample.now);
        }
    }
}
