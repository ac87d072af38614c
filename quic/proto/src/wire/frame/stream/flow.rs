//! Flow-control frames.

use crate::wire::{
    FrameType, Reader, VarInt, Writer,
    error::Violation,
    frame::{Direction, Encode, StreamId, fields},
};

/// Largest number of streams of one kind: the id of a further one would not fit 62 bits.
const MAX_STREAM_COUNT: u64 = 1 << 60;

/// `MAX_DATA` (RFC 9000 §19.9).
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaxData {
    /// Bytes the peer may send on all streams together.
    pub max: u64,
}

impl MaxData {
    pub(in crate::wire::frame) fn decode(reader: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self {
            max: reader.varint()?,
        })
    }

    const fn fields(self) -> [u64; 2] {
        [FrameType::MAX_DATA.0, self.max]
    }
}

/// `MAX_STREAM_DATA` (RFC 9000 §19.10).
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaxStreamData {
    /// The stream.
    pub id: StreamId,
    /// Bytes the peer may send on it.
    pub max: u64,
}

impl MaxStreamData {
    pub(in crate::wire::frame) fn decode(reader: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self {
            id: StreamId(reader.varint()?),
            max: reader.varint()?,
        })
    }

    const fn fields(self) -> [u64; 3] {
        [FrameType::MAX_STREAM_DATA.0, self.id.0, self.max]
    }
}

/// `MAX_STREAMS` (RFC 9000 §19.11).
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaxStreams {
    /// Direction of the streams.
    pub direction: Direction,
    /// Streams the peer may open, at most 2^60.
    pub max: u64,
}

impl MaxStreams {
    pub(in crate::wire::frame) fn decode(
        direction: Direction,
        reader: &mut Reader<'_>,
    ) -> Result<Self, Violation> {
        let max = stream_count(reader, Violation::MaxStreamsTooLarge)?;
        Ok(Self { direction, max })
    }

    pub(in crate::wire::frame) const fn frame_type(&self) -> FrameType {
        match self.direction {
            Direction::Bidi => FrameType::MAX_STREAMS_BIDI,
            Direction::Uni => FrameType::MAX_STREAMS_UNI,
        }
    }

    const fn fields(self) -> [u64; 2] {
        [self.frame_type().0, self.max]
    }
}

/// `DATA_BLOCKED` (RFC 9000 §19.12).
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataBlocked {
    /// Limit that blocks the sender.
    pub limit: u64,
}

impl DataBlocked {
    pub(in crate::wire::frame) fn decode(reader: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self {
            limit: reader.varint()?,
        })
    }

    const fn fields(self) -> [u64; 2] {
        [FrameType::DATA_BLOCKED.0, self.limit]
    }
}

/// `STREAM_DATA_BLOCKED` (RFC 9000 §19.13).
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamDataBlocked {
    /// The stream.
    pub id: StreamId,
    /// Limit that blocks the sender.
    pub limit: u64,
}

impl StreamDataBlocked {
    pub(in crate::wire::frame) fn decode(reader: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self {
            id: StreamId(reader.varint()?),
            limit: reader.varint()?,
        })
    }

    const fn fields(self) -> [u64; 3] {
        [FrameType::STREAM_DATA_BLOCKED.0, self.id.0, self.limit]
    }
}

/// `STREAMS_BLOCKED` (RFC 9000 §19.14).
///
/// Exhaustive: the specification of the frame fixes its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamsBlocked {
    /// Direction of the streams.
    pub direction: Direction,
    /// Limit that blocks the sender.
    pub limit: u64,
}

impl StreamsBlocked {
    pub(in crate::wire::frame) fn decode(
        direction: Direction,
        reader: &mut Reader<'_>,
    ) -> Result<Self, Violation> {
        let limit = stream_count(reader, Violation::StreamsBlockedTooLarge)?;
        Ok(Self { direction, limit })
    }

    pub(in crate::wire::frame) const fn frame_type(&self) -> FrameType {
        match self.direction {
            Direction::Bidi => FrameType::STREAMS_BLOCKED_BIDI,
            Direction::Uni => FrameType::STREAMS_BLOCKED_UNI,
        }
    }

    const fn fields(self) -> [u64; 2] {
        [self.frame_type().0, self.limit]
    }
}

fn stream_count(reader: &mut Reader<'_>, violation: Violation) -> Result<u64, Violation> {
    let count = reader.varint()?;
    if count > MAX_STREAM_COUNT {
        Err(violation)
    } else {
        Ok(count)
    }
}

fields!(
    MaxData,
    MaxStreamData,
    MaxStreams,
    DataBlocked,
    StreamDataBlocked,
    StreamsBlocked
);
