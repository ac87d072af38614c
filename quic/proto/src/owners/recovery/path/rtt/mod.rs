//! Estimation of the round-trip time.

use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// Finest resolution that timers are expected to have (RFC 9002 §6.1.2).
pub(in crate::owners::recovery) const GRANULARITY: Duration = Duration::from_millis(1);

/// Estimated round trip of a path (RFC 9002 §5).
#[derive(Clone, Debug)]
pub struct Rtt {
    latest: Duration,
    smoothed: Duration,
    variance: Duration,
    min: Duration,
    /// Probe timeout by these values, which every packet needs and few change.
    pto: Duration,
    first_sample: Option<Instant>,
}

impl Rtt {
    /// Creates an estimate from an initial guess (RFC 9002 §6.2.2), of at most one minute.
    pub fn new(initial: Duration) -> Self {
        let initial = initial.min(Duration::from_secs(60));
        let variance = initial / 2;
        Self {
            latest: initial,
            smoothed: initial,
            variance,
            min: initial,
            pto: pto(initial, variance),
            first_sample: None,
        }
    }

    /// Takes a sample, from sending to acknowledgement, and the peer's reported delay, which is
    /// limited so that the result is no less than the smallest round trip (§5.3).
    pub(in crate::owners::recovery) fn on_sample(
        &mut self,
        now: Instant,
        sample: Duration,
        ack_delay: Duration,
    ) {
        self.latest = sample;
        if self.first_sample.is_none() {
            self.first_sample = Some(now);
            self.min = sample;
            self.smoothed = sample;
            self.variance = sample / 2;
            self.pto = pto(self.smoothed, self.variance);
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
        self.pto = pto(self.smoothed, self.variance);
    }

    /// Forgets the minimum, because after persistent congestion the path may be a different one
    /// (§5.2).
    pub(in crate::owners::recovery) fn on_persistent_congestion(&mut self) {
        self.min = self.latest;
    }

    /// Returns the last sample.
    pub const fn latest(&self) -> Duration {
        self.latest
    }

    /// Returns the moving average.
    pub const fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// Returns the mean deviation.
    pub const fn variance(&self) -> Duration {
        self.variance
    }

    /// Returns the smallest sample.
    pub const fn min(&self) -> Duration {
        self.min
    }

    /// Returns the time of the first sample, or `None` until there is one.
    pub const fn first_sample(&self) -> Option<Instant> {
        self.first_sample
    }

    /// Returns the probe timeout without the peer's delay and without backoff (§6.2.1).
    pub const fn pto(&self) -> Duration {
        self.pto
    }

    /// Returns the round trip that the time threshold of loss detection is based on (§6.1.2).
    pub fn larger(&self) -> Duration {
        self.latest.max(self.smoothed)
    }
}

fn pto(smoothed: Duration, variance: Duration) -> Duration {
    smoothed.saturating_add(variance.saturating_mul(4).max(GRANULARITY))
}
