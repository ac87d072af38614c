//! The frames that carry, reset and stop a stream.

pub(super) mod flow;
pub(super) mod id;

use super::{Encode, StreamId, check_end, fields};
use crate::wire::{FrameType, Reader, VarInt, Writer, error::Violation};

/// Types of STREAM, for patterns.
pub(super) const FIRST: u64 = FrameType::STREAM.0;
pub(super) const LAST: u64 = FrameType::STREAM_LAST.0;

const FIN: u64 = 0x01;
const LEN: u64 = 0x02;
const OFF: u64 = 0x04;

/// STREAM (RFC 9000 §19.8).
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream<'a> {
    /// The stream.
    pub id: StreamId,
    /// Offset of the data.
    pub offset: u64,
    /// True if the stream ends after the data.
    pub fin: bool,
    /// The data.
    pub data: &'a [u8],
}

impl<'a> Stream<'a> {
    pub(super) fn decode(ty: FrameType, reader: &mut Reader<'a>) -> Result<Self, Violation> {
        let id = StreamId(reader.varint()?);
        let offset = if ty.0 & OFF == 0 { 0 } else { reader.varint()? };
        let data = if ty.0 & LEN == 0 {
            reader.take_rest()
        } else {
            reader.prefixed()?
        };
        check_end(offset, data, Violation::StreamBeyondOffsets)?;
        Ok(Self {
            id,
            offset,
            fin: ty.0 & FIN != 0,
            data,
        })
    }

    /// Returns the fields before the length.
    pub(super) const fn header(&self) -> StreamHeader {
        StreamHeader {
            id: self.id,
            offset: self.offset,
            fin: self.fin,
        }
    }
}

/// The fields of a STREAM frame before its length.
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHeader {
    /// The stream.
    pub id: StreamId,
    /// Offset of the data.
    pub offset: u64,
    /// True if the stream ends after the data.
    pub fin: bool,
}

impl StreamHeader {
    /// Returns the frame type without the LEN bit.
    pub(super) const fn frame_type(self) -> FrameType {
        let offset = if self.offset == 0 { 0 } else { OFF };
        let fin = if self.fin { FIN } else { 0 };
        FrameType(FrameType::STREAM.0 | offset | fin)
    }

    /// Returns the bytes that these fields take.
    pub(super) const fn size(self) -> usize {
        let offset_size = if self.offset == 0 {
            0
        } else {
            VarInt::saturating(self.offset).size()
        };
        1 + VarInt::saturating(self.id.0).size() + offset_size
    }

    /// Writes these fields and the length of the data. A frame without a length fills the packet.
    pub(super) fn encode(self, len: Option<usize>, writer: &mut Writer<'_>) {
        writer.varint(self.frame_type().0 | if len.is_some() { LEN } else { 0 });
        writer.varint(self.id.0);
        if self.offset > 0 {
            writer.varint(self.offset);
        }
        if let Some(len) = len {
            writer.varint(len as u64);
        }
    }
}

impl Encode for Stream<'_> {
    fn size(&self) -> usize {
        let len = self.data.len();
        self.header().size() + VarInt::saturating(len as u64).size() + len
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        self.header().encode(Some(self.data.len()), writer);
        writer.put(self.data);
    }
}

/// `RESET_STREAM` (RFC 9000 §19.4).
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResetStream {
    /// The stream.
    pub id: StreamId,
    /// The application's error code.
    pub code: u64,
    /// Final size of the stream.
    pub final_size: u64,
}

impl ResetStream {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Violation> {
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
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StopSending {
    /// The stream.
    pub id: StreamId,
    /// The application's error code.
    pub code: u64,
}

impl StopSending {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Violation> {
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

/// `RESET_STREAM_AT` (draft-ietf-quic-reliable-stream-reset §4): a reset that still delivers the
/// beginning of the stream.
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetStreamAt {
    /// The stream.
    pub id: StreamId,
    /// The application's error code.
    pub code: u64,
    /// Final size of the stream.
    pub final_size: u64,
    /// Bytes at the beginning of the stream that are still delivered.
    pub reliable_size: u64,
}

impl ResetStreamAt {
    pub(in crate::wire::frame) fn decode(reader: &mut Reader<'_>) -> Result<Self, Violation> {
        let frame = Self {
            id: StreamId(reader.varint()?),
            code: reader.varint()?,
            final_size: reader.varint()?,
            reliable_size: reader.varint()?,
        };
        if frame.reliable_size > frame.final_size {
            return Err(Violation::ReliableSizeBeyondFinal);
        }
        Ok(frame)
    }

    const fn fields(self) -> [u64; 5] {
        [
            FrameType::RESET_STREAM_AT.0,
            self.id.0,
            self.code,
            self.final_size,
            self.reliable_size,
        ]
    }
}

fields!(ResetStreamAt);
