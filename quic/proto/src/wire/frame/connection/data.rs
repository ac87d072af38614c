//! The CRYPTO and DATAGRAM frames.

use crate::wire::{
    FrameType, Reader, VarInt, Writer,
    error::Violation,
    frame::{Encode, check_end},
};

/// DATAGRAM (RFC 9221 §4): data that is not retransmitted.
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The data.
    pub data: &'a [u8],
}

impl<'a> Datagram<'a> {
    pub(in crate::wire::frame) fn decode(
        ty: FrameType,
        reader: &mut Reader<'a>,
    ) -> Result<Self, Violation> {
        let data = if ty == FrameType::DATAGRAM {
            reader.take_rest()
        } else {
            reader.prefixed()?
        };
        Ok(Self { data })
    }

    /// Returns the bytes of the type and the data, without the optional length.
    pub const fn least_size(&self) -> u64 {
        1 + self.data.len() as u64
    }
}

impl Encode for Datagram<'_> {
    fn size(&self) -> usize {
        let len = self.data.len();
        1 + VarInt::saturating(len as u64).size() + len
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        writer.varint(FrameType::DATAGRAM_LEN.0);
        writer.prefixed(self.data);
    }
}

/// Returns the layout of a frame with `len` bytes of data in the `room` left in a packet: the bytes
/// of PADDING before it, and whether it carries a length. `None` if it does not fit.
///
/// The last frame of a packet may omit its length. If the data fits only without it, and would
/// leave bytes after it, PADDING precedes the frame.
pub(in crate::wire::frame) fn plan_datagram(room: usize, len: usize) -> Option<(usize, bool)> {
    let rest = room.checked_sub(1)?.checked_sub(len)?;
    if rest >= VarInt::saturating(len as u64).size() {
        Some((0, true))
    } else {
        Some((rest, false))
    }
}

/// Writes a frame that fills the packet.
pub(in crate::wire::frame) fn write_last_datagram(writer: &mut Writer<'_>, data: &[u8]) {
    writer.varint(FrameType::DATAGRAM.0);
    writer.put(data);
}

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
        crypto_header_size(self.offset) + VarInt::saturating(len as u64).size() + len
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        write_crypto_header(writer, self.offset, self.data.len());
        writer.put(self.data);
    }
}

/// Returns the bytes of the fields before the length.
pub(in crate::wire::frame) const fn crypto_header_size(offset: u64) -> usize {
    1 + VarInt::saturating(offset).size()
}

/// Writes everything but the data.
pub(in crate::wire::frame) fn write_crypto_header(
    writer: &mut Writer<'_>,
    offset: u64,
    len: usize,
) {
    writer.varint(FrameType::CRYPTO.0);
    writer.varint(offset);
    writer.varint(len as u64);
}
