//! Handles of the two ends of a stream.

mod bidi;
mod by_id;
mod delivery;
mod recv;
mod send;
mod whole;

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use hybriq_proto::owners::streams::StreamId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::worker::Handle;
pub use bidi::BidiStream;
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

impl AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        SendStream::poll_write(self.get_mut(), cx, data).map_err(Into::into)
    }

    /// Does nothing: written data is sent without a flush.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Finishes the stream.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().finish();
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = RecvStream::poll_read(self.get_mut(), cx, buffer.initialize_unfilled());
        read.map_ok(|count| buffer.advance(count))
            .map_err(Into::into)
    }
}
