//! The turns of a loop: their number, and their scheduled times.

use tokio::time::Instant;

use super::arrivals::Arrivals;
use crate::scenario;

/// Remaining turns of a loop.
pub(crate) struct Turns {
    /// Number of turns; `None` if only time limits it.
    left: Option<u64>,
    end: Option<Instant>,
    /// Scheduled times; `None` for a closed loop, in which a turn begins when it can.
    arrivals: Option<Arrivals>,
    /// Number of turns that begin together, and of those left.
    burst: u32,
    left_of_burst: u32,
}

impl Turns {
    /// Returns turns that begin when they can.
    pub(crate) fn closed(left: Option<u64>) -> Self {
        Self {
            left,
            end: None,
            arrivals: None,
            burst: 1,
            left_of_burst: 1,
        }
    }

    /// Returns `rate` turns a second; without a rate, like [`closed`](Self::closed).
    pub(crate) fn new(left: Option<u64>, rate: Option<f64>, spacing: scenario::Arrivals) -> Self {
        Self {
            arrivals: rate.map(|rate| Arrivals::new(Instant::now(), rate, spacing)),
            ..Self::closed(left)
        }
    }

    pub(crate) fn of<T>(iterate: &scenario::Iterate<T>) -> Self {
        let spacing = scenario::Arrivals::Constant;
        Self {
            end: iterate.time.map(|time| Instant::now() + time),
            ..Self::new(iterate.times, iterate.rate, spacing)
        }
    }

    pub(crate) fn in_bursts(self, of: u32) -> Self {
        Self {
            burst: of.max(1),
            left_of_burst: of.max(1),
            ..self
        }
    }

    /// Returns true if turns have scheduled times.
    pub(crate) fn is_open(&self) -> bool {
        self.arrivals.is_some()
    }

    /// Returns the time of the next turn; `None` if there is none.
    pub(crate) fn due(&self) -> Option<Instant> {
        let due = match &self.arrivals {
            Some(arrivals) => arrivals.due(),
            None => Instant::now(),
        };
        let is_over = self.left == Some(0) || self.end.is_some_and(|end| due >= end);
        (!is_over).then_some(due)
    }

    /// Notes that the next turn has begun.
    pub(crate) fn advance(&mut self) {
        self.left = self.left.map(|left| left.saturating_sub(1));
        self.left_of_burst -= 1;
        if self.left_of_burst == 0 {
            self.left_of_burst = self.burst;
            if let Some(arrivals) = &mut self.arrivals {
                arrivals.advance();
            }
        }
    }

    /// Returns the number of remaining turns that were due before.
    pub(crate) fn count_due(mut self, before: Instant) -> u64 {
        let mut count = 0;
        while self.is_open() && self.due().is_some_and(|due| due < before) {
            self.advance();
            count += 1;
        }
        count
    }
}
