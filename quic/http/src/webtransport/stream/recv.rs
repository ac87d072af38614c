//! The receiving end of a session's stream.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hybriq::{ReadError, StreamId};
use hybriq_h3::{
    Code,
    webtransport::{from_wire, to_wire},
};
use tokio::io::{AsyncRead, ReadBuf};

use crate::webtransport::{
    SessionError, StreamError,
    shared::{Counter, Shared},
};

/// The receiving end of a stream.
///
/// Dropping it before its end was read stops the stream with code 0.
pub struct RecvStream {
    stream: hybriq::RecvStream,
    /// Data that arrived with the header.
    head: Bytes,
    counter: Option<Arc<Counter>>,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecvStream").finish_non_exhaustive()
    }
}

impl RecvStream {
    pub(in crate::webtransport) fn new(
        stream: hybriq::RecvStream,
        head: Bytes,
        counter: Option<Arc<Counter>>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            stream,
            head,
            counter,
            shared,
        }
    }

    /// Returns the stream's number on its connection.
    pub fn id(&self) -> StreamId {
        self.stream.id()
    }

    /// Returns true once a read has reached the end of the stream. A read that returns the last data also reaches the
    /// end, if that has arrived.
    pub fn is_finished(&self) -> bool {
        self.head.is_empty() && self.stream.is_finished()
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
            return Ok(Some(self.take_head(max)));
        }
        let read = self.stream.read_chunk(max).await;
        read.map_err(|error| self.error(error))
    }

    /// Reads available data without copying it, into as many chunks as fit. Returns the number of chunks filled, from
    /// the front; `None` is the end of the stream.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    ///
    /// # Cancel safety
    /// Reads nothing if the future is dropped before it is ready.
    pub async fn read_chunks(
        &mut self,
        chunks: &mut [Bytes],
    ) -> Result<Option<usize>, StreamError> {
        if let (Some(first), false) = (chunks.first_mut(), self.head.is_empty()) {
            *first = self.take_head(usize::MAX);
            return Ok(Some(1));
        }
        let read = self.stream.read_chunks(chunks).await;
        read.map_err(|error| self.error(error))
    }

    /// Reads the rest of the stream, at most `limit` bytes.
    ///
    /// # Errors
    /// [`StreamError::TooLong`] beyond the limit, otherwise as [`read`](Self::read).
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
        self.take_head(usize::MAX);
        self.stream.stop(to_wire(code).0);
    }

    /// Waits until the end of the stream is known, without reading. `Some` is the code of the application with which
    /// the peer reset it; `None` means that all data has arrived, or that this end stopped the stream.
    ///
    /// # Errors
    /// The session is over, or the peer reset the stream for a reason of HTTP/3.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn received_reset(&mut self) -> Result<Option<u32>, StreamError> {
        let reset = self.stream.received_reset().await;
        match reset.map_err(|error| self.error(error))? {
            None => self.shared.end().map_or(Ok(None), |end| Err(end.into())),
            Some(code) => match self.reset(code) {
                StreamError::Reset(Some(code)) => Ok(Some(code)),
                error => Err(error),
            },
        }
    }

    /// Takes data that arrived with the header.
    fn take_head(&mut self, most: usize) -> Bytes {
        let head = self.head.split_to(most.min(self.head.len()));
        if let Some(counter) = self.counter.as_ref().filter(|_| !head.is_empty()) {
            counter.on_consumed(head.len());
        }
        head
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
        let head = self.take_head(buffer.len());
        if let Some(front) = buffer.get_mut(..head.len()) {
            front.copy_from_slice(&head);
        }
        Poll::Ready(Ok(head.len()))
    }

    fn reset(&self, code: u64) -> StreamError {
        match self.shared.end() {
            Some(end) if Code(code) == Code::WT_SESSION_GONE => end.into(),
            _ => StreamError::Reset(from_wire(Code(code))),
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
        self.take_head(usize::MAX);
        // Without effect after the end of the stream.
        self.stream.stop(to_wire(0).0);
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
