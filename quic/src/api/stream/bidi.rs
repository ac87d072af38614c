//! Both ends of a stream in one.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{RecvStream, SendStream};

/// Both ends of a bidirectional stream, for code that takes one value which reads and writes, such as a TLS or an
/// HTTP library. Shutting it down finishes the sending end.
///
/// # Examples
/// ```no_run
/// # async fn example(connection: hybriq::Connection) -> std::io::Result<()> {
/// use hybriq::BidiStream;
///
/// let mut inner = BidiStream::from(connection.open_bidi().await?);
/// let mut outer = tokio::net::TcpStream::connect("192.0.2.1:80").await?;
/// tokio::io::copy_bidirectional(&mut inner, &mut outer).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct BidiStream {
    send: SendStream,
    recv: RecvStream,
}

impl BidiStream {
    /// Joins two ends: those of one stream, or of two unidirectional ones.
    pub const fn join(send: SendStream, recv: RecvStream) -> Self {
        Self { send, recv }
    }

    /// Splits it into its ends.
    pub fn split(self) -> (SendStream, RecvStream) {
        (self.send, self.recv)
    }

    /// Returns the sending end.
    pub const fn send_mut(&mut self) -> &mut SendStream {
        &mut self.send
    }

    /// Returns the receiving end.
    pub const fn recv_mut(&mut self) -> &mut RecvStream {
        &mut self.recv
    }
}

impl From<(SendStream, RecvStream)> for BidiStream {
    fn from((send, recv): (SendStream, RecvStream)) -> Self {
        Self::join(send, recv)
    }
}

impl AsyncRead for BidiStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().recv).poll_read(cx, buffer)
    }
}

impl AsyncWrite for BidiStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(Pin::new(&mut self.get_mut().send), cx, data)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().send).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().send).poll_shutdown(cx)
    }
}
