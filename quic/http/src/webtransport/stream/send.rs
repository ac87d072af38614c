//! The sending end of a session's stream.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes};
use hybriq::{StreamId, WriteError, transport::Priority};
use hybriq_h3::{
    Code,
    webtransport::{from_wire, to_wire},
};
use tokio::io::AsyncWrite;

use crate::webtransport::{
    SessionError, StreamError,
    shared::{Counter, Shared},
};

/// The sending end of a stream.
///
/// Dropping it before it is finished resets the stream with code 0.
pub struct SendStream {
    stream: hybriq::SendStream,
    /// Number of bytes of the header, which the peer gets even if the stream is reset.
    header: u64,
    open: bool,
    counter: Option<Arc<Counter>>,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for SendStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendStream").finish_non_exhaustive()
    }
}

impl SendStream {
    pub(in crate::webtransport) fn new(
        stream: hybriq::SendStream,
        header: u64,
        counter: Option<Arc<Counter>>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            stream,
            header,
            open: true,
            counter,
            shared,
        }
    }

    /// Returns the stream's number on its connection.
    pub fn id(&self) -> StreamId {
        self.stream.id()
    }

    /// Returns the stream's priority among those of its connection.
    pub fn priority(&self) -> Priority {
        self.stream.priority()
    }

    /// Sets the stream's priority among those of its connection: see
    /// [`hybriq::SendStream::set_priority`].
    pub fn set_priority(&mut self, priority: Priority) {
        self.stream.set_priority(priority);
    }

    /// Writes the header.
    pub(in crate::webtransport) async fn write_head(
        &mut self,
        head: Bytes,
    ) -> Result<(), StreamError> {
        let written = self.stream.write_chunk(head).await;
        written.map_err(|error| self.error(error))
    }

    /// Writes some of the data, and returns the number of bytes.
    ///
    /// # Errors
    /// The peer stopped the stream, it has ended, or the session is over.
    ///
    /// # Cancel safety
    /// Writes nothing if the future is dropped before it is ready.
    pub async fn write(&mut self, data: &[u8]) -> Result<usize, StreamError> {
        poll_fn(|cx| self.poll(cx, data.len(), write(data))).await
    }

    /// Writes all of the data.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Cancel safety
    /// Not cancel safe: a part of the data may have been written when the future is dropped.
    pub async fn write_all(&mut self, data: &[u8]) -> Result<(), StreamError> {
        let mut left = data;
        while !left.is_empty() {
            let written = self.write(left).await?;
            left = left.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Writes all of the data without copying it.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Cancel safety
    /// Not cancel safe: a part of the data may have been written when the future is dropped.
    pub async fn write_chunk(&mut self, data: Bytes) -> Result<(), StreamError> {
        self.write_chunks(&mut [data]).await
    }

    /// Writes all of the chunks without copying them.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Cancel safety
    /// Written data is removed from the front of `chunks`: if the future is dropped before it is ready, they hold the
    /// rest.
    pub async fn write_chunks(&mut self, chunks: &mut [Bytes]) -> Result<(), StreamError> {
        for chunk in chunks {
            while !chunk.is_empty() {
                let data = &*chunk;
                let write = |stream: &mut hybriq::SendStream, cx: &mut Context<'_>, most| {
                    let mut part = data.slice(..most);
                    stream.poll_write_chunk(cx, &mut part)
                };
                let written = poll_fn(|cx| self.poll(cx, data.len(), write)).await?;
                chunk.advance(written);
            }
        }
        Ok(())
    }

    /// Writes all of the chunks without copying them, and ends the stream.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Cancel safety
    /// As [`write_chunks`](Self::write_chunks). The stream is not finished then.
    pub async fn finish_with(&mut self, chunks: &mut [Bytes]) -> Result<(), StreamError> {
        self.write_chunks(chunks).await?;
        self.try_finish()
    }

    /// Writes up to `len` bytes, as far as the peer of the session allows.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        len: usize,
        write: impl FnOnce(
            &mut hybriq::SendStream,
            &mut Context<'_>,
            usize,
        ) -> Poll<Result<usize, WriteError>>,
    ) -> Poll<Result<usize, StreamError>> {
        let Some(counter) = &self.counter else {
            let written = ready!(write(&mut self.stream, cx, len));
            return Poll::Ready(written.map_err(|error| self.error(error)));
        };
        let Poll::Ready(taken) = counter.poll_take(self.stream.id(), len, cx) else {
            // A stream that the peer has stopped needs no credit.
            return match ready!(self.stream.poll_stopped(cx)) {
                Ok(Some(code)) => Poll::Ready(Err(self.stopped_with(code))),
                Ok(None) => Poll::Ready(Err(self.error(WriteError::Closed))),
                Err(error) => Poll::Ready(Err(self.error(error))),
            };
        };
        let written = write(&mut self.stream, cx, taken);
        let count = match &written {
            Poll::Ready(Ok(count)) => *count,
            Poll::Ready(Err(_)) | Poll::Pending => 0,
        };
        counter.on_written(taken, count);
        written.map_err(|error| self.error(error))
    }

    /// Ends the stream after the data written so far. Has no effect after an earlier finish or reset, and after the
    /// end of the session.
    pub fn finish(&mut self) {
        // Whoever waits for the peer learns of the end of the session.
        let _ = self.try_finish();
    }

    /// Ends the stream, unless it has ended or the session is over.
    pub(in crate::webtransport) fn try_finish(&mut self) -> Result<(), StreamError> {
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
    /// which session the stream belonged. Has no effect after an earlier reset.
    pub fn reset(&mut self, code: u32) {
        self.open = false;
        let code = to_wire(code).0;
        if self.header == 0 || self.stream.reset_at(code, self.header).is_err() {
            self.stream.reset(code);
        }
    }

    /// Waits until the peer needs nothing more of this stream. `Some` is the code of the application with which it
    /// stopped the stream; `None` means that it has acknowledged all data and the end of the stream, or its reset.
    ///
    /// # Errors
    /// The session is over, or the peer stopped the stream for a reason of HTTP/3.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn stopped(&self) -> Result<Option<u32>, StreamError> {
        let stopped = self.stream.stopped().await;
        match stopped.map_err(|error| self.error(error))? {
            None => self.shared.end().map_or(Ok(None), |end| Err(end.into())),
            Some(code) => match self.stopped_with(code) {
                StreamError::Stopped(Some(code)) => Ok(Some(code)),
                error => Err(error),
            },
        }
    }

    /// Finishes the stream if it is not finished yet, and waits until the peer has acknowledged all of it. The peer's
    /// transport has the data then; its application may not have read it yet.
    ///
    /// # Errors
    /// The peer stopped the stream, it was reset, or the session is over.
    ///
    /// # Cancel safety
    /// The stream is finished even if the future is dropped.
    pub async fn acknowledged(&mut self) -> Result<(), StreamError> {
        self.finish();
        let acknowledged = self.stream.acknowledged().await;
        acknowledged.map_err(|error| self.error(error))?;
        self.shared.end().map_or(Ok(()), |end| Err(end.into()))
    }

    fn stopped_with(&self, code: u64) -> StreamError {
        match self.shared.end() {
            Some(end) if Code(code) == Code::WT_SESSION_GONE => end.into(),
            _ => StreamError::Stopped(from_wire(Code(code))),
        }
    }

    fn error(&self, error: WriteError) -> StreamError {
        match error {
            WriteError::Stopped(code) => self.stopped_with(code),
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

/// Writes from the front of data.
fn write(
    data: &[u8],
) -> impl FnOnce(&mut hybriq::SendStream, &mut Context<'_>, usize) -> Poll<Result<usize, WriteError>> + '_
{
    move |stream, cx, most| stream.poll_write(cx, data.get(..most).unwrap_or(data))
}

impl Drop for SendStream {
    fn drop(&mut self) {
        self.shared.leave_send(self.stream.id());
        if let Some(counter) = &self.counter {
            counter.forget_writer(self.stream.id());
        }
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
        let written = ready!(self.get_mut().poll(cx, data.len(), write(data)));
        Poll::Ready(written.map_err(io::Error::from))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.open {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(this.try_finish().map_err(io::Error::from))
    }
}
