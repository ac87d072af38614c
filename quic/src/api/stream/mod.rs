//! Handles of the two ends of a stream.

mod io;
mod recv;
mod send;

use hybriq_proto::owners::streams::StreamId;

use crate::worker::Handle;
pub use recv::RecvStream;
pub use send::SendStream;
pub(crate) use send::{poll_room, poll_stopped};

/// Returns both ends of a bidirectional stream.
pub(crate) fn bidi(handle: &Handle, id: StreamId) -> (SendStream, RecvStream) {
    (send(handle, id), recv(handle, id))
}

/// Returns the sending end of a stream.
pub(crate) fn send(handle: &Handle, id: StreamId) -> SendStream {
    SendStream::new(handle.clone(), id)
}

/// Returns the receiving end of a stream.
pub(crate) fn recv(handle: &Handle, id: StreamId) -> RecvStream {
    RecvStream::new(handle.clone(), id)
}
