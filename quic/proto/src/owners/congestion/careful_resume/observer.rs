//! Capacity of a path as measured for a later connection.

use std::time::{Duration, Instant};

use crate::owners::congestion::{Acked, Usage};

/// Number of round trips to measure before the measurements mean something.
const ROUNDS: u32 = 4;

/// Observed capacity of a path (RFC 9959 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Observed {
    /// Smallest round trip.
    pub rtt: Duration,
    /// Bytes that arrived in one such round trip.
    pub capacity: u64,
}

impl Observed {
    /// Creates it from the smallest round trip, and the bytes that arrived in one such round trip.
    pub const fn new(rtt: Duration, capacity: u64) -> Self {
        Self { rtt, capacity }
    }
}

/// Measures the capacity that a sender uses: the bytes acknowledged in a round trip, less those
/// that only waited in queues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observer {
    round_start: Instant,
    delivered: u64,
    /// True if the window limited the sender throughout the round.
    full: bool,
    rounds: u32,
    capacity: u64,
    rtt: Duration,
}

impl Observer {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            round_start: now,
            delivered: 0,
            full: false,
            rounds: 0,
            capacity: 0,
            rtt: Duration::MAX,
        }
    }

    pub(super) fn on_acked(&mut self, acked: &Acked) {
        self.rtt = acked.rtt.min;
        self.full &= acked.usage == Usage::Full;
        if acked.newest_sent < self.round_start {
            return;
        }
        let time = acked.now.saturating_duration_since(self.round_start);
        let volume = acked.delivered.saturating_sub(self.delivered);
        if !time.is_zero() {
            let share = (self.rtt.as_secs_f64() / time.as_secs_f64()).min(1.0);
            self.on_round((volume as f64 * share) as u64);
        }
        self.round_start = acked.now;
        self.delivered = acked.delivered;
        self.full = true;
    }

    /// Ends a round. If the application limited it, it shows only what was sent.
    fn on_round(&mut self, capacity: u64) {
        if self.full {
            self.rounds = self.rounds.saturating_add(1);
            self.capacity = self.capacity.midpoint(capacity);
        } else {
            self.capacity = self.capacity.max(capacity);
        }
    }

    /// Discards the measurements, which were too high, and starts over.
    pub(super) const fn restart(&mut self) {
        self.rounds = 0;
    }

    pub(super) fn observed(&self) -> Option<Observed> {
        (self.rounds >= ROUNDS).then_some(Observed {
            rtt: self.rtt,
            capacity: self.capacity,
        })
    }
}
