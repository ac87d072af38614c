//! Streams of sessions.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hybriq::{ReadError, StreamId, WriteError, transport::Priority};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{
    SessionError, StreamError,
    code::{SESSION_GONE, from_wire, to_wire},
    shared::Shared,
};

/// The sending end of a stream.
///
/// Dropping it before it is finished resets the stream with code 0.
pub struct SendStream {
    stream: hybriq::SendStream,
    /// Number of bytes of the header, which the peer gets even if the stream is reset.
    header: u64,
    open: bool,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for SendStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendStream").finish_non_exhaustive()
    }
}

/// The receiving end of a stream.
///
/// Dropping it before its end was read stops the stream with code 0.
pub struct RecvStream {
    stream: hybriq::RecvStream,
    /// Data that came with the header.
    head: Bytes,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecvStream").finish_non_exhaustive()
    }
}

impl SendStream {
    pub(super) fn new(stream: hybriq::SendStream, header: u64, shared: Arc<Shared>) -> Self {
        Self {
            stream,
            header,
            open: true,
            shared,
        }
    }

    /// Returns the stream's number on its connection.
    pub fn id(&self) -> StreamId {
        self.stream.id()
    }

    /// Sets the stream's priority among those of its connection: see
    /// [`hybriq::SendStream::set_priority`].
    pub fn set_priority(&mut self, priority: Priority) {
        self.stream.set_priority(priority);
    }

    /// Writes some of the data, and returns the number of bytes.
    ///
    /// # Errors
    /// The peer stopped the stream, it has ended, or the session is over.
    ///
    /// # Cancel safety
    /// Writes nothing if the future is dropped before it is ready.
    pub async fn write(&mut self, data: &[u8]) -> Result<usize, StreamError> {
        let written = self.stream.write(data).await;
        written.map_err(|error| self.error(error))
    }

    /// Writes all of the data.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Cancel safety
    /// Not cancel safe: a part of the data may have been written when the future is dropped.
    pub async fn write_all(&mut self, data: &[u8]) -> Result<(), StreamError> {
        let written = self.stream.write_all(data).await;
        written.map_err(|error| self.error(error))
    }

    /// Writes from the front of the data, without copying it, and returns the number of bytes.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Cancel safety
    /// Writes nothing if the future is dropped before it is ready.
    pub async fn write_chunk(&mut self, data: &mut Bytes) -> Result<usize, StreamError> {
        let stream = &mut self.stream;
        let written = poll_fn(|cx| stream.poll_write_chunk(cx, data)).await;
        written.map_err(|error| self.error(error))
    }

    /// Ends the stream after the data written so far.
    ///
    /// # Errors
    /// The stream has ended, or the session is over.
    pub fn finish(&mut self) -> Result<(), StreamError> {
        if let Some(end) = self.shared.end() {
            return Err(end.into());
        }
        if !self.open {
            return Err(StreamError::Ended);
        }
        self.open = false;
        self.stream.finish();
        Ok(())
    }

    /// Abandons the stream with a code of the application: data may not arrive, but the peer learns to
    /// which session the stream belonged. Without effect after an earlier reset.
    pub fn reset(&mut self, code: u32) {
        self.open = false;
        let code = to_wire(code);
        if self.header == 0 || self.stream.reset_at(code, self.header).is_err() {
            self.stream.reset(code);
        }
    }

    /// Waits until the peer needs nothing more of this stream. `Ok` means that it has acknowledged all
    /// data and the end of the stream, or its reset.
    ///
    /// # Errors
    /// The peer stopped the stream, or the session is over.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn closed(&mut self) -> Result<(), StreamError> {
        let stopped = self.stream.stopped().await;
        match stopped.map_err(|error| self.error(error))? {
            None => self.shared.end().map_or(Ok(()), |end| Err(end.into())),
            Some(code) => Err(self.stopped(code)),
        }
    }

    fn stopped(&self, code: u64) -> StreamError {
        match self.shared.end() {
            Some(end) if code == SESSION_GONE => end.into(),
            _ => StreamError::Stopped(from_wire(code)),
        }
    }

    pub(super) fn error(&self, error: WriteError) -> StreamError {
        match error {
            WriteError::Stopped(code) => self.stopped(code),
            WriteError::Connection(error) => {
                let end = self.shared.end();
                end.unwrap_or(SessionError::Connection(error)).into()
            }
            _ => self
                .shared
                .end()
                .map_or(StreamError::Ended, StreamError::from),
        }
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        self.shared.leave_send(self.stream.id());
        if self.open {
            self.reset(0);
        }
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(this.stream.poll_write(cx, data));
        Poll::Ready(written.map_err(|error| this.error(error).into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.open {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(this.finish().map_err(io::Error::from))
    }
}

impl RecvStream {
    pub(super) fn new(stream: hybriq::RecvStream, head: Bytes, shared: Arc<Shared>) -> Self {
        Self {
            stream,
            head,
            shared,
        }
    }

    /// Returns the stream's number on its connection.
    pub fn id(&self) -> StreamId {
        self.stream.id()
    }

    /// Reads available bytes, and returns their number; 0 is the end of the stream.
    ///
    /// # Errors
    /// The peer reset the stream, it was stopped here, or the session is over.
    ///
    /// # Cancel safety
    /// Reads nothing if the future is dropped before it is ready.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, StreamError> {
        poll_fn(|cx| self.poll_into(cx, buffer)).await
    }

    /// Reads up to `max` bytes without copying them; `None` is the end of the stream.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    ///
    /// # Cancel safety
    /// Reads nothing if the future is dropped before it is ready.
    pub async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, StreamError> {
        if !self.head.is_empty() {
            let len = max.min(self.head.len());
            return Ok(Some(self.head.split_to(len)));
        }
        let read = self.stream.read_chunk(max).await;
        read.map_err(|error| self.error(error))
    }

    /// Reads the rest of the stream, at most `limit` bytes.
    ///
    /// # Errors
    /// [`StreamError::TooLong`] beyond the limit, else as [`read`](Self::read).
    ///
    /// # Cancel safety
    /// Not cancel safe: what was read is lost if the future is dropped before it is ready.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, StreamError> {
        let mut all = Vec::new();
        while let Some(chunk) = self.read_chunk(usize::MAX).await? {
            if chunk.len() > limit - all.len() {
                return Err(StreamError::TooLong { limit });
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    /// Asks the peer to stop sending, with a code of the application, and drops unread data.
    pub fn stop(&mut self, code: u32) {
        self.head = Bytes::new();
        self.stream.stop(to_wire(code));
    }

    /// Waits until the end of the stream is known, without reading. `Ok` means that all data has come, or
    /// that the stream was stopped here.
    ///
    /// # Errors
    /// The peer reset the stream, or the session is over.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn closed(&mut self) -> Result<(), StreamError> {
        let reset = self.stream.received_reset().await;
        match reset.map_err(|error| self.error(error))? {
            None => self.shared.end().map_or(Ok(()), |end| Err(end.into())),
            Some(code) => Err(self.reset(code)),
        }
    }

    fn poll_into(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<Result<usize, StreamError>> {
        if self.head.is_empty() {
            let read = ready!(self.stream.poll_read(cx, buffer));
            return Poll::Ready(read.map_err(|error| self.error(error)));
        }
        let head = self.head.split_to(buffer.len().min(self.head.len()));
        if let Some(front) = buffer.get_mut(..head.len()) {
            front.copy_from_slice(&head);
        }
        Poll::Ready(Ok(head.len()))
    }

    fn reset(&self, code: u64) -> StreamError {
        match self.shared.end() {
            Some(end) if code == SESSION_GONE => end.into(),
            _ => StreamError::Reset(from_wire(code)),
        }
    }

    fn error(&self, error: ReadError) -> StreamError {
        match error {
            ReadError::Reset(code) => self.reset(code),
            ReadError::Connection(error) => {
                let end = self.shared.end();
                end.unwrap_or(SessionError::Connection(error)).into()
            }
            _ => self
                .shared
                .end()
                .map_or(StreamError::Ended, StreamError::from),
        }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        self.shared.forget_recv(self.stream.id());
        // Without effect after the end of the stream.
        self.stream.stop(to_wire(0));
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(self.get_mut().poll_into(cx, buffer.initialize_unfilled()));
        Poll::Ready(
            read.map(|count| buffer.advance(count))
                .map_err(io::Error::from),
        )
    }
}
