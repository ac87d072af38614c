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
use hybriq::{EarlyConnection, Side};

use crate::{
    H3_NO_ERROR, MAX_FRAME,
    bidi::BidiStream,
    error,
    frames::{Frames, Stream},
    goaway::Goaway,
    recv::RecvStream,
    send::SendStream,
    transport::{EarlyRequests, Transport},
    uni::Unis,
};

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
pub struct Connection {
    transport: Transport,
    unis: Unis,
    max_frame: u64,
    goaway: Goaway,
}

/// Opens streams for `h3`.
pub struct OpenStreams<B> {
    transport: Transport,
    max_frame: u64,
    body: PhantomData<fn(B)>,
}

impl Connection {
    /// Makes a connection for `h3` from one of hybriq, whose application protocol should be
    /// [`ALPN`](crate::ALPN).
    pub fn new(connection: hybriq::Connection) -> Self {
        Self::of(Transport::Established(connection))
    }

    /// Makes a connection for `h3` from one whose handshake is not complete, for requests in 0-RTT
    /// packets.
    ///
    /// # Security
    /// An attacker can replay these requests: send only those of safe methods (RFC 8470 §4). If the
    /// server refuses 0-RTT data, the connection fails for `h3`; make another one with
    /// [`Connection::new`] from what [`EarlyConnection::complete`] returns, and ask again.
    pub fn early(connection: EarlyConnection) -> Self {
        Self::of(Transport::Early(connection, EarlyRequests::default()))
    }

    fn of(transport: Transport) -> Self {
        Self {
            transport,
            unis: Unis::default(),
            max_frame: MAX_FRAME,
            goaway: Goaway::default(),
        }
    }

    /// Sets the largest number of bytes that a frame of the peer other than DATA may have. A frame with
    /// the fields of a request or response has about as many as they. Default: [`MAX_FRAME`].
    #[must_use]
    pub fn max_frame(mut self, bytes: u64) -> Self {
        self.max_frame = bytes;
        self
    }

    /// Returns the requests whose data may have been replayed. There are none on a connection whose
    /// handshake was complete.
    pub fn early_requests(&self) -> EarlyRequests {
        let requests = self.transport.early_requests();
        requests.cloned().unwrap_or_default()
    }

    /// Returns the GOAWAY of the server, for clients.
    pub fn goaway(&self) -> Goaway {
        self.goaway.clone()
    }

    fn bidi<B: Buf>(
        &self,
        (send, recv): (hybriq::SendStream, hybriq::RecvStream),
    ) -> BidiStream<B> {
        bidi((send, recv), &self.transport, self.max_frame)
    }
}

impl Drop for Connection {
    /// Closes the connection with H3_NO_ERROR. `h3` drops its control stream next, whose end would be
    /// an error as long as the connection is open (RFC 9114 §6.2.1).
    fn drop(&mut self) {
        self.transport.close(H3_NO_ERROR, b"");
    }
}

impl<B: Buf + 'static> quic::Connection<B> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = OpenStreams<B>;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::RecvStream, ConnectionErrorIncoming>> {
        let accepted = self.unis.poll_accept(&mut self.transport, cx);
        accepted.map_ok(|opened| {
            let frames = Frames::new(opened.kind, self.max_frame);
            let frames = frames.telling(self.goaway.clone());
            RecvStream::opened(opened, frames, self.transport.clone())
        })
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, ConnectionErrorIncoming>> {
        let accepted = self.transport.poll_accept_bidi(cx);
        accepted.map_ok(|ends| self.bidi(ends))
    }

    fn opener(&self) -> Self::OpenStreams {
        OpenStreams {
            transport: self.transport.clone(),
            max_frame: self.max_frame,
            body: PhantomData,
        }
    }
}

impl<B: Buf + 'static> quic::OpenStreams<B> for Connection {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, StreamErrorIncoming>> {
        open_bidi(&mut self.transport, self.max_frame, cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        open_send(&mut self.transport, cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.transport.close(code.value(), reason);
    }
}

impl<B: Buf + 'static> quic::OpenStreams<B> for OpenStreams<B> {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, StreamErrorIncoming>> {
        open_bidi(&mut self.transport, self.max_frame, cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        open_send(&mut self.transport, cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.transport.close(code.value(), reason);
    }
}

impl<B> Clone for OpenStreams<B> {
    fn clone(&self) -> Self {
        Self {
            transport: self.transport.clone(),
            max_frame: self.max_frame,
            body: PhantomData,
        }
    }
}

fn bidi<B: Buf>(
    (send, recv): (hybriq::SendStream, hybriq::RecvStream),
    transport: &Transport,
    max_frame: u64,
) -> BidiStream<B> {
    let stream = match transport.side() {
        Side::Server => Stream::Request,
        Side::Client => Stream::Response,
    };
    let recv = RecvStream::new(recv, Frames::new(stream, max_frame), transport.clone());
    BidiStream::new(SendStream::new(send), recv)
}

fn open_bidi<B: Buf>(
    transport: &mut Transport,
    max_frame: u64,
    cx: &mut Context<'_>,
) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
    let opened = transport.poll_open_bidi(cx);
    let opened = opened.map_ok(|ends| bidi(ends, transport, max_frame));
    opened.map_err(error::on_stream)
}

fn open_send<B: Buf>(
    transport: &mut Transport,
    cx: &mut Context<'_>,
) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
    let opened = transport.poll_open_uni(cx);
    opened.map_ok(SendStream::new).map_err(error::on_stream)
}
