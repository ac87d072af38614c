//! Packet numbers.

use std::fmt;

use crate::wire::{Eof, Reader, VarInt};

/// The number of a packet in its packet-number space: 0 to 2^62 - 1, each used at most once
/// (RFC 9000 §12.3).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct PacketNumber(u64);

impl PacketNumber {
    /// The number of the first packet.
    pub const ZERO: Self = Self(0);
    /// The largest number, 2^62 - 1.
    pub const MAX: Self = Self(VarInt::MAX.get());

    /// Creates a number of at most 32 bits, which is always valid.
    pub const fn from_u32(number: u32) -> Self {
        Self(number as u64)
    }

    /// Creates a number, or returns [`PacketNumber::MAX`] if `number` is larger.
    pub const fn saturating(number: u64) -> Self {
        Self(VarInt::saturating(number).get())
    }

    /// Returns the plain integer.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the number that follows. The one after [`PacketNumber::MAX`] is only a bound, and no
    /// packet has it.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Returns the number that is `count` larger, at most [`PacketNumber::MAX`].
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, count: u64) -> Self {
        Self::saturating(self.0.saturating_add(count))
    }

    /// Returns the number that is `count` smaller, if there is one.
    #[inline]
    pub const fn checked_sub(self, count: u64) -> Option<Self> {
        match self.0.checked_sub(count) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// Returns how much larger this number is than `earlier`; 0 if it is not larger.
    #[inline]
    pub const fn distance_from(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the number of bytes, 1 to 4, that let the peer tell this number from every other number it may
    /// have in flight (RFC 9000 §17.1 and appendix A.2).
    pub const fn encoded_len(self, largest_acked: Option<Self>) -> usize {
        let unacked = match largest_acked {
            Some(acked) => self.distance_from(acked),
            None => self.get() + 1,
        };
        // More than twice the distance must be representable.
        match unacked {
            0..0x80 => 1,
            0x80..0x8000 => 2,
            0x8000..0x0080_0000 => 3,
            _ => 4,
        }
    }

    /// Returns the number closest to the next expected one whose low `len` bytes are `truncated` (RFC
    /// 9000 appendix A.3).
    pub const fn expand(truncated: u32, len: usize, largest: Option<Self>) -> Self {
        let expected = match largest {
            Some(largest) => largest.next().get(),
            None => 0,
        };
        let window = 1_u64 << (8 * if len < 4 { len } else { 4 });
        let half = window / 2;
        let candidate = (expected & !window.saturating_sub(1)) | truncated as u64;
        let closest = if candidate.saturating_add(half) <= expected {
            candidate.saturating_add(window)
        } else if candidate > expected.saturating_add(half) && candidate >= window {
            candidate.saturating_sub(window)
        } else {
            candidate
        };
        // No packet has a larger number (RFC 9000 §12.3); one that claims to have fails to decrypt.
        Self::saturating(closest)
    }

    /// Reads a number that is encoded as a variable-length integer.
    #[inline]
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Eof> {
        VarInt::decode(reader).map(|number| Self(number.get()))
    }
}

impl fmt::Debug for PacketNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for PacketNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<u32> for PacketNumber {
    fn from(number: u32) -> Self {
        Self::from_u32(number)
    }
}

impl From<PacketNumber> for u64 {
    #[inline]
    fn from(number: PacketNumber) -> Self {
        number.0
    }
}
