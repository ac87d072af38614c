//! The ACK and ACK_FREQUENCY frames.

use std::ops::RangeInclusive;

use super::Encode;
use crate::wire::{
    FrameType, PacketNumber, Reader, VarInt, Writer, error::Violation, frame::fields, udp::Ecn,
};

/// Number of packets by the ECN mark of their datagram, as in an ACK frame (RFC 9000 §19.3.2).
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// Packets with ECT(0).
    pub ect0: u64,
    /// Packets with ECT(1).
    pub ect1: u64,
    /// Packets with CE: congestion experienced.
    pub ce: u64,
}

impl EcnCounts {
    /// Returns each number with the name of its mark.
    pub(crate) fn by_label(self) -> impl Iterator<Item = (&'static str, u64)> {
        [("ect0", self.ect0), ("ect1", self.ect1), ("ce", self.ce)].into_iter()
    }

    /// Counts one packet.
    #[inline]
    pub const fn add(&mut self, mark: Option<Ecn>) {
        match mark {
            None => {}
            Some(Ecn::Ect0) => self.ect0 = self.ect0.saturating_add(1),
            Some(Ecn::Ect1) => self.ect1 = self.ect1.saturating_add(1),
            Some(Ecn::Ce) => self.ce = self.ce.saturating_add(1),
        }
    }

    /// Returns the sum of both counts.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            ect0: self.ect0.saturating_add(other.ect0),
            ect1: self.ect1.saturating_add(other.ect1),
            ce: self.ce.saturating_add(other.ce),
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self {
            ect0: reader.varint()?,
            ect1: reader.varint()?,
            ce: reader.varint()?,
        })
    }

    const fn fields(self) -> [u64; 3] {
        [self.ect0, self.ect1, self.ce]
    }
}

/// A received ACK frame (RFC 9000 §19.3), whose ranges were all checked during decoding.
#[derive(Clone, Debug, PartialEq)]
pub struct Ack<'a> {
    /// The largest packet number acknowledged.
    pub largest: PacketNumber,
    /// The delay on the wire, not yet scaled by the peer's exponent.
    pub delay: u64,
    /// ECN counts, if it carries them.
    pub ecn: Option<EcnCounts>,
    /// Smallest packet number of the first range.
    first_smallest: PacketNumber,
    /// The further gap and length pairs, encoded.
    further: &'a [u8],
}

impl<'a> Ack<'a> {
    /// Returns the acknowledged ranges, largest first.
    pub fn ranges(&self) -> AckRanges<'a> {
        AckRanges {
            next: Some(self.first_smallest..=self.largest),
            further: Reader::new(self.further),
        }
    }

    /// Reads the fields after the type. The work is bounded by the size of the frame: each further
    /// range takes at least two bytes.
    pub(super) fn decode(ty: FrameType, reader: &mut Reader<'a>) -> Result<Self, Violation> {
        let largest = PacketNumber::decode(reader)?;
        let delay = reader.varint()?;
        let count = reader.varint()?;
        let first_len = reader.varint()?;
        let first_smallest = largest
            .checked_sub(first_len)
            .ok_or(Violation::AckBelowZero)?;

        let before = reader.rest();
        let mut smallest = first_smallest;
        for _ in 0..count {
            smallest = *next_range(smallest, reader)?.start();
        }
        let consumed = before.len() - reader.remaining();
        let further = before.get(..consumed).unwrap_or_default();

        let ecn = if ty == FrameType::ACK_ECN {
            Some(EcnCounts::decode(reader)?)
        } else {
            None
        };
        Ok(Self {
            largest,
            delay,
            ecn,
            first_smallest,
            further,
        })
    }
}

/// Reads one gap and length, relative to the smallest packet number of the previous range.
fn next_range(
    smallest: PacketNumber,
    reader: &mut Reader<'_>,
) -> Result<RangeInclusive<PacketNumber>, Violation> {
    let gap = reader.varint()?;
    let largest = smallest
        .checked_sub(gap + 2)
        .ok_or(Violation::AckBelowZero)?;
    let len = reader.varint()?;
    let smallest = largest.checked_sub(len).ok_or(Violation::AckBelowZero)?;
    Ok(smallest..=largest)
}

/// The ranges of an ACK frame, largest first.
#[derive(Clone, Debug)]
pub struct AckRanges<'a> {
    next: Option<RangeInclusive<PacketNumber>>,
    further: Reader<'a>,
}

impl Iterator for AckRanges<'_> {
    type Item = RangeInclusive<PacketNumber>;

    fn next(&mut self) -> Option<Self::Item> {
        let range = self.next.take()?;
        if !self.further.is_empty() {
            self.next = next_range(*range.start(), &mut self.further).ok();
        }
        Some(range)
    }
}

/// An ACK frame to be written (RFC 9000 §19.3).
///
/// Encoding writes all ranges; [`FrameWriter::ack`](super::FrameWriter::ack) limits them to those
/// that fit.
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Debug)]
pub struct AckEncoder<R> {
    /// The delay, scaled by our exponent.
    pub delay: u64,
    /// The received packet numbers: at least one range, largest first, with gaps between them.
    pub ranges: R,
    /// The ECN counts, if ECN marks can be read.
    pub ecn: Option<EcnCounts>,
}

impl<R: Iterator<Item = RangeInclusive<PacketNumber>> + Clone> AckEncoder<R> {
    /// Returns the number of ranges that fit into `space` bytes.
    pub(super) fn fitting(&self, space: usize) -> usize {
        self.sizes().take_while(|size| *size <= space).count()
    }

    /// Returns the sizes of the frame with one range, with two, and so on.
    fn sizes(&self) -> impl Iterator<Item = usize> {
        let mut fixed = 1 + varint_size(self.delay) + self.ecn_size();
        let mut smallest = None;
        self.ranges.clone().enumerate().map(move |(index, range)| {
            fixed += varint_size(distance(smallest, &range)) + varint_size(length(&range));
            smallest = Some(*range.start());
            fixed + varint_size(index as u64)
        })
    }

    fn ecn_size(&self) -> usize {
        self.ecn
            .map_or(0, |ecn| ecn.fields().into_iter().map(varint_size).sum())
    }
}

impl<R: Iterator<Item = RangeInclusive<PacketNumber>> + Clone> Encode for AckEncoder<R> {
    const ACK_ELICITING: bool = false;

    fn size(&self) -> usize {
        self.sizes().last().unwrap_or(usize::MAX)
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        let mut ranges = self.ranges.clone();
        let Some(first) = ranges.next() else { return };
        writer.varint(if self.ecn.is_some() {
            FrameType::ACK_ECN.0
        } else {
            FrameType::ACK.0
        });
        writer.varint(first.end().get());
        writer.varint(self.delay);
        writer.varint(ranges.clone().count() as u64);
        writer.varint(length(&first));
        let mut smallest = *first.start();
        for range in ranges {
            writer.varint(distance(Some(smallest), &range));
            writer.varint(length(&range));
            smallest = *range.start();
        }
        for count in self.ecn.iter().flat_map(|ecn| ecn.fields()) {
            writer.varint(count);
        }
    }
}

fn varint_size(value: u64) -> usize {
    VarInt::saturating(value).size()
}

/// Returns the field that positions a range: its largest number if it is the first range, otherwise
/// the gap above it.
fn distance(smallest_before: Option<PacketNumber>, range: &RangeInclusive<PacketNumber>) -> u64 {
    let Some(smallest) = smallest_before else {
        return range.end().get();
    };
    let adjacent = range.end().next().next();
    debug_assert!(smallest >= adjacent, "ACK ranges touch or ascend");
    smallest.distance_from(adjacent)
}

fn length(range: &RangeInclusive<PacketNumber>) -> u64 {
    range.end().distance_from(*range.start())
}

/// `ACK_FREQUENCY` (draft-ietf-quic-ack-frequency §4): requests an acknowledgement frequency.
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// Sequence number of the request: the largest one applies.
    pub sequence: u64,
    /// Number of ack-eliciting packets that may arrive without an acknowledgement.
    pub threshold: u64,
    /// Microseconds that an acknowledgement may be delayed.
    pub max_delay: u64,
    /// Reordering, in packets, that is acknowledged at once; 0 if none is.
    pub reordering: u64,
}

impl AckFrequency {
    pub(in crate::wire::frame) fn decode(reader: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self {
            sequence: reader.varint()?,
            threshold: reader.varint()?,
            max_delay: reader.varint()?,
            reordering: reader.varint()?,
        })
    }

    const fn fields(self) -> [u64; 5] {
        [
            FrameType::ACK_FREQUENCY.0,
            self.sequence,
            self.threshold,
            self.max_delay,
            self.reordering,
        ]
    }
}

fields!(AckFrequency);
