//! State shared by the classic congestion controllers.

pub(super) mod cubic;
pub(super) mod hystart;
pub(super) mod new_reno;
pub(super) mod prr;

use std::{fmt, time::Instant};

use self::{
    hystart::{Growth, HyStart},
    prr::Prr,
};
use super::{
    Acked, Controller, Lost, Marked, Phase, Resume, Sent, Severity, Spurious, Usage, initial_window,
};

#[cfg(test)]
mod tests;

/// Cause of a reduction of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// A packet was lost.
    Loss,
    /// A packet was marked with CE.
    Mark,
}

/// Growth in congestion avoidance and reduction on congestion: the part in which the Classic
/// controllers (RFC 9330 §2) differ.
pub trait Avoidance: Clone + Default + fmt::Debug + Send {
    /// Name of the controller.
    const NAME: &'static str;

    /// Returns the window after congestion, before it is bounded by the minimum.
    fn on_congestion(&mut self, window: u64, cause: Cause) -> u64;

    /// Resets the state when slow start begins again from a small window.
    fn on_persistent_congestion(&mut self);

    /// Resets the state when the window was set from outside.
    fn on_resume(&mut self);

    /// Returns the window after an acknowledgement with a full window.
    fn on_acked(&mut self, window: u64, acked: &Acked, datagram_size: u64) -> u64;

    /// Notes that the window was not used until now, so that this time does not let it grow.
    fn on_unused(&mut self, now: Instant);
}

/// A controller that reduces its window on a loss or a mark, once a round trip (RFC 9002 §7): slow
/// start with HyStart++ (RFC 9406), recovery with PRR (RFC 9937), and an undo of spurious losses.
#[derive(Clone, Debug)]
pub struct Classic<A> {
    datagram_size: u64,
    /// Bytes that may be in flight; during recovery, the bytes that may be in flight after it.
    window: u64,
    /// Window below which it doubles each round trip.
    slow_start_threshold: u64,
    slow_start: HyStart,
    avoidance: A,
    /// Send time up to which packets belong to congestion that has already been answered.
    answered: Option<Instant>,
    recovery: Option<Prr>,
    undo: Option<Box<Undo<A>>>,
}

/// State before the last reduction.
#[derive(Clone, Debug)]
struct Undo<A> {
    window: u64,
    slow_start_threshold: u64,
    slow_start: HyStart,
    avoidance: A,
    answered: Option<Instant>,
}

impl<A: Avoidance> Classic<A> {
    /// Starts with the initial window of RFC 9002 §7.2.
    pub fn new(datagram_size: u16) -> Self {
        let datagram_size = u64::from(datagram_size).max(1);
        Self {
            datagram_size,
            window: initial_window(datagram_size),
            slow_start_threshold: u64::MAX,
            slow_start: HyStart::default(),
            avoidance: A::default(),
            answered: None,
            recovery: None,
            undo: None,
        }
    }

    const fn minimum_window(&self) -> u64 {
        2 * self.datagram_size
    }

    /// Returns true if packets sent at `time_sent` belong to congestion that has already been
    /// answered (RFC 9002 §7.3.2).
    fn is_answered(&self, time_sent: Instant) -> bool {
        self.answered.is_some_and(|at| time_sent <= at)
    }

    fn reduce(&mut self, now: Instant, in_flight: u64, cause: Cause) {
        self.window = self
            .avoidance
            .on_congestion(self.window, cause)
            .max(self.minimum_window());
        self.slow_start_threshold = self.window;
        self.answered = Some(now);
        self.recovery = Some(Prr::new(in_flight, self.window));
    }

    fn remember(&mut self) {
        self.undo = Some(Box::new(Undo {
            window: self.window,
            slow_start_threshold: self.slow_start_threshold,
            slow_start: self.slow_start.clone(),
            avoidance: self.avoidance.clone(),
            answered: self.answered,
        }));
    }

    /// Returns the growth in slow start for an acknowledgement. RFC 9406 §4.3 wants HyStart++ only
    /// while the threshold is unknown.
    fn slow_start_growth(&mut self, acked: &Acked) -> u64 {
        if self.slow_start_threshold != u64::MAX {
            return acked.bytes;
        }
        match self.slow_start.on_acked(acked) {
            Growth::By(bytes) => bytes,
            Growth::Over => {
                self.slow_start_threshold = self.window;
                0
            }
        }
    }
}

impl<A: Avoidance> Controller for Classic<A> {
    fn on_sent(&mut self, sent: &Sent) {
        if let Some(recovery) = &mut self.recovery {
            recovery.on_sent(sent.bytes);
        } else if sent.bytes_in_flight == sent.bytes {
            self.avoidance.on_unused(sent.now);
        }
    }

    fn on_acked(&mut self, acked: &Acked) {
        if self.is_answered(acked.newest_sent) {
            if let Some(recovery) = &mut self.recovery {
                recovery.on_acked(acked, self.datagram_size);
            }
            return;
        }
        self.recovery = None;
        let growth = if self.window < self.slow_start_threshold {
            Some(self.slow_start_growth(acked))
        } else {
            None
        };
        match (growth, acked.usage) {
            (_, Usage::Underused) => self.avoidance.on_unused(acked.now),
            (Some(bytes), Usage::Full) => {
                self.window = self
                    .window
                    .saturating_add(bytes)
                    .min(self.slow_start_threshold);
            }
            (None, Usage::Full) => {
                self.window = self
                    .avoidance
                    .on_acked(self.window, acked, self.datagram_size);
            }
        }
    }

    fn on_lost(&mut self, lost: &Lost<'_>) {
        let is_news = !self.is_answered(lost.newest_sent);
        if is_news {
            self.remember();
            self.reduce(lost.now, lost.prior_in_flight, Cause::Loss);
        }
        if let Some(recovery) = &mut self.recovery {
            recovery.on_congestion(lost.bytes_in_flight, self.datagram_size);
        }
        if lost.severity == Severity::PersistentCongestion {
            self.window = self.minimum_window();
            // Packets sent earlier no longer say anything about the path.
            self.answered = Some(lost.now);
            self.recovery = None;
            self.avoidance.on_persistent_congestion();
            if !is_news {
                // The saved state belongs to another loss.
                self.undo = None;
            }
        }
    }

    fn on_marked(&mut self, marked: &Marked) {
        // A mark is congestion even if no packet was lost.
        self.undo = None;
        if self.is_answered(marked.newest_sent) {
            return;
        }
        self.reduce(marked.now, marked.bytes_in_flight, Cause::Mark);
        if let Some(recovery) = &mut self.recovery {
            recovery.on_congestion(marked.bytes_in_flight, self.datagram_size);
        }
    }

    fn on_spurious(&mut self, _: &Spurious) {
        let Some(undo) = self.undo.take() else {
            return;
        };
        self.window = self.window.max(undo.window);
        self.slow_start_threshold = self.slow_start_threshold.max(undo.slow_start_threshold);
        self.slow_start = undo.slow_start;
        self.avoidance = undo.avoidance;
        self.answered = undo.answered;
        self.recovery = None;
    }

    fn on_resume(&mut self, resume: &Resume) {
        self.window = resume.window.max(self.minimum_window());
        if let Some(threshold) = resume.slow_start_threshold {
            self.slow_start_threshold = threshold.max(self.minimum_window());
        }
        self.avoidance.on_resume();
        self.recovery = None;
        self.undo = None;
    }

    fn on_datagram_size(&mut self, bytes: u16) {
        self.datagram_size = u64::from(bytes).max(1);
        self.window = self.window.max(self.minimum_window());
    }

    fn window(&self) -> u64 {
        match &self.recovery {
            Some(recovery) => recovery.window().max(self.minimum_window()),
            None => self.window,
        }
    }

    fn phase(&self) -> Phase {
        if self.recovery.is_some() {
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
        A::NAME
    }
}
