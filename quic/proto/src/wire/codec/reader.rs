//! A reader of encoded values.

use crate::wire::VarInt;

/// Error for bytes that end within a value.
///
/// Exhaustive: it has no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eof;

/// A cursor over received bytes that never reads past their end.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Returns the number of bytes not yet read.
    pub const fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// Returns true if everything was read.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the bytes not yet read.
    pub const fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the next byte without reading it.
    pub fn peek(&self) -> Option<u8> {
        self.bytes.first().copied()
    }

    /// Reads one byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Eof> {
        let (&first, rest) = self.bytes.split_first().ok_or(Eof)?;
        self.bytes = rest;
        Ok(first)
    }

    /// Reads two bytes, big-endian.
    pub fn u16(&mut self) -> Result<u16, Eof> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads four bytes, big-endian.
    pub fn u32(&mut self) -> Result<u32, Eof> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Eof> {
        let (head, rest) = self.bytes.split_first_chunk().ok_or(Eof)?;
        self.bytes = rest;
        Ok(*head)
    }

    /// Reads `len` bytes.
    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Eof> {
        let (head, rest) = self.bytes.split_at_checked(len).ok_or(Eof)?;
        self.bytes = rest;
        Ok(head)
    }

    /// Reads all remaining bytes.
    pub fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// Reads a variable-length integer.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Eof> {
        VarInt::decode(self).map(VarInt::get)
    }

    /// Reads bytes preceded by their length as a variable-length integer.
    pub fn prefixed(&mut self) -> Result<&'a [u8], Eof> {
        let len = usize::try_from(self.varint()?).map_err(|_| Eof)?;
        self.bytes(len)
    }
}

impl VarInt {
    /// Reads an integer in any of its forms (RFC 9000 does not require the shortest).
    #[inline]
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Eof> {
        let first = reader.u8()?;
        let low = u64::from(first & 0x3f);
        let value = match first >> 6 {
            0 => low,
            1 => low << 8 | u64::from(reader.u8()?),
            2 => {
                let [a, b, c] = reader.array()?;
                low << 24 | u64::from(u32::from_be_bytes([0, a, b, c]))
            }
            _ => {
                let mut bytes = [0; 8];
                bytes[1..].copy_from_slice(reader.bytes(7)?);
                low << 56 | u64::from_be_bytes(bytes)
            }
        };
        Ok(Self(value))
    }
}
