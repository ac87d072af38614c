//! How often, and how fast, something is repeated.

use std::time::Duration;

use crate::scenario::Iterate;

/// How often, and how fast, something is repeated.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    times: Option<u64>,
    time: Option<Duration>,
    rate: Option<f64>,
    concurrency: u32,
}

impl Turns {
    /// Until the measurement ends.
    pub fn endless() -> Self {
        Self {
            times: None,
            time: None,
            rate: None,
            concurrency: 1,
        }
    }

    /// So many times.
    pub fn times(times: u64) -> Self {
        Self {
            times: Some(times),
            ..Self::endless()
        }
    }

    /// For so long.
    pub fn lasting(time: Duration) -> Self {
        Self {
            time: Some(time),
            ..Self::endless()
        }
    }

    /// Open loop: so many begin every second.
    #[must_use]
    pub fn rate(self, turns: f64) -> Self {
        Self {
            rate: Some(turns),
            ..self
        }
    }

    /// How many may be under way at once.
    #[must_use]
    pub fn concurrency(self, turns: u32) -> Self {
        Self {
            concurrency: turns,
            ..self
        }
    }

    pub(super) fn of<T>(self, ops: Vec<T>) -> Iterate<T> {
        Iterate {
            times: self.times,
            time: self.time,
            rate: self.rate,
            concurrency: self.concurrency,
            ops,
        }
    }
}
