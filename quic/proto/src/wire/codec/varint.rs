//! Integers of variable length.

use std::fmt;

/// An integer of at most 62 bits in QUIC's variable-length form (RFC 9000 §16).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarInt(pub(in crate::wire) u64);

impl VarInt {
    /// The largest value, 2^62 - 1.
    pub const MAX: Self = Self((1 << 62) - 1);
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Creates an integer from a value of at most 32 bits, which always fits.
    pub const fn from_u32(value: u32) -> Self {
        Self(value as u64)
    }

    /// Creates an integer, if the value has at most 62 bits.
    pub const fn new(value: u64) -> Option<Self> {
        if value <= Self::MAX.0 {
            Some(Self(value))
        } else {
            None
        }
    }

    /// Creates an integer, or [`VarInt::MAX`] if the value is larger.
    pub const fn saturating(value: u64) -> Self {
        if value <= Self::MAX.0 {
            Self(value)
        } else {
            Self::MAX
        }
    }

    /// Returns the plain integer.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the length of its shortest form: 1, 2, 4 or 8 bytes.
    pub const fn size(self) -> usize {
        match self.0 {
            0..0x40 => 1,
            0x40..0x4000 => 2,
            0x4000..0x4000_0000 => 4,
            _ => 8,
        }
    }

    /// Writes a value below 2^14 in two bytes, for a length that becomes known only later.
    pub fn encode_two_bytes(value: u16) -> [u8; 2] {
        ((value & 0x3fff) | 0x4000).to_be_bytes()
    }
}

impl fmt::Debug for VarInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for VarInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<u32> for VarInt {
    fn from(value: u32) -> Self {
        Self::from_u32(value)
    }
}

impl From<VarInt> for u64 {
    fn from(value: VarInt) -> Self {
        value.0
    }
}
