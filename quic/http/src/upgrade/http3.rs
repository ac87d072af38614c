//! The stream of a CONNECT request over HTTP/3: the payload of its DATA frames, in both directions.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hybriq_h3::Head;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::oneshot,
};

use crate::versions::http3::{Recv, Send, StreamError};

/// Largest number of bytes of one DATA frame.
const FRAME: usize = 64 << 10;

/// Largest size of the header of such a frame (RFC 9114 §7.1).
const HEADER: usize = 5;

/// Bytes in both directions over the stream of a request.
pub(crate) struct Tunnel<H: Head> {
    connection: hybriq::Connection,
    id: hybriq::StreamId,
    recv: Recv<H>,
    /// Data that was received and not read.
    unread: Bytes,
    sending: Sending,
    /// Dropped when the service has shut the tunnel down.
    open: Option<oneshot::Sender<()>>,
    _alive: oneshot::Sender<()>,
}

/// The events at the end of a tunnel.
pub(crate) struct Ends {
    /// Ready once the service writes nothing more. Its data may still wait for the peer.
    pub(crate) shut: oneshot::Receiver<()>,
    /// Ready once the tunnel is dropped.
    pub(crate) dropped: oneshot::Receiver<()>,
}

/// State of the sending half.
enum Sending {
    Idle(Send),
    /// A frame, or the end, is being sent.
    Busy(Pin<Box<dyn Sent>>),
    /// The tunnel has ended, or failed.
    Over,
}

/// A future that gives the sending half back.
trait Sent: Future<Output = (Send, Result<(), StreamError>)> + std::marker::Send {}

impl<F: Future<Output = (Send, Result<(), StreamError>)> + std::marker::Send> Sent for F {}

impl<H: Head> Tunnel<H> {
    /// Creates a tunnel on a stream of a connection.
    pub(crate) fn new(connection: hybriq::Connection, send: Send, recv: Recv<H>) -> (Self, Ends) {
        let (open, shut) = oneshot::channel();
        let (alive, dropped) = oneshot::channel();
        let tunnel = Self {
            connection,
            id: recv.id(),
            recv,
            unread: Bytes::new(),
            sending: Sending::Idle(send),
            open: Some(open),
            _alive: alive,
        };
        (tunnel, Ends { shut, dropped })
    }

    /// Waits until the transport accepts a frame at once, and returns the largest size of its payload. What does not
    /// fit stays with the caller: it would be sent only when the tunnel is used again.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let room = ready!(self.connection.poll_stream_room(self.id, HEADER + 1, cx));
        // A send buffer that is smaller than this takes a frame in pieces.
        Poll::Ready(Ok(room?.saturating_sub(HEADER).clamp(1, FRAME)))
    }

    /// Waits until the previous frame was sent.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Sending::Busy(busy) = &mut self.sending {
            let (send, sent) = ready!(busy.as_mut().poll(cx));
            match sent {
                Ok(()) => self.sending = Sending::Idle(send),
                Err(error) => {
                    self.sending = Sending::Over;
                    return Poll::Ready(Err(broken(error)));
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<H: Head> AsyncRead for Tunnel<H> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.unread.is_empty() {
            match ready!(this.recv.poll_data(cx)) {
                Ok(Some(data)) => this.unread = data,
                Ok(None) => return Poll::Ready(Ok(())),
                Err(error) => return Poll::Ready(Err(broken(error))),
            }
        }
        let len = this.unread.len().min(buffer.remaining());
        buffer.put_slice(&this.unread.split_to(len));
        Poll::Ready(Ok(()))
    }
}

impl<H: Head> AsyncWrite for Tunnel<H> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_idle(cx))?;
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        if matches!(this.sending, Sending::Over) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = ready!(this.poll_room(cx))?;
        let data = data.get(..room).unwrap_or(data);
        match std::mem::replace(&mut this.sending, Sending::Over) {
            Sending::Idle(mut send) => {
                let payload = Bytes::copy_from_slice(data);
                this.sending = Sending::Busy(Box::pin(async move {
                    let sent = send.data(payload).await;
                    (send, sent)
                }));
                // The transport accepts it at once.
                match this.poll_idle(cx) {
                    Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                    Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(data.len())),
                }
            }
            Sending::Busy(_) | Sending::Over => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_idle(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_idle(cx))?;
        if let Sending::Idle(mut send) = std::mem::replace(&mut this.sending, Sending::Over) {
            this.sending = Sending::Busy(Box::pin(async move {
                let sent = send.finish().await;
                (send, sent)
            }));
            ready!(this.poll_idle(cx))?;
            this.sending = Sending::Over;
            this.open = None;
        }
        Poll::Ready(Ok(()))
    }
}

fn broken(error: StreamError) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}
