//! Incomplete HTTP/1.1 heads. hyper does not report how much of one it has read.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that arrived since the last request.
#[derive(Debug, Default)]
pub(in crate::server::tcp) struct Head(AtomicU64);

/// A connection whose bytes are counted as they arrive, if it uses HTTP/1.1.
pub(in crate::server::tcp) struct Heads<S> {
    stream: S,
    head: Option<Arc<Head>>,
}

impl Head {
    pub(in crate::server::tcp) fn len(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Notes that the next bytes belong to another request.
    pub(in crate::server::tcp) fn begin(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl<S> Heads<S> {
    pub(in crate::server::tcp) fn new(stream: S, head: Option<Arc<Head>>) -> Self {
        Self { stream, head }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Heads<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, head } = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(stream).poll_read(cx, buffer))?;
        if let Some(Head(head)) = head.as_deref() {
            let len = buffer.filled().len() - before;
            head.fetch_add(len as u64, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heads<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
