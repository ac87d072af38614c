use crate::proto::streams::{Direction, StreamId};

/// MAX_DATA (RFC 9000 §19.9).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaxData {
    /// Bytes the peer may send on all streams together.
    pub max: u64,
}

/// MAX_STREAM_DATA (RFC 9000 §19.10).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaxStreamData {
    /// The stream.
    pub id: StreamId,
    /// Bytes the peer may send on it.
    pub max: u64,
}

/// MAX_STREAMS (RFC 9000 §19.11).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaxStreams {
    /// Which streams.
    pub direction: Direction,
    /// Streams the peer may open, at most 2^60.
    pub max: u64,
}

/// DATA_BLOCKED (RFC 9000 §19.12).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataBlocked {
    /// The limit that blocks.
    pub limit: u64,
}

/// STREAM_DATA_BLOCKED (RFC 9000 §19.13).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamDataBlocked {
    /// The stream.
    pub id: StreamId,
    /// The limit that blocks.
    pub limit: u64,
}

/// STREAMS_BLOCKED (RFC 9000 §19.14).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamsBlocked {
    /// Which streams.
    pub direction: Direction,
    /// The limit that blocks.
    pub limit: u64,
}
