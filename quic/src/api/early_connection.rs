//! The handle of a connection before its handshake is complete.

use std::{
    fmt,
    future::poll_fn,
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use hybriq_proto::{
    events::agreement::EarlyData,
    owners::streams::{Direction, StreamId},
    stats::ConnectionStats,
    wire::{error::ConnectionError, limits, packet::Cid as ConnectionId},
};
use hybriq_tls::Side;

use super::{
    connection::{Connection, unreliable},
    stream::{self, RecvStream, SendStream},
};
use crate::{
    errors::{ConnectError, EarlyError, SendDatagramError, WriteError, wire_code},
    worker::{Attempt, Handle, Polling, Rejected, State, WaitFor},
};

/// A connection that carries data before its handshake is complete: on a client in 0-RTT packets
/// (RFC 9001 §4.6), on a server after its first flight.
///
/// [`Connecting::early`](crate::Connecting::early) returns it. It is a separate type so that nobody
/// sends replayable data by accident. Its streams are ordinary streams and live on in the
/// [`Connection`] that [`established`](Self::established) returns. Clones are handles of the same
/// connection, which is closed when all of them and all of its streams are dropped.
///
/// # Security
/// An attacker who records a client's 0-RTT packets can replay them, to this server or to another
/// one with the same tickets. A server of this crate accepts each ticket once, but does not know
/// what other servers accepted, or what it accepted itself before a restart. **Send only requests
/// that may be repeated**; on the server, check [`RecvStream::is_early`] before acting on any other
/// request. 0-RTT data has no forward secrecy: whoever learns the ticket's key can read it.
///
/// A server that sends data before the handshake is complete sends it to a client that it has not
/// authenticated.
///
/// # Examples
/// ```no_run
/// use std::net::SocketAddr;
///
/// use hybriq::{Endpoint, tls::EarlyData};
///
/// # async fn run(client: Endpoint, address: SocketAddr) -> Result<(), Box<dyn std::error::Error>> {
/// // The configuration of `client` has `offer_early_data()`.
/// let connection = match client.connect(address, "example.com").early().await {
///     Ok(early) => {
///         let mut request = early.open_uni().await?;
///         request.write_all(b"a request that may be repeated").await?;
///         request.finish();
///         let (connection, early_data) = early.established().await?;
///         if early_data == EarlyData::Rejected {
///             // Nothing of it arrived: ask again, on a stream of the connection.
///         }
///         connection
///     }
///     Err(connecting) => connecting.await?, // no ticket: wait for the handshake
/// };
/// # drop(connection);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it closes the connection; await `established`"]
pub struct EarlyConnection {
    attempt: Arc<Waiting>,
    handle: Polling,
}

/// Wait for the handshake, which ends when the last clone of an early connection is dropped.
struct Waiting(Arc<Attempt>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.forget();
    }
}

impl Clone for EarlyConnection {
    fn clone(&self) -> Self {
        Self {
            attempt: self.attempt.clone(),
            handle: self.handle.clone(),
        }
    }
}

impl fmt::Debug for EarlyConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EarlyConnection")
            .field("peer_address", &self.peer_address())
            .field("side", &self.side())
            .finish_non_exhaustive()
    }
}

impl EarlyConnection {
    pub(crate) fn new(attempt: Arc<Attempt>, handle: Handle) -> Self {
        Self {
            attempt: Arc::new(Waiting(attempt)),
            handle: Polling::new(handle),
        }
    }

    /// Opens a bidirectional stream; waits while the peer's limit does not allow another. Before
    /// the handshake is complete, the limit is that of the earlier connection.
    ///
    /// # Errors
    /// The server refused 0-RTT data, or the connection is over.
    ///
    /// # Cancel safety
    /// Opens nothing if the future is dropped before it is ready.
    pub async fn open_bidi(&self) -> Result<(SendStream, RecvStream), EarlyError> {
        let id = self.open(Direction::Bidi).await?;
        Ok(stream::bidi(&self.handle, id))
    }

    /// Opens a unidirectional stream; waits while the peer's limit does not allow another. Before
    /// the handshake is complete, the limit is that of the earlier connection.
    ///
    /// # Errors
    /// The server refused 0-RTT data, or the connection is over.
    ///
    /// # Cancel safety
    /// Opens nothing if the future is dropped before it is ready.
    pub async fn open_uni(&self) -> Result<SendStream, EarlyError> {
        let id = self.open(Direction::Uni).await?;
        Ok(stream::send(&self.handle, id))
    }

    /// Returns the next bidirectional stream that the peer opened; `None` once the connection was
    /// closed cleanly. A client gets none before the handshake is complete.
    ///
    /// # Errors
    /// The server refused 0-RTT data, or the connection is over for another reason.
    ///
    /// # Cancel safety
    /// Takes no stream if the future is dropped before it is ready.
    pub async fn accept_bidi(&self) -> Result<Option<(SendStream, RecvStream)>, EarlyError> {
        let id = self.accept(Direction::Bidi).await?;
        Ok(id.map(|id| stream::bidi(&self.handle, id)))
    }

    /// Returns the next unidirectional stream that the peer opened; `None` once the connection was
    /// closed cleanly. A client gets none before the handshake is complete.
    ///
    /// # Errors
    /// The server refused 0-RTT data, or the connection is over for another reason.
    ///
    /// # Cancel safety
    /// Takes no stream if the future is dropped before it is ready.
    pub async fn accept_uni(&self) -> Result<Option<RecvStream>, EarlyError> {
        let id = self.accept(Direction::Uni).await?;
        Ok(id.map(|id| stream::recv(&self.handle, id)))
    }

    async fn open(&self, direction: Direction) -> Result<StreamId, EarlyError> {
        let open = |state: &mut State| poll_open(&self.handle, state, direction);
        self.handle.wait(WaitFor::Open(direction), open).await
    }

    async fn accept(&self, direction: Direction) -> Result<Option<StreamId>, EarlyError> {
        let accept = |state: &mut State| poll_accept(&self.handle, state, direction);
        self.handle.wait(WaitFor::Accept(direction), accept).await
    }

    /// Opens a bidirectional stream; the twin of [`open_bidi`](Self::open_bidi).
    ///
    /// # Errors
    /// As [`open_bidi`](Self::open_bidi).
    pub fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), EarlyError>> {
        let open = |handle: &Handle, state: &mut State| poll_open(handle, state, Direction::Bidi);
        let id = self.handle.poll(WaitFor::Open(Direction::Bidi), cx, open);
        id.map_ok(|id| stream::bidi(&self.handle, id))
    }

    /// Opens a unidirectional stream; the twin of [`open_uni`](Self::open_uni).
    ///
    /// # Errors
    /// As [`open_uni`](Self::open_uni).
    pub fn poll_open_uni(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream, EarlyError>> {
        let open = |handle: &Handle, state: &mut State| poll_open(handle, state, Direction::Uni);
        let id = self.handle.poll(WaitFor::Open(Direction::Uni), cx, open);
        id.map_ok(|id| stream::send(&self.handle, id))
    }

    /// Returns the next bidirectional stream of the peer; the twin of
    /// [`accept_bidi`](Self::accept_bidi).
    ///
    /// # Errors
    /// As [`accept_bidi`](Self::accept_bidi).
    pub fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<(SendStream, RecvStream)>, EarlyError>> {
        let accept =
            |handle: &Handle, state: &mut State| poll_accept(handle, state, Direction::Bidi);
        let id = self
            .handle
            .poll(WaitFor::Accept(Direction::Bidi), cx, accept);
        id.map_ok(|id| id.map(|id| stream::bidi(&self.handle, id)))
    }

    /// Returns the next unidirectional stream of the peer; the twin of
    /// [`accept_uni`](Self::accept_uni).
    ///
    /// # Errors
    /// As [`accept_uni`](Self::accept_uni).
    pub fn poll_accept_uni(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<RecvStream>, EarlyError>> {
        let accept =
            |handle: &Handle, state: &mut State| poll_accept(handle, state, Direction::Uni);
        let id = self
            .handle
            .poll(WaitFor::Accept(Direction::Uni), cx, accept);
        id.map_ok(|id| id.map(|id| stream::recv(&self.handle, id)))
    }

    /// Returns the largest datagram that can be sent now; `None` if the peer takes no datagrams, or
    /// took none on the earlier connection. 0-RTT packets have less room than later ones.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.handle.lock().core.max_datagram_size()
    }

    /// Sends a datagram (RFC 9221), on a client in a 0-RTT packet: **an attacker can replay it**.
    /// When the queue is full, the oldest datagram is dropped, unless the
    /// [configuration](crate::transport::DatagramConfig::when_full) says to refuse the new one.
    ///
    /// If the server refuses 0-RTT data, [`DatagramStats`](crate::stats::DatagramStats) counts the
    /// datagrams sent so far as lost and the queued ones as dropped. Nothing is sent again
    /// automatically.
    ///
    /// # Errors
    /// The peer accepts none, it is too large, the queue is full, the server refused 0-RTT data, or the
    /// connection is over.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(early: hybriq::EarlyConnection) -> Result<(), Box<dyn std::error::Error>> {
    /// if early.max_datagram_size().is_some() {
    ///     early.send_datagram("where I am, as often as you like".into())?;
    /// }
    /// let (connection, _) = early.established().await?;
    /// # drop(connection);
    /// # Ok(())
    /// # }
    /// ```
    pub fn send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        unreliable::send(&self.handle, data)
    }

    /// Returns the next datagram of the peer; `None` once the connection was closed cleanly. A
    /// client gets none before the handshake is complete; a server's may be replayed.
    ///
    /// # Errors
    /// The server refused 0-RTT data, or the connection is over for another reason.
    ///
    /// # Cancel safety
    /// Takes no datagram if the future is dropped before it is ready.
    pub async fn recv_datagram(&self) -> Result<Option<Bytes>, EarlyError> {
        let recv = |state: &mut State| poll_recv_datagram(&self.handle, state);
        self.handle.wait(WaitFor::Datagram, recv).await
    }

    /// Returns the next datagram of the peer; the twin of [`recv_datagram`](Self::recv_datagram).
    ///
    /// # Errors
    /// As [`recv_datagram`](Self::recv_datagram).
    pub fn poll_recv_datagram(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, EarlyError>> {
        self.handle.poll(WaitFor::Datagram, cx, poll_recv_datagram)
    }

    /// Waits until the handshake is complete, and returns what became of the client's 0-RTT data.
    ///
    /// A client gets [`EarlyData::Accepted`] or [`EarlyData::Rejected`]. After a rejection none of the
    /// data has arrived, every stream opened so far fails with
    /// [`ZeroRttRejected`](crate::WriteError::ZeroRttRejected), and nothing is sent again
    /// automatically. A server gets [`EarlyData::None`] if the client offered none.
    ///
    /// # Errors
    /// The handshake failed.
    ///
    /// # Cancel safety
    /// Dropping the future ends the handshake, unless the connection still has streams.
    pub async fn established(self) -> Result<(Connection, EarlyData), ConnectError> {
        self.complete().await
    }

    /// Waits like [`established`](Self::established), but leaves the early connection usable for
    /// others.
    ///
    /// # Errors
    /// The handshake failed, or the connection was already handed out.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn complete(&self) -> Result<(Connection, EarlyData), ConnectError> {
        let (handle, handshake) = poll_fn(|cx| self.attempt.0.poll(cx)).await?;
        let early_data = handshake.early_data;
        Ok((Connection::new(handle, handshake), early_data))
    }

    /// Returns the application protocol of 0-RTT data: on a client, that of the earlier connection;
    /// on a server, that of this one.
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.handle.lock().core.early_alpn()
    }

    /// Closes the connection with the application's code and reason, as [`Connection::close`] does.
    pub fn close(&self, code: u64, reason: &[u8]) {
        let reason = reason.get(..limits::CLOSE_REASON).unwrap_or(reason);
        self.handle
            .close(wire_code(code), Bytes::copy_from_slice(reason));
    }

    /// Waits until the connection is over, and returns the reason.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn closed(&self) -> ConnectionError {
        self.handle.wait(WaitFor::End, State::poll_closed).await
    }

    /// Waits until the peer needs nothing more of a stream that this end sends on: see
    /// [`Connection::stream_stopped`]. For code that has the stream's id but not its
    /// [`SendStream`].
    ///
    /// # Errors
    /// The server refused 0-RTT data, or the connection is over.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn stream_stopped(&self, stream: StreamId) -> Result<Option<u64>, WriteError> {
        poll_fn(|cx| stream::poll_stopped(&self.handle, stream, cx)).await
    }

    /// Returns the counters of the connection.
    pub fn stats(&self) -> ConnectionStats {
        self.handle.lock().core.stats()
    }

    /// Returns why the connection is over; `None` while it is open.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.handle.lock().closed.clone()
    }

    /// Returns the id that names this connection in [events](crate::events::Meta): see
    /// [`Connection::id`].
    pub fn id(&self) -> ConnectionId {
        self.handle.lock().core.id()
    }

    /// Returns the peer's address.
    pub fn peer_address(&self) -> SocketAddr {
        self.handle.lock().core.peer_address()
    }

    /// Returns which end this is.
    pub fn side(&self) -> Side {
        self.handle.lock().core.side()
    }
}

fn poll_open(
    handle: &Handle,
    state: &mut State,
    direction: Direction,
) -> Poll<Result<StreamId, EarlyError>> {
    handle.check(state)?;
    state.poll_open(direction).map_err(EarlyError::from)
}

fn poll_accept(
    handle: &Handle,
    state: &mut State,
    direction: Direction,
) -> Poll<Result<Option<StreamId>, EarlyError>> {
    handle.check(state)?;
    state.poll_accept(direction).map_err(EarlyError::from)
}

fn poll_recv_datagram(
    handle: &Handle,
    state: &mut State,
) -> Poll<Result<Option<Bytes>, EarlyError>> {
    handle.check(state)?;
    state.poll_recv_datagram().map_err(EarlyError::from)
}

impl From<Rejected> for EarlyError {
    fn from(Rejected: Rejected) -> Self {
        Self::ZeroRttRejected
    }
}
