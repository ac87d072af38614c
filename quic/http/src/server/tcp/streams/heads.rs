//! Heads of HTTP/1.1 of which hyper knows nothing: it does not report how much of an incomplete one it has read, and
//! sends no interim responses but 100.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, BufMut, BytesMut};
use futures_util::task::AtomicWaker;
use http::Response;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::versions::content::remove_those_of_connection;

/// The heads of a connection.
#[derive(Debug, Default)]
pub(in crate::server::tcp) struct Head {
    /// Bytes that arrived since the last request.
    len: AtomicU64,
    /// Interim responses that were not written.
    interim: Mutex<BytesMut>,
    /// True if there are any.
    has_interim: AtomicBool,
    /// True if a part of them was written.
    is_cut: AtomicBool,
    /// The task that waits until they are written.
    written: AtomicWaker,
}

/// A connection whose bytes are counted as they arrive, if it uses HTTP/1.1.
pub(in crate::server::tcp) struct Heads<S> {
    stream: S,
    head: Option<Arc<Head>>,
}

impl Head {
    pub(in crate::server::tcp) fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    /// Notes that the next bytes belong to another request.
    pub(in crate::server::tcp) fn begin(&self) {
        self.len.store(0, Ordering::Relaxed);
    }

    /// Sends an interim response as soon as hyper has written everything before it. The caller polls the connection.
    pub(in crate::server::tcp) fn interject(&self, mut response: Response<()>) {
        remove_those_of_connection(response.headers_mut());
        let status = response.status();
        let reason = status.canonical_reason().unwrap_or_default();
        let mut out = self.interim.lock().unwrap_or_else(PoisonError::into_inner);
        for part in ["HTTP/1.1 ", status.as_str(), " ", reason, "\r\n"] {
            out.put_slice(part.as_bytes());
        }
        for (name, value) in response.headers() {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                out.put_slice(part);
            }
        }
        out.put_slice(b"\r\n");
        self.has_interim.store(true, Ordering::Release);
    }

    /// Waits until all interim responses are written.
    ///
    /// # Errors
    /// The client does not accept them in this time.
    pub(in crate::server::tcp) async fn interjected(&self, time: Duration) -> io::Result<()> {
        let has_some = || self.has_interim.load(Ordering::Acquire);
        if !has_some() {
            return Ok(());
        }
        let written = poll_fn(|cx| {
            self.written.register(cx.waker());
            if has_some() {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        });
        Ok(tokio::time::timeout(time, written).await?)
    }

    /// Writes all interim responses.
    fn poll_interject<S: AsyncWrite + Unpin>(
        &self,
        stream: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.has_interim.load(Ordering::Acquire) {
            return Poll::Ready(Ok(()));
        }
        let mut out = self.interim.lock().unwrap_or_else(PoisonError::into_inner);
        while !out.is_empty() {
            let len = ready!(Pin::new(&mut *stream).poll_write(cx, &out))?;
            if len == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            out.advance(len);
            self.is_cut.store(!out.is_empty(), Ordering::Relaxed);
        }
        self.has_interim.store(false, Ordering::Release);
        drop(out);
        self.written.wake();
        Poll::Ready(Ok(()))
    }
}

impl<S> Heads<S> {
    pub(in crate::server::tcp) fn new(stream: S, head: Option<Arc<Head>>) -> Self {
        Self { stream, head }
    }
}

impl<S: AsyncWrite + Unpin> Heads<S> {
    /// Writes the rest of an interim response, before anything else.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.head {
            Some(head) if head.is_cut.load(Ordering::Relaxed) => {
                head.poll_interject(&mut self.stream, cx)
            }
            _ => Poll::Ready(Ok(())),
        }
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
        if let Some(head) = head.as_deref() {
            let len = buffer.filled().len() - before;
            head.len.fetch_add(len as u64, Ordering::Relaxed);
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
        ready!(self.poll_rest(cx))?;
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_rest(cx))?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes only when it has written all it has: that is the place of an interim response.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, head } = &mut *self;
        if let Some(head) = head {
            ready!(head.poll_interject(stream, cx))?;
        }
        Pin::new(stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// It would hold its request, and the connection.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_accepts_no_interim_response_is_not_waited_for() {
        let head = Head::default();
        let minute = Duration::from_secs(60);
        assert!(head.interjected(minute).await.is_ok());
        head.interject(Response::new(()));
        assert!(head.interjected(minute).await.is_err());
    }

    /// hyper may not have written all of an earlier response, and may write again before the interim one has left.
    #[tokio::test]
    async fn an_interim_response_stands_between_what_hyper_writes() -> io::Result<()> {
        // Less than any of them.
        let (near, mut far) = tokio::io::duplex(4);
        let head = Arc::new(Head::default());
        let mut heads = Heads::new(near, Some(head.clone()));
        let write = async {
            let mut response = Response::new(());
            *response.status_mut() = http::StatusCode::EARLY_HINTS;
            let fields = response.headers_mut();
            fields.insert("connection", http::HeaderValue::from_static("close"));
            fields.insert("link", http::HeaderValue::from_static("</x>"));
            head.interject(response);
            heads.write_all(b"before").await?;
            // It waits for room.
            let flushed = poll_fn(|cx| Poll::Ready(Pin::new(&mut heads).poll_flush(cx))).await;
            assert!(flushed.is_pending());
            heads.write_all(b"after").await?;
            head.interjected(Duration::from_secs(30)).await?;
            heads.flush().await?;
            drop(heads);
            io::Result::Ok(())
        };
        let mut all = String::new();
        let (written, read) = tokio::join!(write, far.read_to_string(&mut all));
        written.and(read)?;
        assert_eq!(
            all,
            "beforeHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nafter"
        );
        Ok(())
    }
}
