//! The DATAGRAM frame.

use super::{DecodeError, Encode};
use crate::wire::{FrameType, Reader, VarInt, Writer};

/// DATAGRAM (RFC 9221 §4): data that is not sent again when it is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The data.
    pub data: &'a [u8],
}

impl<'a> Datagram<'a> {
    pub(super) fn decode(ty: FrameType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let data = if ty == FrameType::DATAGRAM {
            reader.take_rest()
        } else {
            reader.prefixed()?
        };
        Ok(Self { data })
    }

    /// Bytes of the frame at least: its type and its data. A length comes on top.
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

/// How a frame with so much data goes into the rest of a packet: behind how many bytes of PADDING,
/// and whether with a length. `None` if it does not fit.
///
/// The length may be left out by the last frame of a packet. Where the data fits only without it,
/// and would leave a byte or more behind it, PADDING goes in front.
pub(super) fn plan(room: usize, len: usize) -> Option<(usize, bool)> {
    let rest = room.checked_sub(1)?.checked_sub(len)?;
    if rest >= VarInt::saturating(len as u64).size() {
        Some((0, true))
    } else {
        Some((rest, false))
    }
}

/// Writes a frame that fills the packet.
pub(super) fn write_last(writer: &mut Writer<'_>, data: &[u8]) {
    writer.varint(FrameType::DATAGRAM.0);
    writer.put(data);
}
