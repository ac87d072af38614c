//! The sending end of a stream.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use hybriq::transport::Priority;

use super::stopped::{self, Waits};
use crate::{
    ClosedStream, Connection, StoppedError, StreamId, VarInt, WriteError, connection::with,
};

/// The sending end of a stream. Dropping it finishes the stream, unless it was reset.
#[derive(Debug)]
pub struct SendStream {
    stream: hybriq::SendStream,
    connection: Connection,
    end: End,
    priority: AtomicI32,
    /// Created by the first wait, because most streams have none.
    waits: std::sync::OnceLock<Arc<Waits>>,
}

impl std::fmt::Debug for Waits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Waits")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    Finished,
    Reset,
}

/// What [`SendStream::write_chunks`] wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes written.
    pub bytes: usize,
    /// Chunks of which all bytes were written.
    pub chunks: usize,
}

impl SendStream {
    pub(crate) fn new(connection: &Connection, stream: hybriq::SendStream) -> Self {
        Self {
            stream,
            connection: connection.clone(),
            end: End::Open,
            priority: AtomicI32::new(0),
            waits: std::sync::OnceLock::new(),
        }
    }

    /// Writes some of the data and returns the number of bytes written.
    ///
    /// # Errors
    /// The peer stopped the stream, it was finished or reset, or the connection is over.
    pub async fn write(&mut self, buf: &[u8]) -> Result<usize, WriteError> {
        Ok(self.stream.write(buf).await?)
    }

    /// Writes all of the data.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub async fn write_all(&mut self, buf: &[u8]) -> Result<(), WriteError> {
        Ok(self.stream.write_all(buf).await?)
    }

    /// Writes some of the chunks without copying them. What was written is removed from them.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub async fn write_chunks(&mut self, bufs: &mut [Bytes]) -> Result<Written, WriteError> {
        let before = bufs.iter().filter(|it| !it.is_empty()).count();
        let bytes = std::future::poll_fn(|cx| self.stream.poll_write_chunks(cx, bufs)).await?;
        let after = bufs.iter().filter(|it| !it.is_empty()).count();
        Ok(Written {
            bytes,
            chunks: before - after,
        })
    }

    /// Writes all of the data without copying it.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub async fn write_chunk(&mut self, buf: Bytes) -> Result<(), WriteError> {
        Ok(self.stream.write_chunk(buf).await?)
    }

    /// Writes all of the chunks without copying them. What was written is removed from them.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub async fn write_all_chunks(&mut self, bufs: &mut [Bytes]) -> Result<(), WriteError> {
        Ok(self.stream.write_chunks(bufs).await?)
    }

    /// Writes some of the data and returns the number of bytes written.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        self.stream.poll_write(cx, buf).map_err(Into::into)
    }

    /// Ends the stream after the data written so far.
    ///
    /// # Errors
    /// The stream was already finished or reset.
    pub fn finish(&mut self) -> Result<(), ClosedStream> {
        if self.end != End::Open {
            return Err(ClosedStream::default());
        }
        self.end = End::Finished;
        self.stream.finish();
        Ok(())
    }

    /// Abandons the stream: data written so far may not arrive.
    ///
    /// # Errors
    /// The stream was already reset, or everything has arrived.
    pub fn reset(&mut self, error_code: VarInt) -> Result<(), ClosedStream> {
        let (id, code) = (self.stream.id(), error_code.into());
        match self.end {
            End::Open => self.stream.reset(code),
            End::Reset => return Err(ClosedStream::default()),
            End::Finished => match self.connection.hybriq() {
                Some(connection) if !connection.is_delivered(id) => {
                    connection.reset_stream(id, code, 0);
                }
                _ => return Err(ClosedStream::default()),
            },
        }
        self.end = End::Reset;
        Ok(())
    }

    /// Sets the priority among the streams of the connection: larger numbers first. The default is 0; numbers from -4 to
    /// 3 are told apart, those beyond count like the nearest of these.
    ///
    /// # Errors
    /// Always succeeds.
    pub fn set_priority(&self, priority: i32) -> Result<(), ClosedStream> {
        self.priority.store(priority, Ordering::Relaxed);
        let urgency = 3 - priority.clamp(-4, 3);
        let priority = Priority::new(u8::try_from(urgency).unwrap_or_default());
        let _ = with!(self.connection, |it| {
            it.set_stream_priority(self.stream.id(), priority);
        });
        Ok(())
    }

    /// Returns the priority.
    ///
    /// # Errors
    /// Always succeeds.
    pub fn priority(&self) -> Result<i32, ClosedStream> {
        Ok(self.priority.load(Ordering::Relaxed))
    }

    /// Waits until the peer needs nothing more of the stream: `Some` is the code with which it stopped the stream, `None`
    /// means that it has everything. The future does not borrow the stream; there may be several.
    pub fn stopped(
        &self,
    ) -> impl Future<Output = Result<Option<VarInt>, StoppedError>> + Send + Sync + 'static + use<>
    {
        let waits = self.waits.get_or_init(Arc::default).clone();
        stopped::stopped(self.connection.clone(), self.stream.id(), waits)
    }

    /// Returns the stream's id.
    pub fn id(&self) -> StreamId {
        self.stream.id().into()
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        // Otherwise hybriq would reset the stream.
        self.stream.finish();
    }
}

impl tokio::io::AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Self::poll_write(self, cx, buf).map_err(Into::into)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().finish().map_err(Into::into))
    }
}

#[cfg(feature = "futures-io")]
impl futures_io::AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Self::poll_write(self, cx, buf).map_err(Into::into)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().finish().map_err(Into::into))
    }
}
