use std::{
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use smallvec::SmallVec;

use crate::proto::{ecn::Ecn, frame::EcnCounts, limits};

#[cfg(test)]
mod tests;

/// Ranges kept without a heap allocation: what a path with little loss needs.
const INLINE_RANGES: usize = 6;

/// Ack-eliciting packets that may wait for one acknowledgement (RFC 9000 §13.2.2).
const ACK_THRESHOLD: u8 = 2;

/// The longest `max_ack_delay` that can be told to a peer (RFC 9000 §18.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis((1 << 14) - 1);

/// Whether a packet asks for an acknowledgement (RFC 9000 §13.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckEliciting {
    /// It holds more than ACK, PADDING and CONNECTION_CLOSE frames.
    Yes,
    /// It is acknowledged only in company.
    No,
}

/// Consecutive packet numbers, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: u64,
    last: u64,
}

/// When the acknowledgement is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    /// Nothing that must be acknowledged came since the last ACK.
    Nothing,
    /// It may wait for company until then.
    Delayed(Instant),
    /// As soon as a packet can be sent.
    Due,
}

/// The packets received in one space: tells duplicates and decides what is acknowledged when
/// (RFC 9000 §13.2).
///
/// At most [`limits::ACK_RANGES`] ranges are kept; when one more is needed the oldest is forgotten,
/// and everything up to its end counts as a duplicate from then on.
#[derive(Clone, Debug)]
pub struct Received {
    /// Disjoint, not adjacent, smallest first: the newest is at the end, where a push is cheap.
    ranges: SmallVec<[Range; INLINE_RANGES]>,
    /// Numbers below were forgotten.
    floor: u64,
    largest: Option<(u64, Instant)>,
    largest_eliciting: Option<u64>,
    ecn: EcnCounts,
    max_delay: Duration,
    threshold: u8,
    /// Ack-eliciting packets since the last ACK, saturating.
    unacked: u8,
    pending: Pending,
    /// Set by [`Received::delay_ack`] until the next ACK is sent.
    held_until: Option<Instant>,
}

impl Received {
    /// For the Initial and Handshake spaces: every ack-eliciting packet is acknowledged at once
    /// (RFC 9000 §13.2.1).
    pub fn immediate() -> Self {
        Self::new(Duration::ZERO, 1)
    }

    /// For the Data space: the acknowledgement waits for a second packet, at most `max_ack_delay`.
    pub fn delayed(max_ack_delay: Duration) -> Self {
        Self::new(max_ack_delay.min(MAX_ACK_DELAY), ACK_THRESHOLD)
    }

    fn new(max_delay: Duration, threshold: u8) -> Self {
        Self {
            ranges: SmallVec::new(),
            floor: 0,
            largest: None,
            largest_eliciting: None,
            ecn: EcnCounts {
                ect0: 0,
                ect1: 0,
                ce: 0,
            },
            max_delay,
            threshold,
            unacked: 0,
            pending: Pending::Nothing,
            held_until: None,
        }
    }

    /// Whether the packet came before, or is so old that nobody knows any more. Such a packet must
    /// not be processed (RFC 9000 §12.3).
    #[inline]
    pub fn is_duplicate(&self, pn: u64) -> bool {
        if self.largest.is_none_or(|(largest, _)| pn > largest) {
            return pn < self.floor;
        }
        pn < self.floor
            || self
                .ranges
                .iter()
                .rev()
                .find(|range| range.first <= pn)
                .is_some_and(|r| pn <= r.last)
    }

    /// Notes a packet that is not a duplicate and was decrypted and processed.
    #[inline]
    pub fn on_packet(&mut self, now: Instant, pn: u64, eliciting: AckEliciting, ecn: Option<Ecn>) {
        match ecn {
            None => {}
            Some(Ecn::Ect0) => self.ecn.ect0 = self.ecn.ect0.saturating_add(1),
            Some(Ecn::Ect1) => self.ecn.ect1 = self.ecn.ect1.saturating_add(1),
            Some(Ecn::Ce) => self.ecn.ce = self.ecn.ce.saturating_add(1),
        }
        let run_start = self.insert(pn);
        if self.largest.is_none_or(|(largest, _)| pn > largest) {
            self.largest = Some((pn, now));
        }
        if eliciting == AckEliciting::No {
            return;
        }
        // Out of order: behind an ack-eliciting packet, or ahead of it with something missing in
        // between (RFC 9000 §13.2.1). The peer's loss detection should learn of it at once.
        let out_of_order = self
            .largest_eliciting
            .is_some_and(|before| pn < before || run_start > before);
        self.largest_eliciting = self.largest_eliciting.max(Some(pn));
        self.unacked = self.unacked.saturating_add(1);
        if self.unacked >= self.threshold || out_of_order || ecn == Some(Ecn::Ce) {
            self.pending = Pending::Due;
        } else if self.pending == Pending::Nothing {
            self.pending = Pending::Delayed(now + self.max_delay);
        }
    }

    /// Adds a number and returns where the run of consecutive numbers that holds it starts.
    #[inline]
    fn insert(&mut self, pn: u64) -> u64 {
        if let Some(newest) = self.ranges.last_mut()
            && newest.last.checked_add(1) == Some(pn)
        {
            newest.last = pn;
            return newest.first;
        }
        self.insert_out_of_order(pn)
    }

    fn insert_out_of_order(&mut self, pn: u64) -> u64 {
        // How many ranges start at or below `pn`; reordering is mostly shallow, so from the end.
        let below = self
            .ranges
            .iter()
            .rposition(|range| range.first <= pn)
            .map_or(0, |index| index + 1);
        let (older, newer) = self.ranges.split_at_mut(below);
        let joins_newer = newer.first().is_some_and(|range| range.first - 1 == pn);
        match (older.last_mut(), newer.first_mut()) {
            (Some(range), _) if pn <= range.last => range.first,
            (Some(range), Some(next)) if range.last + 1 == pn && joins_newer => {
                range.last = next.last;
                let first = range.first;
                self.ranges.remove(below);
                first
            }
            (Some(range), _) if range.last + 1 == pn => {
                range.last = pn;
                range.first
            }
            (_, Some(next)) if joins_newer => {
                next.first = pn;
                pn
            }
            _ => {
                self.insert_range(below, pn);
                pn
            }
        }
    }

    fn insert_range(&mut self, mut index: usize, pn: u64) {
        if self.ranges.len() >= limits::ACK_RANGES {
            if index == 0 {
                // Older than all we can remember: processed once, never acknowledged.
                self.floor = self.floor.max(pn.saturating_add(1));
                return;
            }
            let oldest = self.ranges.remove(0);
            self.floor = self.floor.max(oldest.last.saturating_add(1));
            index -= 1;
        }
        self.ranges.insert(
            index,
            Range {
                first: pn,
                last: pn,
            },
        );
    }

    /// Whether an ACK frame should leave now, in a packet of its own if need be.
    #[inline]
    pub fn is_ack_due(&self, now: Instant) -> bool {
        match self.pending {
            Pending::Nothing => false,
            Pending::Delayed(until) => until <= now,
            Pending::Due => true,
        }
    }

    /// Whether an ACK frame is worth a place in a packet that leaves anyway.
    #[inline]
    pub const fn is_ack_pending(&self) -> bool {
        !matches!(self.pending, Pending::Nothing)
    }

    /// When a delayed acknowledgement becomes due. `None` once it is due: what keeps it then is not
    /// time.
    #[inline]
    pub const fn next_timeout(&self) -> Option<Instant> {
        match self.pending {
            Pending::Delayed(until) => Some(until),
            Pending::Nothing | Pending::Due => None,
        }
    }

    /// Lets a delay end that is over.
    pub fn on_timeout(&mut self, now: Instant) {
        if self.is_ack_due(now) {
            self.pending = Pending::Due;
        }
    }

    /// Holds a pending acknowledgement back, for an answer that will carry it: that of the first
    /// part of a ClientHello. The first call after an ACK was sent sets the moment; further calls
    /// cannot move it.
    pub fn delay_ack(&mut self, until: Instant) {
        if self.is_ack_pending() {
            let until = *self.held_until.get_or_insert(until);
            self.pending = Pending::Delayed(until);
        }
    }

    /// The received ranges as an ACK frame lists them, largest first.
    pub fn ranges(
        &self,
    ) -> impl DoubleEndedIterator<Item = RangeInclusive<u64>> + ExactSizeIterator + Clone + '_ {
        self.ranges
            .iter()
            .rev()
            .map(|range| range.first..=range.last)
    }

    /// The largest packet number received, and when.
    pub const fn largest(&self) -> Option<(u64, Instant)> {
        self.largest
    }

    /// How long the largest packet has waited for its acknowledgement (RFC 9000 §13.2.5).
    pub fn ack_delay(&self, now: Instant) -> Duration {
        self.largest
            .map_or(Duration::ZERO, |(_, at)| now.saturating_duration_since(at))
    }

    /// Marks seen, for the ACK frame; `None` while no datagram carried one.
    pub fn ecn_counts(&self) -> Option<EcnCounts> {
        (self.ecn != EcnCounts::default()).then_some(self.ecn)
    }

    /// Notes that an ACK frame with all ranges was written.
    #[inline]
    pub fn on_ack_sent(&mut self) {
        self.unacked = 0;
        self.pending = Pending::Nothing;
        self.held_until = None;
    }

    /// Forgets the ranges that the peer knows to be acknowledged: those of an ACK frame whose
    /// largest number was `largest` and whose packet was acknowledged (RFC 9000 §13.2.4).
    ///
    /// The newest range stays, and a range is never cut: a late packet of the gap before a range
    /// that stays is still welcome.
    pub fn on_ack_of_ack(&mut self, largest: u64) {
        let old = self
            .ranges
            .iter()
            .take_while(|range| range.last <= largest)
            .count();
        let old = old.min(self.ranges.len().saturating_sub(1));
        if let Some(last) = self.ranges.drain(..old).next_back() {
            self.floor = self.floor.max(last.last.saturating_add(1));
        }
    }
}
