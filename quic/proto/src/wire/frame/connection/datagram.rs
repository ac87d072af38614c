//! The DATAGRAM frame.

use crate::wire::{FrameType, Reader, VarInt, Writer, error::Violation, frame::Encode};

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
pub(in crate::wire::frame) fn plan(room: usize, len: usize) -> Option<(usize, bool)> {
    let rest = room.checked_sub(1)?.checked_sub(len)?;
    if rest >= VarInt::saturating(len as u64).size() {
        Some((0, true))
    } else {
        Some((rest, false))
    }
}

/// Writes a frame that fills the packet.
pub(in crate::wire::frame) fn write_last(writer: &mut Writer<'_>, data: &[u8]) {
    writer.varint(FrameType::DATAGRAM.0);
    writer.put(data);
}
