//! The CRYPTO frame.

use crate::wire::{
    FrameType, Reader, VarInt, Writer,
    error::Violation,
    frame::{Encode, check_end},
};

/// CRYPTO (RFC 9000 §19.6).
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crypto<'a> {
    /// Offset of the data.
    pub offset: u64,
    /// The data.
    pub data: &'a [u8],
}

impl<'a> Crypto<'a> {
    pub(in crate::wire::frame) fn decode(reader: &mut Reader<'a>) -> Result<Self, Violation> {
        let offset = reader.varint()?;
        let data = reader.prefixed()?;
        check_end(offset, data, Violation::CryptoBeyondOffsets)?;
        Ok(Self { offset, data })
    }
}

impl Encode for Crypto<'_> {
    fn size(&self) -> usize {
        let len = self.data.len();
        header_size(self.offset) + VarInt::saturating(len as u64).size() + len
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        write_header(writer, self.offset, self.data.len());
        writer.put(self.data);
    }
}

/// Returns the bytes of the fields before the length.
pub(in crate::wire::frame) const fn header_size(offset: u64) -> usize {
    1 + VarInt::saturating(offset).size()
}

/// Writes everything but the data.
pub(in crate::wire::frame) fn write_header(writer: &mut Writer<'_>, offset: u64, len: usize) {
    writer.varint(FrameType::CRYPTO.0);
    writer.varint(offset);
    writer.varint(len as u64);
}
