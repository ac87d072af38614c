//! The bottleneck of a link: a rate with a queue in front of it.

use std::{collections::VecDeque, time::Duration};

use super::Offer;
use crate::rng::Rng;

/// Rule by which a queue marks ECN-capable datagrams CE. Other datagrams pass until the queue is
/// full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Marking {
    /// Marks no datagrams.
    Never,
    /// Marks all datagrams that would wait longer than this (a step).
    Above(Duration),
    /// Marks more datagrams the longer they would wait: none at `from`, all from `to` on (like RED,
    /// but based on the current queue).
    Ramp {
        /// Longest wait without marks.
        from: Duration,
        /// Wait from which on all datagrams are marked.
        to: Duration,
    },
}

impl Marking {
    /// Returns true if a datagram with this wait is marked.
    fn marks(self, wait: Duration, rng: &mut Rng) -> bool {
        match self {
            Self::Never => false,
            Self::Above(threshold) => wait > threshold,
            Self::Ramp { from, to } => {
                let (over, range) = (wait.saturating_sub(from), to.saturating_sub(from));
                u128::from(rng.below(1 << 32)) * range.as_nanos() < over.as_nanos() << 32
            }
        }
    }
}

/// A bottleneck, in one direction.
///
/// The queue holds a number of bytes, not counting the datagram on the wire; a datagram that does
/// not fit is lost.
#[derive(Clone, Debug)]
pub struct Line {
    rates: Rates,
    queue_bytes: u64,
    marking: Marking,
    /// Time at which everything accepted has left.
    free_at: Duration,
    /// Datagrams that were accepted but have not started to leave: the time at which each starts,
    /// and its bytes.
    waiting: VecDeque<(Duration, u64)>,
    waiting_bytes: u64,
}

/// Departure of a datagram from a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Departure {
    /// Time at which its last bit leaves.
    pub at: Duration,
    /// Time that it waited before its first bit left.
    pub waited: Duration,
    /// True if it is given the CE mark.
    pub marked: bool,
}

impl Line {
    /// Creates an idle line of constant rate.
    pub const fn new(bits_per_second: u64, queue_bytes: u64) -> Self {
        Self {
            rates: Rates::constant(bits_per_second),
            queue_bytes,
            marking: Marking::Never,
            free_at: Duration::ZERO,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
        }
    }

    /// Changes the rate at `at`. Calls must be in chronological order. At rate 0 all datagrams
    /// wait; they are lost if no other rate follows.
    pub fn change_rate(&mut self, at: Duration, bits_per_second: u64) {
        self.rates.changes.push_back((at, bits_per_second));
    }

    /// Sets how ECN-capable datagrams are marked.
    #[must_use]
    pub const fn marking(mut self, marking: Marking) -> Self {
        self.marking = marking;
        self
    }

    /// Accepts a datagram; `None` if it is lost. Datagrams must arrive in chronological order.
    pub fn enter(&mut self, offer: Offer, rng: &mut Rng) -> Option<Departure> {
        let now = offer.now;
        self.begin_until(now);
        let waited = self.backlog(now);
        let has_room = waited.is_zero() || self.waiting_bytes + offer.bytes <= self.queue_bytes;
        if !has_room {
            return None;
        }
        // A wire that has stopped permanently accepts nothing.
        self.free_at = self.rates.end_of(now + waited, offer.bytes)?;
        if !waited.is_zero() {
            self.waiting.push_back((now + waited, offer.bytes));
            self.waiting_bytes += offer.bytes;
        }
        Some(Departure {
            at: self.free_at,
            waited,
            marked: offer.ecn_capable && self.marking.marks(waited, rng),
        })
    }

    /// Returns the current rate.
    pub const fn bits_per_second(&self) -> u64 {
        self.rates.bits_per_second
    }

    /// Returns the maximum number of waiting bytes.
    pub const fn queue_bytes(&self) -> u64 {
        self.queue_bytes
    }

    /// Returns the time that a datagram arriving at `now` would wait.
    pub const fn backlog(&self, now: Duration) -> Duration {
        self.free_at.saturating_sub(now)
    }

    /// Returns the number of bytes waiting at the last arrival.
    pub const fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Starts the datagrams whose time has come.
    fn begin_until(&mut self, now: Duration) {
        while let Some(&(at, size)) = self.waiting.front() {
            if at > now {
                break;
            }
            self.waiting.pop_front();
            self.waiting_bytes -= size;
        }
    }
}

/// A rate that changes over time.
#[derive(Clone, Debug)]
pub(crate) struct Rates {
    bits_per_second: u64,
    /// Future rates, the earliest first.
    changes: VecDeque<(Duration, u64)>,
}

impl Rates {
    pub(crate) const fn constant(bits_per_second: u64) -> Self {
        Self {
            bits_per_second,
            changes: VecDeque::new(),
        }
    }

    /// Returns the time at which bytes that start to leave at `start` have left; `None` means
    /// never. Calls must be in the order of their starts.
    pub(crate) fn end_of(&mut self, start: Duration, bytes: u64) -> Option<Duration> {
        let mut at = start;
        // Nanobits, so that a part of a datagram is exact at any rate.
        let mut left = u128::from(bytes) * 8 * 1_000_000_000;
        while let Some(&(change, rate)) = self.changes.front() {
            let before = change.saturating_sub(at).as_nanos() * u128::from(self.bits_per_second);
            if before >= left {
                break;
            }
            left -= before;
            at = at.max(change);
            self.bits_per_second = rate;
            self.changes.pop_front();
        }
        let nanos = left.checked_div(self.bits_per_second.into())?;
        Some(at + Duration::from_nanos(nanos as u64))
    }
}
