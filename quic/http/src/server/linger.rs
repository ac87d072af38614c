//! The end of a connection over TCP.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf},
    net::TcpStream,
    runtime::Handle,
};
use tokio_rustls::server::TlsStream;

use super::connections::Served;

/// Longest time to wait for the client's end.
const LINGER: Duration = Duration::from_secs(1);

/// A connection that is read to the client's end after this end. The system answers data that nobody reads with
/// a reset, and the client loses what it has not read yet (RFC 9112 §9.6).
pub(super) struct Lingering {
    /// Taken when this is dropped.
    stream: Option<TlsStream<TcpStream>>,
    served: Option<Served>,
    ended: Ended,
}

/// Ends that were seen.
#[derive(Clone, Copy, Default)]
struct Ended {
    here: bool,
    there: bool,
}

impl Lingering {
    pub(super) fn new(stream: TlsStream<TcpStream>, served: Served) -> Self {
        Self {
            stream: Some(stream),
            served: Some(served),
            ended: Ended::default(),
        }
    }

    fn stream(&mut self) -> io::Result<Pin<&mut TlsStream<TcpStream>>> {
        let stream = self.stream.as_mut().map(Pin::new);
        stream.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl AsyncRead for Lingering {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(self.stream()?.poll_read(cx, buffer))?;
        self.ended.there |= buffer.filled().len() == before && buffer.remaining() > 0;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Lingering {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write(cx, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write_vectored(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream
            .as_ref()
            .is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.ended.here = true;
        self.stream()?.poll_shutdown(cx)
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        let Some(stream) = self.stream.take() else {
            return;
        };
        let served = self.served.take();
        if let (
            Ended {
                here: true,
                there: false,
            },
            Ok(runtime),
        ) = (self.ended, Handle::try_current())
        {
            runtime.spawn(Box::pin(async move {
                let (mut tcp, _) = stream.into_inner();
                let read = async {
                    let mut buffer = [0; 1024];
                    while tcp.read(&mut buffer).await.is_ok_and(|len| len > 0) {}
                };
                let _ = tokio::time::timeout(LINGER, read).await;
                drop(served);
            }));
        }
    }
}
