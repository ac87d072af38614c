//! Handles of the two ends of a stream.

mod by_id;
mod io;
mod recv;
mod send;

use hybriq_proto::owners::streams::StreamId;

use crate::worker::Handle;
pub(crate) use by_id::{poll_room, poll_stopped};
pub use recv::RecvStream;
pub use send::SendStream;

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
