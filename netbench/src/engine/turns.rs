//! The turns of a loop: how many there are, and when each should begin.

use tokio::time::Instant;

use super::arrivals::Arrivals;
use crate::scenario;

/// Turns that are left of a loop.
pub(super) struct Turns {
    /// `None`: as many as there is time for.
    left: Option<u64>,
    end: Option<Instant>,
    /// `None`: a closed loop, in which a turn begins when it can.
    arrivals: Option<Arrivals>,
    /// Turns that begin together, and those left of them.
    burst: u32,
    left_of_burst: u32,
}

impl Turns {
    /// Turns that begin when they can.
    pub(super) fn closed(left: Option<u64>) -> Self {
        Self {
            left,
            end: None,
            arrivals: None,
            burst: 1,
            left_of_burst: 1,
        }
    }

    /// `rate` a second; without one, as [`closed`](Self::closed).
    pub(super) fn new(left: Option<u64>, rate: Option<f64>, spacing: scenario::Arrivals) -> Self {
        Self {
            arrivals: rate.map(|rate| Arrivals::new(Instant::now(), rate, spacing)),
            ..Self::closed(left)
        }
    }

    pub(super) fn of<T>(iterate: &scenario::Iterate<T>) -> Self {
        let spacing = scenario::Arrivals::Constant;
        Self {
            end: iterate.time.map(|time| Instant::now() + time),
            ..Self::new(iterate.times, iterate.rate, spacing)
        }
    }

    pub(super) fn in_bursts(self, of: u32) -> Self {
        Self {
            burst: of.max(1),
            left_of_burst: of.max(1),
            ..self
        }
    }

    /// Returns true if turns have a time at which they should begin.
    pub(super) fn is_open(&self) -> bool {
        self.arrivals.is_some()
    }

    /// When the next turn should begin; `None`: there is none.
    pub(super) fn due(&self) -> Option<Instant> {
        let due = match &self.arrivals {
            Some(arrivals) => arrivals.due(),
            None => Instant::now(),
        };
        let is_over = self.left == Some(0) || self.end.is_some_and(|end| due >= end);
        (!is_over).then_some(due)
    }

    /// The next turn has begun.
    pub(super) fn advance(&mut self) {
        self.left = self.left.map(|left| left.saturating_sub(1));
        self.left_of_burst -= 1;
        if self.left_of_burst == 0 {
            self.left_of_burst = self.burst;
            if let Some(arrivals) = &mut self.arrivals {
                arrivals.advance();
            }
        }
    }

    /// Returns the number of turns left that should have begun before.
    pub(super) fn count_due(mut self, before: Instant) -> u64 {
        let mut count = 0;
        while self.is_open() && self.due().is_some_and(|due| due < before) {
            self.advance();
            count += 1;
        }
        count
    }
}
