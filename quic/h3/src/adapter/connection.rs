//! Connections, and the opening of streams.

use std::{
    fmt,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming};
use hybriq::stage::{Established, Stage};

use super::{
    error::{of_connection, on_stream},
    stream::{BidiStream, RecvStream, SendStream},
};
use crate::error::Code;

/// A connection for `h3`. Dropping it closes the connection with H3_NO_ERROR.
///
/// # Examples
/// ```no_run
/// # async fn run(connection: hybriq::Connection) -> Result<(), Box<dyn std::error::Error>> {
/// use hybriq_h3::adapter::Connection;
///
/// let (mut driver, mut requests) = h3::client::new(Connection::new(connection)).await?;
/// # Ok(())
/// # }
/// ```
pub struct Connection<S: Stage = Established>(OpenStreams<S>);

impl<S: Stage> fmt::Debug for Connection<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connection").field(&self.0.0).finish()
    }
}

/// Opens streams for `h3`.
#[derive(Clone)]
pub struct OpenStreams<S = Established>(hybriq::Connection<S>);

impl<S: Stage> fmt::Debug for OpenStreams<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenStreams").field(&self.0).finish()
    }
}

impl<S: Stage> Connection<S> {
    /// Creates a connection for `h3` from one of hybriq, whose application protocol should be
    /// [`ALPN`](crate::ALPN).
    ///
    /// # Security
    /// On an [`EarlyConnection`](hybriq::EarlyConnection), a client asks in 0-RTT packets. An attacker can replay
    /// these requests: send only those of safe methods (RFC 8470 §4). If the server refuses 0-RTT data, the
    /// connection fails for `h3`; make another one from what
    /// [`EarlyConnection::complete`](hybriq::EarlyConnection) returns, and ask again. A server does not learn
    /// from `h3` which requests came early: it should wait for the end of the handshake.
    pub fn new(connection: hybriq::Connection<S>) -> Self {
        Self(OpenStreams(connection))
    }
}

impl<S: Stage> Drop for Connection<S> {
    /// Closes the connection with H3_NO_ERROR. `h3` drops its control stream next, whose end would be
    /// an error as long as the connection is open (RFC 9114 §6.2.1).
    fn drop(&mut self) {
        self.0.0.close(Code::H3_NO_ERROR.0, b"");
    }
}

impl<B: Buf + 'static, S: Stage + Clone> quic::Connection<B> for Connection<S> {
    type RecvStream = RecvStream;
    type OpenStreams = OpenStreams<S>;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        let transport = &mut self.0.0;
        Poll::Ready(match ready!(transport.poll_accept_uni(cx)) {
            Ok(Some(recv)) => Ok(RecvStream::new(recv)),
            Ok(None) => Err(of_connection(transport, None)),
            Err(error) => Err(of_connection(transport, Some(error))),
        })
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, ConnectionErrorIncoming>> {
        let transport = &mut self.0.0;
        Poll::Ready(match ready!(transport.poll_accept_bidi(cx)) {
            Ok(Some((send, recv))) => Ok(BidiStream::new(send, recv)),
            Ok(None) => Err(of_connection(transport, None)),
            Err(error) => Err(of_connection(transport, Some(error))),
        })
    }

    fn opener(&self) -> OpenStreams<S> {
        self.0.clone()
    }
}

impl<B: Buf + 'static, S: Stage> quic::OpenStreams<B> for Connection<S> {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        self.0.poll_open_bidi(cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        self.0.poll_open_send(cx)
    }

    fn close(&mut self, code: h3::error::Code, reason: &[u8]) {
        self.0.0.close(code.value(), reason);
    }
}

impl<B: Buf + 'static, S: Stage> quic::OpenStreams<B> for OpenStreams<S> {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        let opened = ready!(self.0.poll_open_bidi(cx));
        let opened = opened.map(|(send, recv)| BidiStream::new(send, recv));
        Poll::Ready(opened.map_err(|error| on_stream(of_connection(&self.0, Some(error)))))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        let opened = ready!(self.0.poll_open_uni(cx)).map(SendStream::new);
        Poll::Ready(opened.map_err(|error| on_stream(of_connection(&self.0, Some(error)))))
    }

    fn close(&mut self, code: h3::error::Code, reason: &[u8]) {
        self.0.close(code.value(), reason);
    }
}
