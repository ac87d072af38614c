//! Received packet numbers.

use std::{
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use smallvec::SmallVec;

use crate::wire::{
    frame::{EcnCounts, FrameWriter},
    limits,
    packet::{PacketNumber, Space, Vacant},
    params::ACK_DELAY_EXPONENT,
    udp::Ecn,
};

#[cfg(test)]
mod tests;

/// Number of ranges stored without a heap allocation, enough for a path with little loss.
const INLINE_RANGES: usize = 6;

/// Number of ranges from which on a new range is acknowledged at once.
const CROWD: usize = limits::ACK_RANGES / 2;

/// Longest `max_ack_delay` that can be announced (RFC 9000 §18.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis((1 << 14) - 1);

/// Whether a packet demands an acknowledgement (RFC 9000 §13.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AckEliciting {
    /// The packet has frames other than ACK, PADDING and CONNECTION_CLOSE, and must be
    /// acknowledged.
    Yes,
    /// The packet is acknowledged only along with others.
    No,
}

/// Consecutive packet numbers, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: PacketNumber,
    last: PacketNumber,
}

/// When to send acknowledgements, in the terms of draft-ietf-quic-ack-frequency §4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AckPolicy {
    /// Number of ack-eliciting packets that may be received without an acknowledgement.
    pub threshold: u64,
    /// Longest time that the first of them may wait.
    pub max_delay: Duration,
    /// Reordering, in packets, at which a missing packet is reported at once. 1 reports all
    /// reordering (RFC 9000 §13.2.1), 0 none.
    pub reordering: u64,
}

/// State of the acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    /// No ack-eliciting packet was received since the last ACK.
    Nothing,
    /// The acknowledgement may wait until this time.
    Delayed(Instant),
    /// The acknowledgement must be sent as soon as possible.
    Due,
}

/// Packets received in one space: detects duplicates and decides on acknowledgements (RFC 9000
/// §13.2).
///
/// At most [`limits::ACK_RANGES`] ranges are kept, or [`limits::HELLO_RANGES`] before there is a
/// connection; beyond that the oldest is dropped, and everything up to its end counts as a
/// duplicate from then on.
#[derive(Clone, Debug)]
pub struct Received {
    /// Disjoint, not adjacent, smallest first: the newest is at the end, where adding is cheap.
    ranges: SmallVec<[Range; INLINE_RANGES]>,
    /// Maximum number of ranges.
    most_ranges: usize,
    /// Number below which packets were forgotten.
    floor: PacketNumber,
    largest: Option<(PacketNumber, Instant)>,
    largest_eliciting: Option<PacketNumber>,
    /// Largest number in the last ACK.
    largest_told: Option<PacketNumber>,
    /// Smallest number not in any ACK yet.
    smallest_untold: Option<PacketNumber>,
    ecn: EcnCounts,
    /// True if the last ack-eliciting packet was marked CE.
    after_ce: bool,
    policy: AckPolicy,
    /// Ack-eliciting packets since the last ACK.
    unacked: u64,
    /// Bytes of the packets since the last ACK.
    bytes: usize,
    pending: Pending,
    /// Set by [`Received::delay_ack`] until the next ACK is sent.
    held_until: Option<Instant>,
}

impl Vacant for Received {
    fn vacant() -> Self {
        Self::immediate()
    }
}

impl Received {
    /// Creates the state of the Initial and Handshake spaces: every ack-eliciting packet is
    /// acknowledged at once (RFC 9000 §13.2.1).
    pub fn immediate() -> Self {
        Self::new(AckPolicy {
            threshold: 0,
            max_delay: Duration::ZERO,
            reordering: 1,
        })
    }

    /// Creates the state of the Initial space of a ClientHello without a connection, which keeps
    /// only a few ranges.
    pub fn of_hello() -> Self {
        Self {
            most_ranges: limits::HELLO_RANGES,
            ..Self::immediate()
        }
    }

    /// Allows as many ranges as a connection may have, from now on.
    pub const fn on_connection(&mut self) {
        self.most_ranges = limits::ACK_RANGES;
    }

    /// Creates the state of the Data space: the acknowledgement waits for a second packet, at most
    /// `max_ack_delay` (RFC 9000 §13.2.2).
    pub fn delayed(max_ack_delay: Duration) -> Self {
        Self::new(AckPolicy {
            threshold: 1,
            max_delay: max_ack_delay.min(MAX_ACK_DELAY),
            reordering: 1,
        })
    }

    fn new(policy: AckPolicy) -> Self {
        Self {
            ranges: SmallVec::new(),
            most_ranges: limits::ACK_RANGES,
            floor: PacketNumber::ZERO,
            largest: None,
            largest_eliciting: None,
            largest_told: None,
            smallest_untold: None,
            ecn: EcnCounts::default(),
            after_ce: false,
            policy,
            unacked: 0,
            bytes: 0,
            pending: Pending::Nothing,
            held_until: None,
        }
    }

    /// Returns true if the packet was received before, or is so old that this is not known. Such a
    /// packet must not be processed (RFC 9000 §12.3).
    #[inline]
    pub fn is_duplicate(&self, pn: PacketNumber) -> bool {
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
    pub fn on_packet(
        &mut self,
        now: Instant,
        pn: PacketNumber,
        eliciting: AckEliciting,
        ecn: Option<Ecn>,
    ) {
        self.ecn.add(ecn);
        let run_start = self.insert(pn);
        self.smallest_untold = Some(self.smallest_untold.map_or(pn, |least| least.min(pn)));
        if self.largest.is_none_or(|(largest, _)| pn > largest) {
            self.largest = Some((pn, now));
        }
        if eliciting == AckEliciting::No {
            return;
        }
        let urgent = self.is_out_of_order(pn, run_start)
            || self.is_news_of_congestion(ecn)
            // Ranges should be acknowledged before they have to be dropped.
            || (run_start == pn && self.ranges.len() > CROWD);
        self.largest_eliciting = self.largest_eliciting.max(Some(pn));
        self.unacked = self.unacked.saturating_add(1);
        if urgent || self.unacked > self.policy.threshold {
            self.pending = Pending::Due;
        } else if self.pending == Pending::Nothing {
            self.pending = Pending::Delayed(now + self.policy.max_delay);
        }
    }

    /// Returns true if the peer's loss detection should learn at once of an ack-eliciting packet
    /// that is out of order, or of a gap before it.
    fn is_out_of_order(&self, pn: PacketNumber, run_start: PacketNumber) -> bool {
        match self.policy.reordering {
            0 => false,
            // Before an earlier ack-eliciting packet, or after it with a gap in between (RFC 9000
            // §13.2.1).
            1 => self
                .largest_eliciting
                .is_some_and(|before| pn < before || run_start > before),
            reordering => {
                let reported = self
                    .largest_told
                    .and_then(|told| told.checked_sub(reordering));
                let largest = self.largest_eliciting.max(Some(pn)).unwrap_or(pn);
                reported.is_some_and(|reported| pn <= reported)
                    || largest.distance_from(self.first_missing_above(reported)) >= reordering
            }
        }
    }

    /// Returns the smallest number above `reported` that is neither received nor forgotten.
    fn first_missing_above(&self, reported: Option<PacketNumber>) -> PacketNumber {
        let least = reported
            .map_or(PacketNumber::ZERO, PacketNumber::next)
            .max(self.floor);
        let around = self.ranges.iter().rev().find(|range| range.first <= least);
        match around {
            Some(range) if least <= range.last => range.last.next(),
            _ => least,
        }
    }

    /// Returns true if the mark of an ack-eliciting packet should be reported at once: every CE
    /// (RFC 9000 §13.2.1), but only the first in a row if the peer asked for fewer acknowledgements
    /// (draft-ietf-quic-ack-frequency §6.3).
    fn is_news_of_congestion(&mut self, ecn: Option<Ecn>) -> bool {
        let ce = ecn == Some(Ecn::Ce);
        let first = !std::mem::replace(&mut self.after_ce, ce);
        ce && (first || self.policy.threshold <= 1)
    }

    /// Changes the policy.
    pub fn set_policy(&mut self, now: Instant, policy: AckPolicy) {
        self.policy = policy;
        if self.unacked > policy.threshold {
            self.pending = Pending::Due;
        } else if let Pending::Delayed(until) = self.pending {
            self.pending = Pending::Delayed(until.min(now + policy.max_delay));
        }
    }

    /// Makes an acknowledgement due.
    pub const fn request_ack(&mut self) {
        self.pending = Pending::Due;
    }

    /// Adds a number and returns the start of the run of consecutive numbers that contains it.
    #[inline]
    fn insert(&mut self, pn: PacketNumber) -> PacketNumber {
        if let Some(newest) = self.ranges.last_mut() {
            if newest.last.next() == pn {
                newest.last = pn;
                return newest.first;
            }
        }
        self.insert_out_of_order(pn)
    }

    fn insert_out_of_order(&mut self, pn: PacketNumber) -> PacketNumber {
        // Number of ranges that start at or below `pn`, searched from the end because reordering is
        // mostly shallow.
        let below = self
            .ranges
            .iter()
            .rposition(|range| range.first <= pn)
            .map_or(0, |index| index + 1);
        let (older, newer) = self.ranges.split_at_mut(below);
        let joins_newer = newer.first().is_some_and(|range| range.first == pn.next());
        match (older.last_mut(), newer.first_mut()) {
            (Some(range), _) if pn <= range.last => range.first,
            (Some(range), Some(next)) if range.last.next() == pn && joins_newer => {
                range.last = next.last;
                let first = range.first;
                self.ranges.remove(below);
                first
            }
            (Some(range), _) if range.last.next() == pn => {
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

    fn insert_range(&mut self, mut index: usize, pn: PacketNumber) {
        if self.ranges.len() >= self.most_ranges {
            if index == 0 {
                // Older than all stored ranges: processed once, never acknowledged.
                self.floor = self.floor.max(pn.next());
                return;
            }
            let oldest = self.ranges.remove(0);
            self.floor = self.floor.max(oldest.last.next());
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

    /// Returns true if an ACK frame should be sent now, in a separate packet if necessary.
    #[inline]
    pub fn is_ack_due(&self, now: Instant) -> bool {
        match self.pending {
            Pending::Nothing => false,
            Pending::Delayed(until) => until <= now,
            Pending::Due => true,
        }
    }

    /// Returns true if an ACK frame is worth its room in a packet that is sent anyway.
    #[inline]
    pub const fn is_ack_pending(&self) -> bool {
        !matches!(self.pending, Pending::Nothing)
    }

    /// Returns the time at which a delayed acknowledgement becomes due. `None` once it is due,
    /// because it no longer waits for a timer.
    #[inline]
    pub const fn next_timeout(&self) -> Option<Instant> {
        match self.pending {
            Pending::Delayed(until) => Some(until),
            Pending::Nothing | Pending::Due => None,
        }
    }

    /// Ends a delay that is over.
    pub fn on_timeout(&mut self, now: Instant) {
        if self.is_ack_due(now) {
            self.pending = Pending::Due;
        }
    }

    /// Delays a pending acknowledgement, so that the answer to a ClientHello carries the ACK of its
    /// first part. The first call after an ACK sets the time; further calls cannot postpone it.
    pub fn delay_ack(&mut self, until: Instant) {
        if self.is_ack_pending() {
            let until = *self.held_until.get_or_insert(until);
            self.pending = Pending::Delayed(until);
        }
    }

    /// Returns the received ranges as an ACK frame lists them, largest first.
    pub fn ranges(
        &self,
    ) -> impl DoubleEndedIterator<Item = RangeInclusive<PacketNumber>> + ExactSizeIterator + Clone + '_
    {
        self.ranges
            .iter()
            .rev()
            .map(|range| range.first..=range.last)
    }

    /// Returns the largest packet number received, and its time.
    pub const fn largest(&self) -> Option<(PacketNumber, Instant)> {
        self.largest
    }

    /// Returns how long the largest packet has waited for its acknowledgement (RFC 9000 §13.2.5).
    pub fn ack_delay(&self, now: Instant) -> Duration {
        self.largest
            .map_or(Duration::ZERO, |(_, at)| now.saturating_duration_since(at))
    }

    /// Returns the marks seen, for the ACK frame; `None` if no datagram carried one.
    pub fn ecn_counts(&self) -> Option<EcnCounts> {
        (self.ecn != EcnCounts::default()).then_some(self.ecn)
    }

    /// Notes the bytes of a packet that was decrypted.
    #[inline]
    pub const fn on_bytes(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Writes an ACK frame if one is pending. Packets of the handshake are acknowledged without delay
    /// (RFC 9000 §13.2.5).
    #[inline]
    pub fn write_ack(&mut self, space: Space, now: Instant, out: &mut FrameWriter<'_>) {
        if !self.is_ack_pending() {
            return;
        }
        let delay = match space {
            Space::Data => self.ack_delay(now).as_micros() >> ACK_DELAY_EXPONENT,
            Space::Initial | Space::Handshake => 0,
        };
        let (room, ranges) = (self.ack_room(), self.ranges());
        if let Some(told) = out.ack_within(room, delay as u64, ranges, self.ecn_counts()) {
            self.on_ack_sent(told);
        }
    }

    /// Returns the largest size of an ACK frame: twice the bytes received since the last one.
    /// Otherwise a peer would get ever larger frames for tiny packets with gaps between their
    /// numbers. The older ranges wait for another frame.
    #[inline]
    fn ack_room(&self) -> usize {
        limits::SMALL_ACK.max(self.bytes.saturating_mul(2))
    }

    /// Notes that an ACK frame with the newest `told` ranges was written.
    #[inline]
    pub fn on_ack_sent(&mut self, told: usize) {
        self.unacked = 0;
        self.bytes = 0;
        self.pending = Pending::Nothing;
        self.held_until = None;
        self.largest_told = self.largest.map(|(largest, _)| largest);
        let oldest = self.ranges.len().saturating_sub(told);
        let reached = self.ranges.get(oldest).map(|range| range.first);
        self.smallest_untold = self
            .smallest_untold
            .filter(|&untold| reached.is_none_or(|reached| untold < reached));
    }

    /// Forgets the ranges whose acknowledgement the peer received: those of an ACK frame with the
    /// largest number `largest` whose packet was acknowledged (RFC 9000 §13.2.4).
    ///
    /// The newest range stays, and so does one with a number not in any ACK yet. A range is never
    /// cut: a late packet from the gap before a remaining range is still accepted.
    pub fn on_ack_of_ack(&mut self, largest: PacketNumber) {
        let old = self
            .ranges
            .iter()
            .take_while(|range| {
                range.last <= largest && self.smallest_untold.is_none_or(|pn| range.last < pn)
            })
            .count();
        let old = old.min(self.ranges.len().saturating_sub(1));
        if let Some(last) = self.ranges.drain(..old).next_back() {
            self.floor = self.floor.max(last.last.next());
        }
    }
}
