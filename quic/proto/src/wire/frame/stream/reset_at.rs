//! The `RESET_STREAM_AT` frame.

use crate::wire::{
    FrameType, Reader, VarInt, Writer,
    error::Violation,
    frame::{Encode, StreamId, fields},
};

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
