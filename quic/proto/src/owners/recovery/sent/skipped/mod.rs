//! Packet numbers skipped on purpose, to detect a peer that acknowledges packets it never received
//! (RFC 9000 §21.4).

use std::ops::RangeInclusive;

use crate::{random::prf::Sequence, wire::packet::PacketNumber};

/// Number of skipped numbers remembered per space. Intervals grow to [`MAX_INTERVAL`], so that
/// these reach back further than the packets that may be in flight.
const REMEMBERED: usize = 32;

/// Longest interval until the first skipped number: short, to detect an attack early.
const FIRST_INTERVAL: u64 = 32;

/// Longest interval between two skipped numbers.
const MAX_INTERVAL: u64 = 8192;

/// Selects the 1-RTT packet numbers to skip.
///
/// Intervals are drawn uniformly from the upper half of a bound that doubles each time: a short
/// connection skips at most one number, a long one only a few.
#[derive(Debug)]
pub(in crate::owners::recovery) struct Skipper {
    /// Source of the intervals; `None` if no number is ever skipped.
    sequence: Option<Sequence>,
    bound: u64,
    due: PacketNumber,
}

impl Skipper {
    pub(in crate::owners::recovery) fn new(seed: Option<u64>) -> Self {
        let mut skipper = Self {
            sequence: seed.map(Sequence::new),
            bound: FIRST_INTERVAL,
            due: PacketNumber::ZERO,
        };
        skipper.plan(PacketNumber::ZERO);
        skipper
    }

    /// Returns true if the next number must be skipped.
    #[inline]
    pub(in crate::owners::recovery) fn is_due(&self, next: PacketNumber) -> bool {
        self.sequence.is_some() && next >= self.due
    }

    /// Plans the next number to skip after `pn`.
    pub(in crate::owners::recovery) fn plan(&mut self, pn: PacketNumber) {
        let half = self.bound / 2;
        let interval =
            half + self.sequence.as_mut().map_or(0, Sequence::draw) % (self.bound - half + 1);
        self.due = pn.saturating_add(interval);
        self.bound = (self.bound * 2).min(MAX_INTERVAL);
    }
}

/// Latest skipped numbers of one space.
#[derive(Debug, Default)]
pub(in crate::owners::recovery) struct Skipped {
    /// Skipped numbers, ascending.
    numbers: Vec<PacketNumber>,
}

impl Skipped {
    pub(in crate::owners::recovery) const fn new() -> Self {
        Self {
            numbers: Vec::new(),
        }
    }

    pub(in crate::owners::recovery) fn push(&mut self, pn: PacketNumber) {
        if self.numbers.len() >= REMEMBERED {
            self.numbers.remove(0);
        }
        self.numbers.push(pn);
    }

    pub(in crate::owners::recovery) fn len(&self) -> usize {
        self.numbers.len()
    }

    #[inline]
    pub(in crate::owners::recovery) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Returns true if a skipped number is in the range.
    pub(in crate::owners::recovery) fn any_in(&self, range: &RangeInclusive<PacketNumber>) -> bool {
        let from = self.numbers.partition_point(|pn| pn < range.start());
        self.numbers.get(from).is_some_and(|pn| pn <= range.end())
    }

    /// Returns the number of skipped numbers between two numbers, both exclusive.
    pub(in crate::owners::recovery) fn between(
        &self,
        lower: PacketNumber,
        upper: PacketNumber,
    ) -> u64 {
        if self.numbers.last().is_none_or(|last| *last <= lower) {
            return 0;
        }
        let within = |pn: &&PacketNumber| lower < **pn && **pn < upper;
        self.numbers.iter().filter(within).count() as u64
    }

    /// Returns the largest number that at least `count` sent packets overtook, where `largest` is
    /// the last of them: skipped numbers do not count.
    pub(in crate::owners::recovery) fn overtaken_by(
        &self,
        count: u64,
        largest: PacketNumber,
    ) -> Option<PacketNumber> {
        let mut pn = largest.checked_sub(count)?;
        for skipped in self.numbers.iter().rev().filter(|pn| **pn < largest) {
            if *skipped < pn {
                break;
            }
            pn = pn.checked_sub(1)?;
        }
        Some(pn)
    }
}

#[cfg(test)]
mod tests;
