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
