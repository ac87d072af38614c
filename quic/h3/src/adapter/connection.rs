//! Connections, and the opening of streams.

use std::{
    marker::PhantomData,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use h3::{
    error::Code,
    quic::{self, ConnectionErrorIncoming, StreamErrorIncoming},
};
use hybriq::{EarlyConnection, tls::Side};

use crate::adapter::{
    H3_NO_ERROR, MAX_FRAME,
    bidi::BidiStream,
    budget::Budget,
    common::Common,
    error,
    frames::{Frames, Stream},
    goaway::Goaway,
    protocols::Protocols,
    recv::RecvStream,
    requests::Requests,
    send::SendStream,
    settings::{self, Arrival, PeerSettings, Settings},
    transport::{EarlyRequests, Transport},
    uni::Unis,
    watch::Watch,
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
    /// Tells when the unidirectional streams have news.
    watch: Watch,
    /// Requests that are refused in this turn.
    budget: Budget,
    max_frame: u64,
    /// Largest size of a field section that `h3` takes.
    section_limit: u64,
    settings: Arc<Settings>,
    common: Arc<Common>,
    goaway: Goaway,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// Opens streams for `h3`.
pub struct OpenStreams<B> {
    transport: Transport,
    common: Arc<Common>,
    max_frame: u64,
    body: PhantomData<fn(B)>,
}

impl<B> std::fmt::Debug for OpenStreams<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenStreams").finish_non_exhaustive()
    }
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
        Self::of(Transport::Early(connection, EarlyRequests::new()))
    }

    fn of(transport: Transport) -> Self {
        Self {
            common: Arc::new(Common::new(transport.clone())),
            transport,
            unis: Unis::default(),
            watch: Watch::default(),
            budget: Budget::new(),
            max_frame: MAX_FRAME,
            section_limit: u64::MAX,
            settings: Arc::default(),
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

    /// States the limit on field sections that `h3` was given (`max_field_section_size`). Up to
    /// [`MAX_FIELD_SECTION`](crate::adapter::MAX_FIELD_SECTION), `h3` answers larger requests with 431. With a larger limit, or
    /// none, messages with more fields than a map can hold end their stream with H3_EXCESSIVE_LOAD before they
    /// reach `h3`, which would panic. So do those with trailers beyond the limit, of which `h3` tells the reader alone.
    #[must_use]
    pub fn field_section_limit(mut self, bytes: u64) -> Self {
        self.section_limit = bytes;
        self
    }

    /// Allows clients to send requests of extended CONNECT (RFC 9220), on a server. Call it before `h3`
    /// gets the connection.
    pub fn extended_connect(&mut self) -> Protocols {
        self.set(settings::ENABLE_CONNECT_PROTOCOL, 1);
        let protocols = Protocols::default();
        self.extend(|common| common.protocols = Some(protocols.clone()));
        protocols
    }

    /// Returns the settings of the peer, once they have come. Call it before `h3` gets the connection.
    pub fn peer_settings(&mut self) -> PeerSettings {
        let arrival = Arrival::default();
        let settings = arrival.subscribe();
        self.extend(|common| common.settings = Some(arrival));
        settings
    }

    fn set(&mut self, id: u64, value: u64) {
        Arc::make_mut(&mut self.settings).set(id, value);
    }

    fn extend(&mut self, change: impl FnOnce(&mut Common)) {
        // No stream has a clone before `h3` has the connection.
        if let Some(common) = Arc::get_mut(&mut self.common) {
            change(common);
        }
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

    /// Returns the requests whose fields have not arrived, for servers.
    pub fn requests(&self) -> Requests {
        Requests::new(self.common.counts.clone())
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
        let (unis, transport) = (&mut self.unis, &mut self.transport);
        let counts = &self.common.counts;
        let accepted = self.watch.poll(cx, |cx| {
            let accepted = unis.poll_accept(transport, cx);
            counts.set_unis(unis.opening());
            accepted
        });
        accepted.map_ok(|opened| {
            let frames = Frames::new(opened.kind, self.max_frame);
            let frames = frames.telling(self.goaway.clone());
            RecvStream::opened(opened, frames, self.common.clone())
        })
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, ConnectionErrorIncoming>> {
        loop {
            ready!(self.budget.poll_turn(cx));
            let (mut send, mut recv) = ready!(self.transport.poll_accept_bidi(cx))?;
            let Some(code) = self.common.counts.refuse() else {
                self.common.counts.on_request();
                let frames = Frames::new(kind(&self.transport), self.max_frame);
                let frames = frames.section_limit(self.section_limit);
                let recv = RecvStream::new(recv, frames, self.common.clone());
                return Poll::Ready(Ok(BidiStream::new(SendStream::new(send), recv)));
            };
            self.budget.step();
            send.reset(code);
            recv.stop(code);
        }
    }

    fn opener(&self) -> Self::OpenStreams {
        OpenStreams {
            transport: self.transport.clone(),
            common: self.common.clone(),
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
        open_bidi(&mut self.transport, &self.common, self.max_frame, cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        let settings = &self.settings;
        open_send(&mut self.transport, cx)
            .map_ok(|stream: SendStream<B>| stream.with_settings(settings.clone()))
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
        open_bidi(&mut self.transport, &self.common, self.max_frame, cx)
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
            common: self.common.clone(),
            max_frame: self.max_frame,
            body: PhantomData,
        }
    }
}

fn bidi<B: Buf>(
    send: hybriq::SendStream,
    recv: hybriq::RecvStream,
    common: &Arc<Common>,
    max_frame: u64,
) -> BidiStream<B> {
    let frames = Frames::new(kind(&common.transport), max_frame);
    let recv = RecvStream::new(recv, frames, common.clone());
    BidiStream::new(SendStream::new(send), recv)
}

/// Returns what a bidirectional stream carries to this end.
fn kind(transport: &Transport) -> Stream {
    match transport.side() {
        Side::Server => Stream::Request,
        Side::Client => Stream::Response,
    }
}

fn open_bidi<B: Buf>(
    transport: &mut Transport,
    common: &Arc<Common>,
    max_frame: u64,
    cx: &mut Context<'_>,
) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
    let opened = transport.poll_open_bidi(cx);
    let opened = opened.map_ok(|(send, recv)| bidi(send, recv, common, max_frame));
    opened.map_err(error::on_stream)
}

fn open_send<B: Buf>(
    transport: &mut Transport,
    cx: &mut Context<'_>,
) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
    let opened = transport.poll_open_uni(cx);
    opened.map_ok(SendStream::new).map_err(error::on_stream)
}
