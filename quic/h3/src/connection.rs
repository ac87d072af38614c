//! Connections, and the opening of streams.

use std::{
    marker::PhantomData,
    task::{Context, Poll},
};

use bytes::Buf;
use h3::{
    error::Code,
    quic::{self, ConnectionErrorIncoming, StreamErrorIncoming},
};
use hybriq::EarlyConnection;

use crate::{H3_NO_ERROR, bidi::BidiStream, error, recv::RecvStream, send::SendStream};

/// A connection for `h3`. Dropping it closes the connection with H3_NO_ERROR.
///
/// # Examples
/// ```no_run
/// # async fn run(connection: hybriq::Connection) -> Result<(), Box<dyn std::error::Error>> {
/// use hybriq_h3::{Connection, Payload};
///
/// let connection = Connection::new(connection);
/// let mut builder = h3::client::builder();
/// let (mut driver, mut requests) = builder.build::<_, _, Payload>(connection).await?;
/// # Ok(())
/// # }
/// ```
pub struct Connection(Transport);

/// Opens streams for `h3`.
pub struct OpenStreams<B>(Transport, PhantomData<fn(B)>);

/// A connection of the transport, before or after its handshake is complete.
#[derive(Clone)]
enum Transport {
    Established(hybriq::Connection),
    Early(EarlyConnection),
}

impl Connection {
    /// Makes a connection for `h3` from one of hybriq, whose application protocol should be
    /// [`ALPN`](crate::ALPN).
    pub fn new(connection: hybriq::Connection) -> Self {
        Self(Transport::Established(connection))
    }

    /// Makes a connection for `h3` from one whose handshake is not complete, for requests in 0-RTT
    /// packets.
    ///
    /// # Security
    /// An attacker can replay these requests: send only those of safe methods (RFC 8470 §4). If the
    /// server refuses 0-RTT data, the connection fails for `h3`; make another one with
    /// [`Connection::new`] from what [`EarlyConnection::complete`] returns, and ask again.
    pub fn early(connection: EarlyConnection) -> Self {
        Self(Transport::Early(connection))
    }
}

impl Drop for Connection {
    /// Closes the connection with H3_NO_ERROR. `h3` drops its control stream next, whose end would be
    /// an error as long as the connection is open (RFC 9114 §6.2.1).
    fn drop(&mut self) {
        self.0.close(H3_NO_ERROR, b"");
    }
}

impl Transport {
    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(hybriq::SendStream, hybriq::RecvStream), ConnectionErrorIncoming>> {
        match self {
            Self::Established(connection) => {
                connection.poll_open_bidi(cx).map_err(error::connection)
            }
            Self::Early(connection) => connection.poll_open_bidi(cx).map_err(error::early),
        }
    }

    fn poll_open_uni(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<hybriq::SendStream, ConnectionErrorIncoming>> {
        match self {
            Self::Established(connection) => {
                connection.poll_open_uni(cx).map_err(error::connection)
            }
            Self::Early(connection) => connection.poll_open_uni(cx).map_err(error::early),
        }
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(hybriq::SendStream, hybriq::RecvStream), ConnectionErrorIncoming>> {
        let accepted = match self {
            Self::Established(connection) => {
                connection.poll_accept_bidi(cx).map_err(error::connection)
            }
            Self::Early(connection) => connection.poll_accept_bidi(cx).map_err(error::early),
        };
        accepted.map(|accepted| accepted?.ok_or_else(|| self.clean_end()))
    }

    fn poll_accept_uni(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<hybriq::RecvStream, ConnectionErrorIncoming>> {
        let accepted = match self {
            Self::Established(connection) => {
                connection.poll_accept_uni(cx).map_err(error::connection)
            }
            Self::Early(connection) => connection.poll_accept_uni(cx).map_err(error::early),
        };
        accepted.map(|accepted| accepted?.ok_or_else(|| self.clean_end()))
    }

    fn clean_end(&self) -> ConnectionErrorIncoming {
        error::clean_end(match self {
            Self::Established(connection) => connection.close_reason(),
            Self::Early(connection) => connection.close_reason(),
        })
    }

    fn close(&self, code: u64, reason: &[u8]) {
        match self {
            Self::Established(connection) => connection.close(code, reason),
            Self::Early(connection) => connection.close(code, reason),
        }
    }
}

impl<B: Buf + 'static> quic::Connection<B> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = OpenStreams<B>;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::RecvStream, ConnectionErrorIncoming>> {
        self.0.poll_accept_uni(cx).map_ok(RecvStream::new)
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, ConnectionErrorIncoming>> {
        self.0.poll_accept_bidi(cx).map_ok(BidiStream::new)
    }

    fn opener(&self) -> Self::OpenStreams {
        OpenStreams(self.0.clone(), PhantomData)
    }
}

impl<B: Buf + 'static> quic::OpenStreams<B> for Connection {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, StreamErrorIncoming>> {
        open_bidi(&mut self.0, cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        open_send(&mut self.0, cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.0.close(code.value(), reason);
    }
}

impl<B: Buf + 'static> quic::OpenStreams<B> for OpenStreams<B> {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, StreamErrorIncoming>> {
        open_bidi(&mut self.0, cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        open_send(&mut self.0, cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.0.close(code.value(), reason);
    }
}

impl<B> Clone for OpenStreams<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

fn open_bidi<B: Buf>(
    transport: &mut Transport,
    cx: &mut Context<'_>,
) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
    let opened = transport.poll_open_bidi(cx);
    opened.map_ok(BidiStream::new).map_err(error::on_stream)
}

fn open_send<B: Buf>(
    transport: &mut Transport,
    cx: &mut Context<'_>,
) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
    let opened = transport.poll_open_uni(cx);
    opened.map_ok(SendStream::new).map_err(error::on_stream)
}
