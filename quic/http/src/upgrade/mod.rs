//! Requests whose streams are handed to another protocol.

mod datagrams;
mod http2;
mod http3;
pub mod masque;
mod stand_in;

use std::{
    fmt, io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::oneshot,
};

use self::http2::{Frames, PART};
pub(crate) use self::{
    datagrams::{Datagrams, Flow, TakesDatagrams},
    http2::{Outcome, Rest, Use, tunnel},
    http3::Tunnel,
    stand_in::{STAND_IN, StandIn},
};
use crate::versions::http2::inflow::Reader;

/// A request extension for requests that ask to use their stream for another protocol.
///
/// Extended CONNECT requests over HTTP/3 (RFC 9220) and HTTP/2 (RFC 8441) have it if
/// [`ServerBuilder::extended_connect`](crate::ServerBuilder::extended_connect) allows them, and so do HTTP/1.1
/// requests with an `upgrade` field. A service that agrees keeps it, answers with status 200 (101 over HTTP/1.1, with
/// the fields of RFC 9110 §7.8), and waits for [`upgraded`](Self::upgraded) in another task. Any other status
/// refuses.
///
/// Clones refer to the same request. If a service drops all of them and answers with status 200 nevertheless, nobody
/// serves the protocol, and the client gets status 501 (RFC 9220 §3).
///
/// Handlers that were written for hyper, such as axum's `WebSocketUpgrade`, work as they are: over HTTP/1.1 and HTTP/2
/// with any protocol, and over HTTP/3 with `websocket`, requests also have hyper's `OnUpgrade` and
/// `hyper::ext::Protocol`. They need no `Upgrade`; a service that keeps one gets the stream through it. When such a
/// handler drops the stream, it ends cleanly, as with hyper.
///
/// # Examples
/// ```
/// use axum::Extension;
/// use http::StatusCode;
/// use hybriq_http::Upgrade;
///
/// /// Sends everything back, whatever the protocol is.
/// async fn echo(Extension(upgrade): Extension<Upgrade>) -> StatusCode {
///     tokio::spawn(async move {
///         let (mut reader, mut writer) = tokio::io::split(upgrade.upgraded().await?);
///         tokio::io::copy(&mut reader, &mut writer).await?;
///         tokio::io::AsyncWriteExt::shutdown(&mut writer).await
///     });
///     StatusCode::OK
/// }
/// ```
#[derive(Clone)]
pub struct Upgrade {
    protocol: Arc<str>,
    pending: Arc<Mutex<Option<Pending>>>,
    /// Its datagrams, until they are taken.
    datagrams: Arc<Mutex<Option<Flow>>>,
}

enum Pending {
    Http1(hyper::upgrade::OnUpgrade),
    Http2(hyper::upgrade::OnUpgrade, Use, Option<Reader>),
    Quic(oneshot::Receiver<Upgraded>),
}

/// The stream of a request, handed to another protocol. Over HTTP/2 and HTTP/3, a shutdown ends it; dropping it
/// without a shutdown resets it. If the client then accepts nothing of what was written for
/// [`Limits::stall_time`](crate::Limits::stall_time), the stream is reset, and a shutdown that still waits fails with
/// [`TimedOut`](io::ErrorKind::TimedOut).
pub struct Upgraded(Stream);

enum Stream {
    Http1(TokioIo<hyper::upgrade::Upgraded>),
    /// With the service's half of it.
    Http2(Frames, Use),
    Quic(Box<dyn Duplex>),
}

/// A stream of bytes in both directions.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// The half of an [`Upgrade`] that gets its stream.
pub(crate) type Give = oneshot::Sender<Upgraded>;

impl Upgrade {
    /// Returns an upgrade over HTTP/1.1.
    pub(crate) fn over_http1(protocol: &str, pending: hyper::upgrade::OnUpgrade) -> Self {
        Self::new(protocol, Pending::Http1(pending))
    }

    /// Returns an upgrade over HTTP/2 whose frames `reader` counts, and the rest that the service will leave.
    pub(crate) fn over_http2(
        protocol: &str,
        pending: hyper::upgrade::OnUpgrade,
        reader: Option<Reader>,
    ) -> (Self, Rest) {
        let (using, rest) = tunnel();
        let pending = Pending::Http2(pending, using, reader);
        (Self::new(protocol, pending), rest)
    }

    /// Returns an upgrade over HTTP/3 with its datagrams, if it has any, and the half that gets its stream.
    pub(crate) fn over_quic(protocol: &str, datagrams: Option<Flow>) -> (Self, Give) {
        let (give, stream) = oneshot::channel();
        let upgrade = Self::new(protocol, Pending::Quic(stream));
        *upgrade.datagrams() = datagrams;
        (upgrade, give)
    }

    fn datagrams(&self) -> MutexGuard<'_, Option<Flow>> {
        self.datagrams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the datagrams of the request, if it has any.
    fn take_datagrams(&self) -> Option<Flow> {
        self.datagrams().take()
    }

    /// Returns true if the service has dropped all clones of this one.
    pub(crate) fn is_dropped(&self) -> bool {
        Arc::strong_count(&self.pending) == 1
    }

    fn new(protocol: &str, pending: Pending) -> Self {
        Self {
            protocol: protocol.into(),
            pending: Arc::new(Mutex::new(Some(pending))),
            datagrams: Arc::default(),
        }
    }

    /// Returns the protocol that the client asks for, for example `websocket`.
    pub fn protocol(&self) -> &str {
        &self.protocol
    }

    /// Waits until the accepting response was sent, and returns the stream.
    ///
    /// # Errors
    /// The request was refused or cancelled, or its stream was already taken.
    ///
    /// # Cancel safety
    /// Dropping the future loses the stream.
    pub async fn upgraded(self) -> io::Result<Upgraded> {
        let pending = self
            .pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let taken = || io::Error::other("the stream of the request was already taken");
        match pending.ok_or_else(taken)? {
            Pending::Http1(pending) => {
                let upgraded = pending.await.map_err(io::Error::other)?;
                Ok(Upgraded(Stream::Http1(TokioIo::new(upgraded))))
            }
            Pending::Http2(pending, using, reader) => {
                let upgraded = pending.await.map_err(io::Error::other)?;
                Ok(Upgraded(Stream::Http2(
                    Frames::new(upgraded, reader),
                    using,
                )))
            }
            Pending::Quic(pending) => pending.await.map_err(|_| {
                let reason = "the request was not answered with status 200";
                io::Error::new(io::ErrorKind::ConnectionAborted, reason)
            }),
        }
    }
}

impl Upgraded {
    pub(crate) fn over_quic(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        Self(Stream::Quic(Box::new(stream)))
    }
}

impl fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Upgrade").field(&self.protocol).finish()
    }
}

impl fmt::Debug for Upgraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upgraded").finish_non_exhaustive()
    }
}

impl AsyncRead for Upgraded {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Stream::Http1(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Http2(frames, _) => Pin::new(frames).poll_read(cx, buffer),
            Stream::Quic(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Stream::Http1(stream) => Pin::new(stream).poll_write(cx, data),
            Stream::Http2(Frames { stream, .. }, using) => {
                let part = data.get(..PART).unwrap_or(data);
                let written = ready!(Pin::new(stream).poll_write(cx, part));
                Poll::Ready(using.check().and(written))
            }
            Stream::Quic(stream) => Pin::new(stream).poll_write(cx, data),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Stream::Http1(stream) | Stream::Http2(Frames { stream, .. }, _) => {
                Pin::new(stream).poll_flush(cx)
            }
            Stream::Quic(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Stream::Http1(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Http2(Frames { stream, .. }, using) => {
                using.end();
                let shut = ready!(Pin::new(stream).poll_shutdown(cx));
                Poll::Ready(using.check().and(shut))
            }
            Stream::Quic(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
