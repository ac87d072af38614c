use std::time::Instant;

use super::{Acked, Controller, Lost, Sent, Severity, Usage};

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
    /// Bytes acknowledged in congestion avoidance since the window grew last.
    acked: u64,
}

impl NewReno {
    /// Starts with the initial window of RFC 9002 §7.2.
    pub fn new(datagram_size: u16) -> Self {
        let datagram_size = u64::from(datagram_size);
        Self {
            datagram_size,
            window: (10 * datagram_size).min((2 * datagram_size).max(14_720)),
            slow_start_threshold: u64::MAX,
            recovery_start: None,
            acked: 0,
        }
    }

    const fn minimum_window(&self) -> u64 {
        2 * self.datagram_size
    }
}

impl Controller for NewReno {
    fn on_sent(&mut self, _: &Sent) {}

    fn on_acked(&mut self, acked: &Acked) {
        if acked.usage == Usage::Underused
            || self
                .recovery_start
                .is_some_and(|start| acked.time_sent <= start)
        {
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

    fn on_lost(&mut self, lost: &Lost) {
        if self
            .recovery_start
            .is_none_or(|start| lost.time_sent > start)
        {
            self.recovery_start = Some(lost.now);
            self.window = (self.window / 2).max(self.minimum_window());
            self.slow_start_threshold = self.window;
            self.acked = 0;
        }
        if lost.severity == Severity::PersistentCongestion {
            self.window = self.minimum_window();
            self.recovery_start = None;
            self.acked = 0;
        }
    }

    fn on_datagram_size(&mut self, bytes: u16) {
        self.datagram_size = u64::from(bytes);
        self.window = self.window.max(self.minimum_window());
    }

    fn window(&self) -> u64 {
        self.window
    }
}
