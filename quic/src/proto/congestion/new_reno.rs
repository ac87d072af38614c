use std::time::Instant;

use super::{Acked, Controller, Lost, Marked, Phase, Severity, Usage, initial_window};

#[cfg(test)]
mod tests;

/// NewReno as RFC 9002 §7 describes it.
#[derive(Clone, Debug)]
pub struct NewReno {
    datagram_size: u64,
    window: u64,
    /// Above it the window grows by one datagram per round trip, below it doubles.
    slow_start_threshold: u64,
    /// Packets sent up to then belong to a loss that was already answered.
    recovery_start: Option<Instant>,
    in_recovery: bool,
    /// Bytes acknowledged in congestion avoidance since the window grew last.
    acked: u64,
}

impl NewReno {
    /// Starts with the initial window of RFC 9002 §7.2.
    pub fn new(datagram_size: u16) -> Self {
        let datagram_size = u64::from(datagram_size);
        Self {
            datagram_size,
            window: initial_window(datagram_size),
            slow_start_threshold: u64::MAX,
            recovery_start: None,
            in_recovery: false,
            acked: 0,
        }
    }

    const fn minimum_window(&self) -> u64 {
        2 * self.datagram_size
    }

    /// Whether packets sent then belong to congestion that was already answered (RFC 9002 §7.3.2).
    fn is_answered(&self, time_sent: Instant) -> bool {
        self.recovery_start.is_some_and(|start| time_sent <= start)
    }

    fn reduce(&mut self, now: Instant) {
        self.recovery_start = Some(now);
        self.window = (self.window / 2).max(self.minimum_window());
        self.slow_start_threshold = self.window;
        self.acked = 0;
        self.in_recovery = true;
    }
}

impl Controller for NewReno {
    fn on_acked(&mut self, acked: &Acked) {
        if self.is_answered(acked.newest_sent) {
            return;
        }
        self.in_recovery = false;
        if acked.usage == Usage::Underused {
            return;
        }
        if self.window < self.slow_start_threshold {
            self.window = self.window.saturating_add(acked.bytes);
            return;
        }
        self.acked = self.acked.saturating_add(acked.bytes);
        if self.acked >= self.window {
            self.acked -= self.window;
            self.window = self.window.saturating_add(self.datagram_size);
        }
    }

    fn on_lost(&mut self, lost: &Lost<'_>) {
        if !self.is_answered(lost.newest_sent) {
            self.reduce(lost.now);
        }
        if lost.severity == Severity::PersistentCongestion {
            self.window = self.minimum_window();
            self.recovery_start = None;
            self.acked = 0;
            self.in_recovery = false;
        }
    }

    fn on_marked(&mut self, marked: &Marked) {
        if !self.is_answered(marked.newest_sent) {
            self.reduce(marked.now);
        }
    }

    fn on_datagram_size(&mut self, bytes: u16) {
        self.datagram_size = u64::from(bytes);
        self.window = self.window.max(self.minimum_window());
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn phase(&self) -> Phase {
        if self.in_recovery {
            Phase::Recovery
        } else if self.window < self.slow_start_threshold {
            Phase::SlowStart
        } else {
            Phase::Avoidance
        }
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        (self.slow_start_threshold != u64::MAX).then_some(self.slow_start_threshold)
    }

    fn name(&self) -> &'static str {
        "NewReno"
    }
}
