use std::ops::RangeInclusive;

/// ECN counts of an ACK frame (RFC 9000 §19.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// Packets received with ECT(0).
    pub ect0: u64,
    /// Packets received with ECT(1).
    pub ect1: u64,
    /// Packets received with CE.
    pub ce: u64,
}

/// ACK (RFC 9000 §19.3), as received: every range was checked when it was decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Ack<'a> {
    /// The largest packet number acknowledged.
    pub largest: u64,
    /// The delay as on the wire, not yet scaled by the peer's exponent.
    pub delay: u64,
    /// ECN counts, if it carries them.
    pub ecn: Option<EcnCounts>,
    /// Smallest packet number of the first range.
    first_smallest: u64,
    /// The further gap and length pairs, encoded.
    further: &'a [u8],
}

impl<'a> Ack<'a> {
    /// The acknowledged ranges, largest first.
    pub fn ranges(&self) -> AckRanges<'a> {
        todo!()
    }
}

/// The ranges of an ACK frame, largest first.
#[derive(Clone, Debug)]
pub struct AckRanges<'a> {
    further: &'a [u8],
}

impl Iterator for AckRanges<'_> {
    type Item = RangeInclusive<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}
