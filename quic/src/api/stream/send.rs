//! The sending end of a stream.

use std::{
    fmt,
    future::poll_fn,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hybriq_proto::owners::streams::{self, ClosedStream, Priority, StreamId, Streams};

use super::by_id;
use crate::{
    errors::{ResetAtError, WriteError, wire_code},
    worker::{Handle, Rejected, set_waker},
};

/// Maximum number of bytes that are copied into the connection under one lock.
const COPY: usize = 256 * 1024;

/// The sending end of a stream.
///
/// Dropping it before [`finish`](Self::finish) resets the stream with code 0 or the code of
/// [`ApplicationCodes::dropped_send`](crate::transport::ApplicationCodes::dropped_send), so that
/// the peer never mistakes truncated data for complete data. After `finish`, the data is still
/// delivered, even if all handles of the connection are dropped as well; only closing the
/// connection prevents that.
pub struct SendStream {
    pub(super) handle: Handle,
    pub(super) id: StreamId,
    pub(super) end: End,
    priority: Priority,
}

/// Final action of this end on the stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Open,
    Finished,
    /// Reset at an offset; a later reset may lower the offset.
    ResetAt,
    Reset,
}

impl fmt::Debug for SendStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SendStream").field(&self.id).finish()
    }
}

impl SendStream {
    pub(crate) fn new(handle: Handle, id: StreamId) -> Self {
        Self {
            handle,
            id,
            end: End::Open,
            priority: Priority::default(),
        }
    }

    /// Returns the stream's number.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Returns the stream's priority among the connection's streams.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// Sets the stream's priority among the connection's streams.
    ///
    /// May be called at any time. It takes effect at once, also for data already written, and
    /// changes nothing once everything was delivered. The peer does not learn of it, and the data
    /// that the peer sends is not affected.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(connection: hybriq::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// use hybriq::transport::Priority;
    ///
    /// let mut backup = connection.open_uni().await?;
    /// backup.set_priority(Priority::new(7)); // only what the other streams leave
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_priority(&mut self, priority: Priority) {
        self.priority = priority;
        if let Ok(mut state) = self.handle.lock_stream() {
            // The connection is closed: nothing is left to send.
            let _ = state.core.streams().set_priority(self.id, priority);
        }
    }

    /// Returns how many more bytes the peer accepts now, beyond those already written, by its
    /// limits for the stream and for the connection (RFC 9000 §4.1). 0 once the stream or the
    /// connection is over.
    ///
    /// Writing more is not an error: it waits in the [send buffer](crate::TransportConfig::send_buffer) until the peer
    /// raises its limit. All streams share the limit of the connection.
    pub fn credit(&self) -> u64 {
        let state = self.handle.lock_stream().ok();
        let state = state.filter(|state| state.closed.is_none());
        let credit = state.and_then(|mut state| state.core.streams().credit(self.id));
        credit.unwrap_or(0)
    }

    /// Writes some of the data and returns the number of bytes written. Waits while the [send
    /// buffer](crate::TransportConfig::send_buffer) is full.
    ///
    /// # Errors
    /// The peer stopped the stream, it was finished, or the connection is over.
    ///
    /// # Cancel safety
    /// Writes nothing if the future is dropped before it is ready.
    pub async fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        poll_fn(|cx| self.poll_write(cx, data)).await
    }

    /// Writes all of the data.
    ///
    /// # Errors
    /// The peer stopped the stream, it was finished, or the connection is over.
    ///
    /// # Cancel safety
    /// Not cancel safe: a part of the data may have been written when the future is dropped.
    pub async fn write_all(&mut self, mut data: &[u8]) -> Result<(), WriteError> {
        while !data.is_empty() {
            let written = self.write(data).await?;
            data = data.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Writes all of the data without copying it.
    ///
    /// # Errors
    /// The peer stopped the stream, it was finished, or the connection is over.
    ///
    /// # Cancel safety
    /// Not cancel safe: a part of the data may have been written when the future is dropped.
    pub async fn write_chunk(&mut self, mut data: Bytes) -> Result<(), WriteError> {
        while !data.is_empty() {
            poll_fn(|cx| self.poll_write_chunk(cx, &mut data)).await?;
        }
        Ok(())
    }

    /// Writes all of the chunks without copying them, as many as fit under one lock.
    ///
    /// # Errors
    /// The peer stopped the stream, it was finished, or the connection is over.
    ///
    /// # Cancel safety
    /// Written data is removed from the front of `chunks`: if the future is dropped before it is
    /// ready, they hold the rest.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(mut send: hybriq::SendStream) -> Result<(), hybriq::WriteError> {
    /// send.write_chunks(&mut ["a header".into(), "and its body".into()]).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn write_chunks(&mut self, chunks: &mut [Bytes]) -> Result<(), WriteError> {
        while chunks.iter().any(|chunk| !chunk.is_empty()) {
            poll_fn(|cx| self.poll_write_chunks(cx, chunks)).await?;
        }
        Ok(())
    }

    /// Writes all of the chunks without copying them, and ends the stream. Everything that fits
    /// into the send buffer is written under one lock together with the end, so that a short message and its end are
    /// sent in one packet.
    ///
    /// # Errors
    /// The peer stopped the stream, it was finished, or the connection is over.
    ///
    /// # Cancel safety
    /// Written data is removed from the front of `chunks`: if the future is dropped before it is
    /// ready, they hold the rest, and the stream is not finished.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(mut send: hybriq::SendStream) -> Result<(), hybriq::WriteError> {
    /// send.finish_with(&mut ["a header".into(), "and its body".into()]).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn finish_with(&mut self, chunks: &mut [Bytes]) -> Result<(), WriteError> {
        poll_fn(|cx| self.poll_finish_with(cx, chunks)).await
    }

    /// Writes some of the data and returns the number of bytes written; the twin of
    /// [`write`](Self::write).
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let data = data.get(..COPY).unwrap_or(data);
        self.poll_with(cx, |streams, id| streams.write(id, data))
    }

    /// Writes from the front of the data, without copying it, and returns the number of bytes.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn poll_write_chunk(
        &mut self,
        cx: &mut Context<'_>,
        data: &mut Bytes,
    ) -> Poll<Result<usize, WriteError>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.poll_with(cx, |streams, id| streams.write_chunk(id, data))
    }

    /// Writes from the front of the chunks, without copying them and under one lock. Returns the
    /// number of bytes written, which are removed from the chunks.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn poll_write_chunks(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut [Bytes],
    ) -> Poll<Result<usize, WriteError>> {
        if chunks.iter().all(Bytes::is_empty) {
            return Poll::Ready(Ok(0));
        }
        self.poll_with(cx, |streams, id| write_chunks(streams, id, chunks))
    }

    /// Writes the chunks and ends the stream; the twin of [`finish_with`](Self::finish_with). Ready once
    /// everything was written. Written data is removed from the front of the chunks.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn poll_finish_with(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut [Bytes],
    ) -> Poll<Result<(), WriteError>> {
        loop {
            let mut done = false;
            ready!(self.poll_with(cx, |streams, id| {
                let written = write_chunks(streams, id, chunks)?;
                if chunks.iter().all(Bytes::is_empty) {
                    done = true;
                    streams
                        .finish(id)
                        .map_err(|_| streams::WriteError::Closed)?;
                }
                Ok(written)
            }))?;
            if done {
                self.end = End::Finished;
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Writes a copy of a prefix of the data, and ends the stream if that is all. Returns the number of bytes written.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn poll_write_last(
        &mut self,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        let written = ready!(self.poll_with(cx, |streams, id| {
            let written = match data.get(..COPY).unwrap_or(data) {
                [] => 0,
                part => streams.write(id, part)?,
            };
            if written == data.len() {
                streams
                    .finish(id)
                    .map_err(|_| streams::WriteError::Closed)?;
            }
            Ok(written)
        }))?;
        if written == data.len() {
            self.end = End::Finished;
        }
        Poll::Ready(Ok(written))
    }

    fn poll_with(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(&mut Streams, StreamId) -> Result<usize, streams::WriteError>,
    ) -> Poll<Result<usize, WriteError>> {
        if self.end != End::Open {
            return Poll::Ready(Err(WriteError::Closed));
        }
        let mut state = self.handle.lock_stream()?;
        if let Some(error) = &state.closed {
            return Poll::Ready(Err(error.clone().into()));
        }
        match write(state.core.streams(), self.id) {
            Ok(written) => {
                drop(state);
                self.handle.touch();
                Poll::Ready(Ok(written))
            }
            Err(streams::WriteError::Blocked) => {
                let side = state.sends.entry(self.id).or_default();
                let replaced = set_waker(&mut side.writer, cx);
                drop(state);
                drop(replaced);
                self.handle.on_polled(Poll::Pending)
            }
            Err(streams::WriteError::Stopped(code)) => Poll::Ready(Err(WriteError::Stopped(code))),
            Err(_) => Poll::Ready(Err(by_id::refusal(&mut state, self.id))),
        }
    }

    /// Ends the stream after the data written so far. Has no effect after an earlier finish or reset.
    pub fn finish(&mut self) {
        self.end_with(End::Finished, Streams::finish);
    }

    /// Abandons the stream with the application's code: data written so far may not arrive. Has no
    /// effect after an earlier finish or reset.
    pub fn reset(&mut self, code: u64) {
        self.end_with(End::Reset, |streams, id| streams.reset(id, wire_code(code)));
    }

    /// Abandons the stream with the application's code, but delivers its first `reliable_size`
    /// bytes, or all that was written if that is less: the peer reads them before it sees the reset
    /// (`RESET_STREAM_AT`, draft-ietf-quic-reliable-stream-reset).
    ///
    /// Protocols such as WebTransport use this so that the peer learns what an abandoned stream was
    /// about. A second call can lower the number of bytes; the first code stays. A finished stream
    /// can be reset too, until all of it has arrived.
    ///
    /// # Errors
    /// The peer does not support it, nothing is left to reset, or the connection is over. The
    /// stream is unchanged then.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(connection: hybriq::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut stream = connection.open_uni().await?;
    /// stream.write_all(b"header and some of the body").await?;
    /// if stream.reset_at(7, 6).is_err() {
    ///     stream.reset(7);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn reset_at(&mut self, code: u64, reliable_size: u64) -> Result<(), ResetAtError> {
        if self.end == End::Reset {
            return Err(ResetAtError::Closed);
        }
        // A stream that was never opened has nothing to reset.
        let mut state = self
            .handle
            .lock_stream()
            .map_err(|_| ResetAtError::Closed)?;
        if let Some(error) = &state.closed {
            return Err(error.clone().into());
        }
        let streams = state.core.streams();
        let result = streams.reset_at(self.id, wire_code(code), reliable_size);
        drop(state);
        result.map_err(|error| match error {
            streams::ResetAtError::Unsupported => ResetAtError::Unsupported,
            _ => ResetAtError::Closed,
        })?;
        self.end = End::ResetAt;
        self.handle.touch();
        Ok(())
    }

    fn end_with(
        &mut self,
        end: End,
        act: impl FnOnce(&mut Streams, StreamId) -> Result<(), ClosedStream>,
    ) {
        let ended = match self.end {
            End::Open => false,
            End::ResetAt => end != End::Reset,
            End::Finished | End::Reset => true,
        };
        if ended {
            return;
        }
        self.end = end;
        let Ok(mut state) = self.handle.lock_stream() else {
            return;
        };
        if state.closed.is_none() {
            // The peer may have stopped the stream: nothing is left to end then.
            let _ = act(state.core.streams(), self.id);
            drop(state);
            self.handle.touch();
        }
    }
}

/// Writes from the front of the chunks, at least one of which must not be empty.
fn write_chunks(
    streams: &mut Streams,
    id: StreamId,
    chunks: &mut [Bytes],
) -> Result<usize, streams::WriteError> {
    let mut total = 0;
    for chunk in chunks.iter_mut().filter(|chunk| !chunk.is_empty()) {
        match streams.write_chunk(id, chunk) {
            Ok(written) => total += written,
            Err(error) if total == 0 => return Err(error),
            Err(_) => break,
        }
        if !chunk.is_empty() {
            break;
        }
    }
    Ok(total)
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let Ok(mut state) = self.handle.lock_stream() else {
            return;
        };
        let side = state.sends.remove(&self.id);
        if state.closed.is_none() {
            let code = state.core.application_codes().of_dropped_send();
            state.core.streams().forget_send(self.id, code);
            drop(state);
            self.handle.touch();
        } else {
            drop(state);
        }
        // The wakers may run their own code when they are dropped. A task that waits for the end of
        // the stream without this handle learns that it is gone.
        if let Some(watcher) = side.and_then(|side| side.watcher) {
            watcher.wake();
        }
    }
}

impl From<Rejected> for WriteError {
    fn from(Rejected: Rejected) -> Self {
        Self::ZeroRttRejected
    }
}
