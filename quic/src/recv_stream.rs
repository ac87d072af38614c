use std::{
    fmt,
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};

use crate::{
    connection::wire_code,
    error::ReadError,
    worker::{Handle, Rejected, State, set_waker},
};
use hybriq_proto::streams::{self, RecvEnd, StreamId, Streams};

/// Asked for at once by [`RecvStream::read_to_end`].
const CHUNK: usize = 64 * 1024;

/// The receiving end of a stream.
///
/// Dropped before its end was read it tells the peer to stop sending, with code 0.
pub struct RecvStream {
    handle: Handle,
    id: StreamId,
    end: End,
    early: bool,
}

/// How the stream ended for the reader. Told again to whoever asks again.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Open,
    Finished,
    Failed(ReadError),
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RecvStream").field(&self.id).finish()
    }
}

impl RecvStream {
    pub(crate) fn new(handle: Handle, id: StreamId) -> Self {
        Self {
            handle,
            id,
            end: End::Open,
            early: false,
        }
    }

    /// The stream's number.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Whether some of it came in 0-RTT packets, on a server: whoever recorded them can have sent
    /// them again (RFC 9001 §9.2).
    ///
    /// It may become true while the stream is read. A request that must not be acted on twice is to
    /// be refused, or to wait until the client repeats it on a stream that is not early.
    pub fn is_early(&self) -> bool {
        let streams = |state: &mut State| state.core.streams().is_early(self.id);
        self.early
            || self
                .handle
                .lock_stream()
                .is_ok_and(|mut state| streams(&mut state))
    }

    /// Reads what there is, in order, and says how much; 0 is the end of the stream.
    ///
    /// What came before the connection ended can still be read.
    ///
    /// # Errors
    /// The peer reset the stream, it was stopped here, or the connection is over.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has read nothing.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        poll_fn(|cx| self.poll_read(cx, buffer)).await
    }

    /// Reads up to `max` bytes without copying them; `None` is the end of the stream.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has read nothing.
    pub async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, ReadError> {
        poll_fn(|cx| self.poll_read_chunk(cx, max)).await
    }

    /// Reads the rest of the stream, which may be up to `limit` bytes.
    ///
    /// # Errors
    /// [`ReadError::TooLong`] beyond the limit, else as [`read`](Self::read).
    ///
    /// # Cancel safety
    /// Not cancel safe: dropped before it is ready, what it read is lost.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, ReadError> {
        let mut all = Vec::new();
        while let Some(chunk) = self.read_chunk(CHUNK).await? {
            if chunk.len() > limit - all.len() {
                return Err(ReadError::TooLong { limit });
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    /// Reads what there is; the twin of [`read`](Self::read).
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<Result<usize, ReadError>> {
        if buffer.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let read = self.poll_with(cx, |streams, id| match streams.read(id, buffer)? {
            0 => Ok(None),
            count => Ok(Some(count)),
        });
        read.map_ok(Option::unwrap_or_default)
    }

    /// Reads a chunk; the twin of [`read_chunk`](Self::read_chunk).
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn poll_read_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        if max == 0 {
            return Poll::Ready(Ok(Some(Bytes::new())));
        }
        self.poll_with(cx, |streams, id| streams.read_chunk(id, max))
    }

    fn poll_with<T>(
        &mut self,
        cx: &mut Context<'_>,
        read: impl FnOnce(&mut Streams, StreamId) -> Result<Option<T>, streams::ReadError>,
    ) -> Poll<Result<Option<T>, ReadError>> {
        match &self.end {
            End::Open => {}
            End::Finished => return Poll::Ready(Ok(None)),
            End::Failed(error) => return Poll::Ready(Err(error.clone())),
        }
        let mut state = self.handle.lock_stream()?;
        self.early |= state.core.streams().is_early(self.id);
        let error = match read(state.core.streams(), self.id) {
            Ok(read) => {
                let alive = state.closed.is_none();
                drop(state);
                if read.is_none() {
                    self.end = End::Finished;
                }
                if alive {
                    // The peer may be owed more credit.
                    self.handle.touch();
                }
                return Poll::Ready(Ok(read));
            }
            Err(streams::ReadError::Blocked) => {
                let Some(error) = &state.closed else {
                    let replaced = set_waker(state.recvs.entry(self.id).or_default(), cx);
                    drop(state);
                    drop(replaced);
                    return Poll::Pending;
                };
                error.clone().into()
            }
            Err(streams::ReadError::Reset(code)) => ReadError::Reset(code),
            Err(streams::ReadError::Closed) => ReadError::Stopped,
        };
        drop(state);
        self.end = End::Failed(error.clone());
        Poll::Ready(Err(error))
    }

    /// Waits until it is known how the stream ends, without reading: `Some` is the code with which
    /// the peer reset it, `None` means that all of it came, or that it was stopped here.
    ///
    /// Of a stream that was reset with `RESET_STREAM_AT` some data may be left to read.
    ///
    /// # Errors
    /// The connection is over.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn received_reset(&mut self) -> Result<Option<u64>, ReadError> {
        poll_fn(|cx| self.poll_received_reset(cx)).await
    }

    fn poll_received_reset(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<u64>, ReadError>> {
        match self.end {
            End::Failed(ReadError::Reset(code)) => return Poll::Ready(Ok(Some(code))),
            End::Finished | End::Failed(ReadError::Stopped) => return Poll::Ready(Ok(None)),
            End::Open | End::Failed(_) => {}
        }
        let mut state = self.handle.lock_stream()?;
        match state.core.streams().recv_end(self.id) {
            Some(RecvEnd::Reset(code)) => return Poll::Ready(Ok(Some(code))),
            Some(RecvEnd::Complete) | None => return Poll::Ready(Ok(None)),
            Some(RecvEnd::Open) => {}
        }
        if let Some(error) = &state.closed {
            return Poll::Ready(Err(error.clone().into()));
        }
        state.core.streams().watch_recv(self.id);
        let replaced = set_waker(state.recvs.entry(self.id).or_default(), cx);
        drop(state);
        drop(replaced);
        Poll::Pending
    }

    /// Tells the peer not to send any more, with the application's code (STOP_SENDING), and drops
    /// what came and was not read. Has no effect after the end.
    pub fn stop(&mut self, code: u64) {
        if self.end != End::Open {
            return;
        }
        self.end = End::Failed(ReadError::Stopped);
        let Ok(mut state) = self.handle.lock_stream() else {
            return;
        };
        if state.closed.is_none() {
            // It may have ended meanwhile: nothing is left to stop then.
            let _ = state.core.streams().stop(self.id, wire_code(code));
            drop(state);
            self.handle.touch();
        }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        let Ok(mut state) = self.handle.lock_stream() else {
            return;
        };
        let waker = state.recvs.remove(&self.id);
        state.core.streams().forget_recv(self.id);
        let alive = state.closed.is_none();
        drop(state);
        if alive {
            self.handle.touch();
        }
        // It may run code of its own when it goes.
        drop(waker);
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

impl From<Rejected> for ReadError {
    fn from(Rejected: Rejected) -> Self {
        Self::ZeroRttRejected
    }
}
