//! Counters of links, and distributions of their delays.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hybriq_tls::Side;

use super::node::Both;

/// Counters of a link, readable during and after its time in a network. Clones share the counters.
#[derive(Clone, Debug, Default)]
pub struct LinkStats(Arc<Mutex<Both<LinkReport>>>);

impl LinkStats {
    /// Creates empty counters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the counters of one direction.
    pub fn toward(&self, side: Side) -> LinkReport {
        self.lock().toward(side).clone()
    }

    /// Resets the counters, for example after a warm-up.
    pub fn clear(&self) {
        *self.lock() = Both::default();
    }

    pub(crate) fn update(&self, toward: Side, change: impl FnOnce(&mut LinkReport)) {
        change(self.lock().toward_mut(toward));
    }

    fn lock(&self) -> MutexGuard<'_, Both<LinkReport>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Treatment of one datagram by a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    /// The datagram passes with CE.
    Mark,
    Drop,
}

/// Counters of one direction of a link.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LinkReport {
    /// Number of datagrams carried.
    pub datagrams: u64,
    /// Number of their bytes.
    pub bytes: u64,
    /// Number of datagrams dropped.
    pub dropped: u64,
    /// Number of datagrams marked CE.
    pub marked: u64,
    /// Queue delay: of a [`Bandwidth`](crate::Bandwidth) over time, of a
    /// [`DualQueue`](crate::DualQueue) for the datagrams in its C queue.
    pub delay: Delays,
    /// Delay of the datagrams in the L queue of a [`DualQueue`](crate::DualQueue).
    pub low_latency_delay: Delays,
    /// Maximum number of queued bytes.
    pub most_queued: u64,
}

/// Number of buckets in an octave: a percentile is exact to 1/32, or to a microsecond.
const PARTS: u64 = 1 << PART_BITS;
const PART_BITS: u32 = 5;

/// Binary logarithm of the finest delay in nanoseconds that is distinguished.
const FINEST: u32 = 10;

/// A distribution of queue delays.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Delays {
    /// Weights by delay, on a logarithmic scale.
    weights: Vec<u64>,
    weight: u64,
    /// Sum of delay times weight.
    sum: u128,
    most: u64,
}

impl Delays {
    /// Adds the delay of one datagram.
    pub(crate) fn on_datagram(&mut self, delay: Duration) {
        let nanos = delay.as_nanos() as u64;
        self.most = self.most.max(nanos);
        self.sum += u128::from(nanos);
        self.add(nanos, 1);
    }

    /// Adds a queue that drained from `from` for `span`, and was empty afterwards if `span` is
    /// longer: every nanosecond counts with its delay.
    pub(crate) fn on_drain(&mut self, from: Duration, span: Duration) {
        let (high, span) = (from.as_nanos() as u64, span.as_nanos() as u64);
        let low = high.saturating_sub(span);
        self.most = self.most.max(high);
        self.sum += u128::from(high - low) * u128::from(high + low) / 2;
        if span > high {
            self.add(0, span - high);
        }
        let mut end = high;
        while end > low {
            let start = floor(bucket(end - 1)).max(low);
            self.add(start, end - start);
            end = start;
        }
    }

    fn add(&mut self, nanos: u64, weight: u64) {
        let bucket = bucket(nanos);
        if self.weights.len() <= bucket {
            self.weights.resize(bucket + 1, 0);
        }
        if let Some(entry) = self.weights.get_mut(bucket) {
            *entry += weight;
        }
        self.weight += weight;
    }

    /// Returns the number of datagrams or nanoseconds counted.
    pub(crate) const fn weight(&self) -> u64 {
        self.weight
    }

    /// Returns the mean.
    pub fn mean(&self) -> Duration {
        let weight = u128::from(self.weight.max(1));
        Duration::from_nanos((self.sum / weight) as u64)
    }

    /// Returns the maximum.
    pub const fn max(&self) -> Duration {
        Duration::from_nanos(self.most)
    }

    /// Returns the delay that this percentage did not exceed; exact to within a thirtieth.
    pub fn percentile(&self, percent: u8) -> Duration {
        let wanted = u128::from(self.weight) * u128::from(percent);
        let mut seen = 0;
        for (bucket, weight) in self.weights.iter().enumerate() {
            seen += u128::from(*weight) * 100;
            if seen >= wanted && seen > 0 {
                let above = if bucket == 0 { 0 } else { floor(bucket + 1) };
                return Duration::from_nanos(above.min(self.most));
            }
        }
        self.max()
    }
}

const fn bucket(nanos: u64) -> usize {
    let units = nanos >> FINEST;
    if units < PARTS {
        return units as usize;
    }
    let exponent = units.ilog2() - PART_BITS;
    (((exponent as u64 + 1) << PART_BITS) | ((units >> exponent) & (PARTS - 1))) as usize
}

/// Returns the smallest delay of a bucket.
const fn floor(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PARTS {
        return bucket << FINEST;
    }
    (PARTS | (bucket & (PARTS - 1))) << ((bucket >> PART_BITS) - 1 + FINEST as u64)
}
