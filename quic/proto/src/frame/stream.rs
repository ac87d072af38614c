//! The STREAM frame.

use super::StreamId;
use super::{DecodeError, Encode, check_end, fields};
use crate::wire::{FrameType, Reader, VarInt, Writer};

/// Types of STREAM, for patterns.
pub(super) const FIRST: u64 = FrameType::STREAM.0;
pub(super) const LAST: u64 = FrameType::STREAM_LAST.0;

const FIN: u64 = 0x01;
const LEN: u64 = 0x02;
const OFF: u64 = 0x04;

/// STREAM (RFC 9000 §19.8).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream<'a> {
    /// The stream.
    pub id: StreamId,
    /// Where the data starts.
    pub offset: u64,
    /// True if the stream ends behind the data.
    pub fin: bool,
    /// The data.
    pub data: &'a [u8],
}

impl<'a> Stream<'a> {
    pub(super) fn decode(ty: FrameType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let id = StreamId(reader.varint()?);
        let offset = if ty.0 & OFF == 0 { 0 } else { reader.varint()? };
        let data = if ty.0 & LEN == 0 {
            reader.take_rest()
        } else {
            reader.prefixed()?
        };
        check_end(offset, data, "STREAM data reaches beyond offset 2^62 - 1")?;
        Ok(Self {
            id,
            offset,
            fin: ty.0 & FIN != 0,
            data,
        })
    }

    /// The type without the LEN bit.
    pub(super) const fn frame_type(&self) -> FrameType {
        frame_type(self.offset, self.fin)
    }
}

impl Encode for Stream<'_> {
    fn size(&self) -> usize {
        let len = self.data.len();
        header_size(self.id, self.offset) + VarInt::saturating(len as u64).size() + len
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        write_header(
            writer,
            self.id,
            self.offset,
            self.fin,
            Some(self.data.len()),
        );
        writer.put(self.data);
    }
}

/// Bytes of the fields before the length.
pub(super) const fn header_size(id: StreamId, offset: u64) -> usize {
    let offset_size = if offset == 0 {
        0
    } else {
        VarInt::saturating(offset).size()
    };
    1 + VarInt::saturating(id.0).size() + offset_size
}

/// Writes everything but the data; without a length it must fill the packet.
pub(super) fn write_header(
    writer: &mut Writer<'_>,
    id: StreamId,
    offset: u64,
    fin: bool,
    len: Option<usize>,
) {
    writer.varint(frame_type(offset, fin).0 | if len.is_some() { LEN } else { 0 });
    writer.varint(id.0);
    if offset > 0 {
        writer.varint(offset);
    }
    if let Some(len) = len {
        writer.varint(len as u64);
    }
}

const fn frame_type(offset: u64, fin: bool) -> FrameType {
    let offset = if offset == 0 { 0 } else { OFF };
    FrameType(FrameType::STREAM.0 | offset | if fin { FIN } else { 0 })
}

/// `RESET_STREAM` (RFC 9000 §19.4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResetStream {
    /// The stream.
    pub id: StreamId,
    /// The application's error code.
    pub code: u64,
    /// Bytes the sender sent at most.
    pub final_size: u64,
}

impl ResetStream {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let id = StreamId(reader.varint()?);
        Ok(Self {
            id,
            code: reader.varint()?,
            final_size: reader.varint()?,
        })
    }

    const fn fields(self) -> [u64; 4] {
        [
            FrameType::RESET_STREAM.0,
            self.id.0,
            self.code,
            self.final_size,
        ]
    }
}

/// `STOP_SENDING` (RFC 9000 §19.5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StopSending {
    /// The stream.
    pub id: StreamId,
    /// The application's error code.
    pub code: u64,
}

impl StopSending {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            id: StreamId(reader.varint()?),
            code: reader.varint()?,
        })
    }

    const fn fields(self) -> [u64; 3] {
        [FrameType::STOP_SENDING.0, self.id.0, self.code]
    }
}

fields!(ResetStream, StopSending);
