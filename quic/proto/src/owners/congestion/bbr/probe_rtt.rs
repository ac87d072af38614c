//! Smallest round trip, and ProbeRTT (draft §5.3.4): after five seconds without a smaller sample
//! the flow empties the queue for a moment, to measure the path itself.

use std::time::{Duration, Instant};

use super::{
    Bbr, Sample, State,
    params::{Gain, MIN_RTT_WINDOW, PROBE_RTT_DURATION, PROBE_RTT_INTERVAL},
    probe_bw::AckPhase,
};

/// Schedule of the next ProbeRTT, and progress of the current one.
#[derive(Clone, Debug)]
pub(super) struct ProbeRtt {
    /// Time at which `min_rtt` was measured.
    min_rtt_stamp: Instant,
    /// Smallest sample of the last [`PROBE_RTT_INTERVAL`].
    min_delay: Option<Duration>,
    min_delay_stamp: Instant,
    expired: bool,
    /// Time at which ProbeRTT may end, once little enough is in flight.
    done: Option<Instant>,
    round_done: bool,
    /// Upper bound of the bytes delivered, starting at `low_from`, at which packets were held back
    /// by ProbeRTT: their rates say nothing about the path.
    low_until: u64,
    low_from: u64,
}

impl ProbeRtt {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            min_rtt_stamp: now,
            min_delay: None,
            min_delay_stamp: now,
            expired: false,
            done: None,
            round_done: false,
            low_until: 0,
            low_from: 0,
        }
    }

    /// Returns true if a packet sent with this many bytes delivered was held back by ProbeRTT.
    pub(super) fn limited(&self, delivered: u64) -> bool {
        delivered >= self.low_from && delivered < self.low_until
    }
}

impl Bbr {
    pub(super) fn update_min_rtt(&mut self, sample: &Sample) {
        let now = sample.now;
        let probe = &mut self.probe_rtt;
        let age = |stamp| now.saturating_duration_since(stamp);
        probe.expired = age(probe.min_delay_stamp) > PROBE_RTT_INTERVAL;
        if let Some(rtt) = sample.rtt {
            if probe.expired || probe.min_delay.is_none_or(|min| rtt < min) {
                probe.min_delay = Some(rtt);
                probe.min_delay_stamp = now;
            }
        }
        let Some(min_delay) = probe.min_delay else {
            return;
        };
        if age(probe.min_rtt_stamp) > MIN_RTT_WINDOW
            || self.model.min_rtt.is_none_or(|min| min_delay < min)
        {
            self.model.min_rtt = Some(min_delay);
            probe.min_rtt_stamp = probe.min_delay_stamp;
        }
    }

    pub(super) fn check_probe_rtt(&mut self, sample: &Sample) {
        if self.state != State::ProbeRtt && self.probe_rtt.expired && !self.idle_restart {
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_rtt.done = None;
            self.probe_rtt.low_from = sample.total_delivered;
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.restart_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(sample);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, sample: &Sample) {
        let in_flight = sample.in_flight;
        self.probe_rtt.low_until = sample
            .total_delivered
            .saturating_add(in_flight)
            .saturating_add(1);
        if self.probe_rtt.done.is_none() {
            if in_flight <= self.probe_rtt_window() {
                self.probe_rtt.done = Some(sample.now + PROBE_RTT_DURATION);
                self.probe_rtt.round_done = false;
                self.restart_round();
            }
            return;
        }
        self.probe_rtt.round_done |= self.model.round.started;
        if self.probe_rtt.round_done {
            self.check_probe_rtt_done(sample.now);
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, now: Instant) {
        if self.probe_rtt.done.is_some_and(|done| now > done) {
            self.probe_rtt.min_delay_stamp = now;
            self.restore_window();
            self.exit_probe_rtt(now);
        }
    }

    /// Returns to cruising: little is in flight, so nothing must be drained first. The next probe
    /// for bandwidth still waits, since raising the volume again may cause losses.
    fn exit_probe_rtt(&mut self, now: Instant) {
        self.model.reset_short_term();
        if self.full_pipe.reached {
            self.start_down(now);
            self.start_cruise();
        } else {
            self.state = State::Startup;
        }
    }

    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.bdp_multiple(self.model.bw, Gain::PROBE_RTT_WINDOW)
            .max(self.min_pipe_window())
    }
}
