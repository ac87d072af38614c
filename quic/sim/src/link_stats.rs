use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hybriq_tls::Side;

use super::node::Both;

/// What a link counted, readable while the link is part of a network and after. Clones see the same
/// counters.
#[derive(Clone, Debug, Default)]
pub struct LinkStats(Arc<Mutex<Both<LinkReport>>>);

impl LinkStats {
    /// Nothing counted yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was counted for one direction.
    pub fn toward(&self, side: Side) -> LinkReport {
        self.lock().toward(side).clone()
    }

    /// Starts counting anew, say when a warm-up is over.
    pub fn clear(&self) {
        *self.lock() = Both::default();
    }

    pub(super) fn update(&self, toward: Side, change: impl FnOnce(&mut LinkReport)) {
        change(self.lock().toward_mut(toward));
    }

    fn lock(&self) -> MutexGuard<'_, Both<LinkReport>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Treatment of one datagram by a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    /// It goes on with CE.
    Mark,
    Drop,
}

/// What one direction of a link did.
#[derive(Clone, Debug, Default)]
pub struct LinkReport {
    /// Datagrams carried.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Datagrams dropped, by a full queue or by an AQM.
    pub dropped: u64,
    /// Datagrams that were marked CE.
    pub marked: u64,
    /// How long the queue was: of a [`Bandwidth`](super::Bandwidth) over time, of a
    /// [`DualQueue`](super::DualQueue) as its classic datagrams met it.
    pub delay: Delays,
    /// How long the datagrams of a [`DualQueue`](super::DualQueue)'s L queue waited.
    pub low_latency_delay: Delays,
    /// Most bytes that waited.
    pub most_queued: u64,
}

/// Parts of an octave that are told apart: a percentile is exact to 1/32, or to a microsecond.
const PARTS: u64 = 1 << PART_BITS;
const PART_BITS: u32 = 5;

/// Delays that differ by less than 2^10 ns are not told apart.
const FINEST: u32 = 10;

/// A distribution of queue delays.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    /// Weights by delay, two digits of its logarithm.
    weights: Vec<u64>,
    weight: u64,
    /// Sum of delay times weight.
    sum: u128,
    most: u64,
}

impl Delays {
    /// Notes that one datagram waited so long.
    pub(super) fn on_datagram(&mut self, delay: Duration) {
        let nanos = delay.as_nanos() as u64;
        self.most = self.most.max(nanos);
        self.sum += u128::from(nanos);
        self.add(nanos, 1);
    }

    /// Notes a queue that drained from `from` for `span`, and was empty from then on if it is
    /// longer: every nanosecond counts with the delay that it saw.
    pub(super) fn on_drain(&mut self, from: Duration, span: Duration) {
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

    /// Datagrams or nanoseconds that were counted.
    pub(super) const fn weight(&self) -> u64 {
        self.weight
    }

    /// The mean.
    pub fn mean(&self) -> Duration {
        let weight = u128::from(self.weight.max(1));
        Duration::from_nanos((self.sum / weight) as u64)
    }

    /// The largest.
    pub const fn max(&self) -> Duration {
        Duration::from_nanos(self.most)
    }

    /// What so many per cent were at or below; exact to a thirtieth.
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

/// The smallest delay of a bucket.
const fn floor(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PARTS {
        return bucket << FINEST;
    }
    (PARTS | (bucket & (PARTS - 1))) << ((bucket >> PART_BITS) - 1 + FINEST as u64)
}
