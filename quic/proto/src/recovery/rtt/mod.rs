//! Estimation of the round-trip time.

use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// The finest time that timers are expected to resolve (RFC 9002 §6.1.2).
pub(super) const GRANULARITY: Duration = Duration::from_millis(1);

/// The estimated round trip of a path (RFC 9002 §5).
#[derive(Clone, Debug)]
pub struct Rtt {
    latest: Duration,
    smoothed: Duration,
    variance: Duration,
    min: Duration,
    first_sample: Option<Instant>,
}

impl Rtt {
    /// Before anything was measured: a guess (RFC 9002 §6.2.2), taken as a minute at most.
    pub fn new(initial: Duration) -> Self {
        let initial = initial.min(Duration::from_secs(60));
        Self {
            latest: initial,
            smoothed: initial,
            variance: initial / 2,
            min: initial,
            first_sample: None,
        }
    }

    /// Takes a sample, from sending to the acknowledgement, and how long of it the peer says it
    /// waited. The delay is believed only as far as the smallest round trip allows (§5.3).
    pub(super) fn on_sample(&mut self, now: Instant, sample: Duration, ack_delay: Duration) {
        self.latest = sample;
        if self.first_sample.is_none() {
            self.first_sample = Some(now);
            self.min = sample;
            self.smoothed = sample;
            self.variance = sample / 2;
            return;
        }
        self.min = self.min.min(sample);
        let adjusted = match sample.checked_sub(ack_delay) {
            Some(adjusted) if adjusted >= self.min => adjusted,
            _ => sample,
        };
        let deviation = self.smoothed.abs_diff(adjusted);
        self.variance = self.variance.saturating_mul(3) / 4 + deviation / 4;
        self.smoothed = self.smoothed.saturating_mul(7) / 8 + adjusted / 8;
    }

    /// Forgets the minimum: after persistent congestion the path may be another one (§5.2).
    pub(super) fn on_persistent_congestion(&mut self) {
        self.min = self.latest;
    }

    /// The last sample.
    pub const fn latest(&self) -> Duration {
        self.latest
    }

    /// The moving average.
    pub const fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The mean deviation.
    pub const fn variance(&self) -> Duration {
        self.variance
    }

    /// The smallest sample.
    pub const fn min(&self) -> Duration {
        self.min
    }

    /// When the first sample was taken; `None` while all is guessed.
    pub const fn first_sample(&self) -> Option<Instant> {
        self.first_sample
    }

    /// The probe timeout without the peer's delay and without backoff (§6.2.1).
    pub fn pto(&self) -> Duration {
        self.smoothed
            .saturating_add(self.variance.saturating_mul(4).max(GRANULARITY))
    }

    /// The round trip that the time threshold of loss detection is a multiple of (§6.1.2).
    pub fn larger(&self) -> Duration {
        self.latest.max(self.smoothed)
    }
}
