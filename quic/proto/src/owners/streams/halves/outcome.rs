//! Results of streams for the application: events, ends of streams, and reasons for failed calls.

use bytes::Bytes;

use crate::owners::streams::{Direction, StreamId};

/// Event that an application may be waiting for.
///
/// Each is reported once per wait: `Readable`, `Writable`, `Opened` and `Available` only after the
/// corresponding call found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamEvent {
    /// The peer opened at least one stream: [`Streams::accept`](crate::owners::streams::Streams::accept).
    Opened(Direction),
    /// Data, the end or a reset arrived after a read was blocked.
    Readable(StreamId),
    /// The send buffer has room after a write was blocked.
    Writable(StreamId),
    /// The peer does not want the data; wakes tasks that wait to write, or for acknowledgement.
    Stopped {
        /// The stream.
        id: StreamId,
        /// Code of the peer's application.
        code: u64,
    },
    /// The peer acknowledged all data and the end, or the reset.
    Acknowledged(StreamId),
    /// The stream was reset, because it was not delivered by [its time](crate::owners::streams::Streams::expire_at).
    Expired(StreamId),
    /// The peer acknowledged more of a [watched](crate::owners::streams::Streams::watch_send) stream.
    Delivered {
        /// The stream.
        id: StreamId,
        /// Bytes from its beginning that the peer has acknowledged; `u64::MAX` once it has the whole stream.
        acknowledged: u64,
    },
    /// Another stream may be opened after [`Streams::open`](crate::owners::streams::Streams::open) was refused.
    Available(Direction),
}

/// Bytes of a stream that this end sends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery {
    /// Bytes that the application has written.
    pub written: u64,
    /// Bytes that were sent at least once.
    pub sent: u64,
    /// Bytes from the beginning of the stream that the peer has acknowledged, up to the first gap.
    pub acknowledged: u64,
    /// Bytes of packets that were declared lost (RFC 9002 §6.1), each time they were lost. They are sent again.
    pub lost: u64,
}

/// A stream with data that is waiting for the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blocked {
    /// The stream.
    pub id: StreamId,
    /// Number that changes whenever the peer acknowledges data of the stream, or allows more.
    pub progress: u64,
}

/// Data that an application is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Awaited {
    /// Nothing: every stream was received to its end.
    Nothing,
    /// Anything that the peer sends on streams that it opened.
    News,
    /// The peer's part of a stream that we opened.
    Answers,
}

/// End of a receiving part, as far as the peer has said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecvEnd {
    /// The stream is open.
    Open,
    /// All data was received.
    Complete,
    /// The peer reset the stream with this code. Data before the reset may still be readable.
    Reset(u64),
}

/// Reason why nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The send buffer is full; [`StreamEvent::Writable`](StreamEvent::Writable) follows.
    #[error("the send buffer is full")]
    Blocked,
    /// The peer asked to stop, with this code (RFC 9000 §3.5).
    #[error("the peer stopped the stream with code {0}")]
    Stopped(u64),
    /// The stream was already finished or reset, or never existed.
    #[error("the sending part is closed")]
    Closed,
}

/// Reason why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// No data is available; [`StreamEvent::Readable`](StreamEvent::Readable) follows.
    #[error("no data has arrived")]
    Blocked,
    /// The peer reset the stream with this code (RFC 9000 §3.2). Returned once.
    #[error("the peer reset the stream with code {0}")]
    Reset(u64),
    /// The stream was stopped, its end or its reset was already read, or it never existed.
    #[error("the receiving part is closed")]
    Closed,
    /// The stream was already read unordered.
    #[error("the stream was read unordered; continue with unordered reads")]
    Unordered,
}

/// Data of a stream that is read in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chunk {
    /// Offset of the first byte in the stream.
    pub offset: u64,
    /// The bytes, at least one.
    pub bytes: Bytes,
}

/// Reason why a stream cannot be reset with reliable data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResetAtError {
    /// The peer does not accept `RESET_STREAM_AT`.
    #[error("the peer does not accept RESET_STREAM_AT")]
    Unsupported,
    /// All data was delivered, or the stream was reset or stopped, or never existed.
    #[error("the sending part is closed")]
    Closed,
}

/// This part of the stream is closed, or never existed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream is closed")]
#[non_exhaustive]
pub struct ClosedStream;
