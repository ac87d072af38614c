use std::{fmt, future::poll_fn, net::SocketAddr, sync::Arc, task::Poll};

use bytes::Bytes;
use hybriq_tls::Side;

use crate::{
    connection::{Connection, datagrams},
    error::{ConnectError, EarlyError, SendDatagramError},
    recv_stream::RecvStream,
    send_stream::SendStream,
    worker::{Attempt, Handle, wait_until},
};
use hybriq_proto::agreement::EarlyData;
use hybriq_proto::streams::{Direction, StreamId};

/// A connection whose handshake is not complete yet, and that carries data all the same: a client's
/// in 0-RTT packets (RFC 9001 §4.6), a server's right after its part of the handshake.
///
/// It comes from [`Connecting::early`](crate::Connecting::early), and is a type of its own so that
/// nobody sends by accident what may be repeated. Its streams are ordinary ones and live on in the
/// [`Connection`] that [`established`](Self::established) gives. Dropped, with all of its streams,
/// it closes the connection.
///
/// # Security
/// Whoever records a client's 0-RTT packets can send them again, to this server or another one with
/// the same tickets. A server of this crate takes each ticket once, which leaves what several
/// servers, or a restarted one, may be shown. **Send only requests that may be repeated**, and on
/// the server look at [`RecvStream::is_early`] before acting on one that may not. 0-RTT data has no
/// forward secrecy before the ticket's key: it is as safe as the connection that the ticket came
/// from.
///
/// What a server sends before the handshake is complete goes to a client whose certificate, if one
/// was asked for, was not seen.
///
/// # Examples
/// ```no_run
/// use std::net::SocketAddr;
///
/// use hybriq::{EarlyData, Endpoint};
///
/// # async fn run(client: Endpoint, address: SocketAddr) -> Result<(), Box<dyn std::error::Error>> {
/// // The configuration says `offer_early_data()`.
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
    attempt: Arc<Attempt>,
    handle: Handle,
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
        Self { attempt, handle }
    }

    /// Opens a bidirectional stream; waits while the peer's limit, as it was in the session before,
    /// allows none.
    ///
    /// # Errors
    /// The server refused 0-RTT data, or the connection is over.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has opened nothing.
    pub async fn open_bidi(&self) -> Result<(SendStream, RecvStream), EarlyError> {
        let id = self.open(Direction::Bidi).await?;
        Ok(self.bidi(id))
    }

    /// Opens a unidirectional stream; waits while the peer's limit, as it was in the session before,
    /// allows none.
    ///
    /// # Errors
    /// The server refused 0-RTT data, or the connection is over.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has opened nothing.
    pub async fn open_uni(&self) -> Result<SendStream, EarlyError> {
        let id = self.open(Direction::Uni).await?;
        Ok(SendStream::new(self.handle.clone(), id))
    }

    /// The next bidirectional stream that the peer opened; `None` when the connection was closed
    /// cleanly. A client gets none before the handshake is complete.
    ///
    /// # Errors
    /// The server refused 0-RTT data, or the connection is over for another reason.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has taken nothing.
    pub async fn accept_bidi(&self) -> Result<Option<(SendStream, RecvStream)>, EarlyError> {
        let id = self.accept(Direction::Bidi).await?;
        Ok(id.map(|id| self.bidi(id)))
    }

    /// The next unidirectional stream that the peer opened; `None` when the connection was closed
    /// cleanly. A client gets none before the handshake is complete.
    ///
    /// # Errors
    /// The server refused 0-RTT data, or the connection is over for another reason.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has taken nothing.
    pub async fn accept_uni(&self) -> Result<Option<RecvStream>, EarlyError> {
        let id = self.accept(Direction::Uni).await?;
        Ok(id.map(|id| RecvStream::new(self.handle.clone(), id)))
    }

    fn bidi(&self, id: StreamId) -> (SendStream, RecvStream) {
        (
            SendStream::new(self.handle.clone(), id),
            RecvStream::new(self.handle.clone(), id),
        )
    }

    async fn open(&self, direction: Direction) -> Result<StreamId, EarlyError> {
        wait_until(
            self.handle.state(),
            |state| state.opening(direction),
            |state| {
                if self.handle.check(state).is_err() {
                    return Poll::Ready(Err(EarlyError::ZeroRttRejected));
                }
                state.poll_open(direction).map_err(EarlyError::from)
            },
        )
        .await
    }

    async fn accept(&self, direction: Direction) -> Result<Option<StreamId>, EarlyError> {
        wait_until(
            self.handle.state(),
            |state| state.accepting(direction),
            |state| {
                if self.handle.check(state).is_err() {
                    return Poll::Ready(Err(EarlyError::ZeroRttRejected));
                }
                state.poll_accept(direction).map_err(EarlyError::from)
            },
        )
        .await
    }

    /// Bytes a datagram may have now; `None` if the peer takes none, of a server as it was in the
    /// session before. In 0-RTT packets there is less room than later.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.handle.lock().core.max_datagram_size()
    }

    /// Sends a datagram (RFC 9221), a client's in a 0-RTT packet: **whoever records it can send it
    /// again**. When too many wait already, the oldest gives way, unless the
    /// [configuration](crate::DatagramConfig::when_full) is to refuse.
    ///
    /// If the server refuses 0-RTT data, all that was sent so far counts as lost, and what still
    /// waits as dropped, in [`DatagramStats`](crate::DatagramStats); nothing is sent again by itself.
    ///
    /// # Errors
    /// The peer takes none, it is too large, the queue is full, the server refused 0-RTT data, or the
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
        datagrams::send(&self.handle, data)
    }

    /// The next datagram that came; `None` when the connection was closed cleanly. A client gets
    /// none before the handshake is complete; what a server gets here may be a recording.
    ///
    /// # Errors
    /// The server refused 0-RTT data, or the connection is over for another reason.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has taken nothing.
    pub async fn recv_datagram(&self) -> Result<Option<Bytes>, EarlyError> {
        wait_until(
            self.handle.state(),
            |state| &mut state.datagram_readers,
            |state| {
                if self.handle.check(state).is_err() {
                    return Poll::Ready(Err(EarlyError::ZeroRttRejected));
                }
                datagrams::poll_recv(state).map_err(EarlyError::from)
            },
        )
        .await
    }

    /// Waits until the handshake is complete, and says what became of the client's 0-RTT data.
    ///
    /// A client gets [`EarlyData::Accepted`], or [`EarlyData::Rejected`]: then nothing that was
    /// sent arrived, every stream opened so far fails with
    /// [`ZeroRttRejected`](crate::WriteError::ZeroRttRejected), and nothing is sent again by itself.
    /// A server gets [`EarlyData::None`] where the client offered none.
    ///
    /// # Errors
    /// The handshake failed.
    ///
    /// # Cancel safety
    /// Dropping the future gives the handshake up, unless streams of it are left.
    pub async fn established(self) -> Result<(Connection, EarlyData), ConnectError> {
        self.complete().await
    }

    /// As [`established`](Self::established), for those who still wait for something of the early
    /// connection: it goes on as it is.
    ///
    /// # Errors
    /// The handshake failed, or the connection was handed out before.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn complete(&self) -> Result<(Connection, EarlyData), ConnectError> {
        let (handle, handshake) = poll_fn(|cx| self.attempt.poll(cx)).await?;
        let early_data = handshake.early_data;
        Ok((Connection::new(handle, handshake), early_data))
    }

    /// The application protocol that 0-RTT data is for: a client's of the session before, a server's
    /// of this one.
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.handle.lock().core.early_alpn()
    }

    /// The peer's address.
    pub fn peer_address(&self) -> SocketAddr {
        self.handle.lock().core.peer_address()
    }

    /// Which end we are.
    pub fn side(&self) -> Side {
        self.handle.lock().core.side()
    }
}

impl Drop for EarlyConnection {
    fn drop(&mut self) {
        self.attempt.forget();
    }
}
