//! What the application hears of its streams: events, how they ended, and why a call was refused.

use bytes::Bytes;

use super::{Direction, StreamId};

/// Something an application may wait for.
///
/// Each is told once per wait: `Readable`, `Writable`, `Opened` and `Available` only after the call
/// they answer came back empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer opened at least one stream: [`Streams::accept`](super::Streams::accept).
    Opened(Direction),
    /// Data, the end or a reset arrived after a read was blocked.
    Readable(StreamId),
    /// The send buffer has room after a write was blocked.
    Writable(StreamId),
    /// The peer does not want the data; wakes whoever waits to write, or for acknowledgement.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The peer application's code.
        code: u64,
    },
    /// The peer has everything and the end, or the reset.
    Acknowledged(StreamId),
    /// Another stream may be opened after [`Streams::open`](super::Streams::open) was refused.
    Available(Direction),
}

/// End of a receiving part, as far as the peer said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecvEnd {
    /// The stream goes on.
    Open,
    /// All data came.
    Complete,
    /// The peer reset it, with this code. Data in front of the reset may still be there to read.
    Reset(u64),
}

/// Reason why nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The send buffer is full; [`StreamEvent::Writable`](StreamEvent::Writable) follows.
    #[error("the send buffer is full")]
    Blocked,
    /// The peer asked to stop, with this code (RFC 9000 §3.5).
    #[error("the peer stopped the stream with code {0}")]
    Stopped(u64),
    /// The stream was finished or reset before, or never was.
    #[error("the sending part is closed")]
    Closed,
}

/// Reason why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Nothing arrived; [`StreamEvent::Readable`](StreamEvent::Readable) follows.
    #[error("no data has arrived")]
    Blocked,
    /// The peer gave the stream up, with this code (RFC 9000 §3.2). Told once.
    #[error("the peer reset the stream with code {0}")]
    Reset(u64),
    /// The stream was stopped, read to its end or seen reset before, or never was.
    #[error("the receiving part is closed")]
    Closed,
    /// The stream was read unordered before.
    #[error("the stream was read unordered; go on with unordered reads")]
    Unordered,
}

/// Data of a stream that is read in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Offset of the first byte in the stream.
    pub offset: u64,
    /// The bytes, at least one.
    pub bytes: Bytes,
}

/// Reason why a stream is not reset behind data that still arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResetAtError {
    /// The peer does not take `RESET_STREAM_AT`.
    #[error("the peer takes no RESET_STREAM_AT")]
    Unsupported,
    /// All was delivered, the stream was reset or stopped, or never was.
    #[error("the sending part is closed")]
    Closed,
}

/// The part of the stream is closed already, or never was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream is closed")]
pub struct ClosedStream;
