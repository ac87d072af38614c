//! Control parameters of the sender (draft §5.6): pacing rate, send quantum and window.

use std::time::{Duration, Instant};

use super::{
    Bbr, Sample, State,
    params::{Gain, MAX_SEND_QUANTUM, MIN_PIPE_DATAGRAMS, UNBOUNDED, volume},
};
use crate::owners::congestion::delivery::rate;

impl Bbr {
    pub(super) fn min_pipe_window(&self) -> u64 {
        MIN_PIPE_DATAGRAMS * self.datagram_size
    }

    /// Returns the largest burst (§5.6.3), which is a lower bound of the bytes in flight.
    pub(super) fn send_quantum(&self) -> u64 {
        volume(self.pacing_rate, Duration::from_millis(1))
            .min(MAX_SEND_QUANTUM)
            .max(2 * self.datagram_size)
    }

    /// Sets the rate until the bandwidth is known: the initial window per round trip, times the
    /// gain of Startup (§5.6.2).
    pub(super) fn init_pacing_rate(&mut self, rtt: Duration) {
        let rtt = if rtt.is_zero() {
            Duration::from_millis(1)
        } else {
            rtt
        };
        self.pacing_rate = Gain::STARTUP_PACING.of(rate(self.initial_window, rtt));
    }

    /// Sets the pacing rate. Until the path was full it only rises, so that an application with
    /// little to send is not mistaken for a slow path. It is never zero; otherwise the flow would
    /// not notice that the path recovered.
    pub(super) fn set_pacing_rate(&mut self, gain: Gain) {
        let rate = Gain::PACING_MARGIN.of(gain.of(self.model.bw));
        if self.full_pipe.reached || rate > self.pacing_rate {
            self.pacing_rate = rate.max(self.datagram_size);
        }
    }

    /// Sets the window (§5.6.4.6).
    pub(super) fn set_window(&mut self, sample: &Sample) {
        let max_inflight = self.max_inflight();
        let grown = self.window.saturating_add(sample.newly_acked);
        if self.full_pipe.reached {
            self.window = grown.min(max_inflight);
        } else if self.window < max_inflight || sample.total_delivered < self.initial_window {
            self.window = grown;
        }
        self.window = self.window.max(self.min_pipe_window());
        if self.state == State::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        self.bound_window_for_model();
    }

    /// Bounds the window by the model (§5.6.4.7).
    fn bound_window_for_model(&mut self) {
        let longterm = match self.state {
            State::Startup | State::Drain => UNBOUNDED,
            State::Down | State::Refill | State::Up => self.model.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
        };
        let bound = longterm
            .min(self.model.inflight_shortterm)
            .max(self.min_pipe_window());
        self.window = self.window.min(bound);
    }

    /// Remembers the last window that neither losses nor ProbeRTT had reduced (§5.6.4.4).
    pub(super) fn save_window(&mut self) {
        self.prior_window = if !self.in_recovery && self.state != State::ProbeRtt {
            self.window
        } else {
            self.prior_window.max(self.window)
        };
    }

    pub(super) fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }

    /// Ends recovery once a packet sent since it began is acknowledged.
    pub(super) fn check_recovery_done(&mut self, newest_sent: Instant) {
        if self.in_recovery && self.episode.is_none_or(|start| newest_sent > start) {
            self.in_recovery = false;
            self.restore_window();
        }
    }

    /// Continues after idle time at the known rate, without a burst and without a probe (§5.4).
    pub(super) fn handle_restart_from_idle(&mut self, now: Instant) {
        self.idle_restart = true;
        self.model.aggregation.restart(now);
        if self.state.is_probe_bw() {
            self.set_pacing_rate(Gain::ONE);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }
}
