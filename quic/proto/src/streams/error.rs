/// Why nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The send buffer is full; [`StreamEvent::Writable`](super::StreamEvent::Writable) follows.
    #[error("the send buffer is full")]
    Blocked,
    /// The peer asked to stop, with this code (RFC 9000 §3.5).
    #[error("the peer stopped the stream with code {0}")]
    Stopped(u64),
    /// The stream was finished or reset before, or never was.
    #[error("the sending part is closed")]
    Closed,
}

/// Why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Nothing arrived; [`StreamEvent::Readable`](super::StreamEvent::Readable) follows.
    #[error("no data has arrived")]
    Blocked,
    /// The peer gave the stream up, with this code (RFC 9000 §3.2). Told once.
    #[error("the peer reset the stream with code {0}")]
    Reset(u64),
    /// The stream was stopped, read to its end or seen reset before, or never was.
    #[error("the receiving part is closed")]
    Closed,
}

/// Why a stream is not reset behind data that still arrives.
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
