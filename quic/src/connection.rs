use std::{
    fmt,
    net::SocketAddr,
    sync::Arc,
    task::Poll,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use hybriq_tls::{CertificateDer, Side};

use crate::{
    error::{ConnectionError, MigrateError},
    handshake::Handshake,
    proto::{
        limits,
        streams::{Direction, StreamId},
    },
    recv_stream::RecvStream,
    saved_path::SavedPath,
    send_stream::SendStream,
    stats::{ConnectionStats, PathStats},
    worker::{Handle, SendSide, State, wait_until, wake},
};

/// The largest code that fits on the wire (RFC 9000 §16).
const MAX_CODE: u64 = (1 << 62) - 1;

/// A connection whose handshake is complete.
///
/// Clones are the same connection. When the last of them and of its streams is dropped, the
/// connection is closed with code 0. Data that was not acknowledged by then may be lost: wait for
/// [`SendStream::acknowledged`], or for the peer to close.
#[derive(Clone)]
pub struct Connection {
    handle: Handle,
    handshake: Arc<Handshake>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("remote_address", &self.remote_address())
            .field("side", &self.side())
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// The handle of a connection whose handshake is complete.
    pub(crate) fn new(handle: Handle, handshake: Arc<Handshake>) -> Self {
        Self { handle, handshake }
    }

    /// Opens a bidirectional stream; waits while the peer's limit allows none.
    ///
    /// The peer learns of it with the first byte.
    ///
    /// # Errors
    /// The connection is over.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has opened nothing.
    pub async fn open_bidi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.open(Direction::Bidi).await?;
        Ok((
            SendStream::new(self.handle.clone(), id),
            RecvStream::new(self.handle.clone(), id),
        ))
    }

    /// Opens a unidirectional stream; waits while the peer's limit allows none.
    ///
    /// The peer learns of it with the first byte.
    ///
    /// # Errors
    /// The connection is over.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has opened nothing.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        let id = self.open(Direction::Uni).await?;
        Ok(SendStream::new(self.handle.clone(), id))
    }

    /// The next bidirectional stream that the peer opened; `None` when the connection was closed
    /// cleanly, with code 0 or without an error.
    ///
    /// # Errors
    /// The connection is over for another reason.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has taken nothing.
    pub async fn accept_bidi(&self) -> Result<Option<(SendStream, RecvStream)>, ConnectionError> {
        let id = self.accept(Direction::Bidi).await?;
        Ok(id.map(|id| {
            (
                SendStream::new(self.handle.clone(), id),
                RecvStream::new(self.handle.clone(), id),
            )
        }))
    }

    /// The next unidirectional stream that the peer opened; `None` when the connection was closed
    /// cleanly, with code 0 or without an error.
    ///
    /// # Errors
    /// The connection is over for another reason.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has taken nothing.
    pub async fn accept_uni(&self) -> Result<Option<RecvStream>, ConnectionError> {
        let id = self.accept(Direction::Uni).await?;
        Ok(id.map(|id| RecvStream::new(self.handle.clone(), id)))
    }

    async fn open(&self, direction: Direction) -> Result<StreamId, ConnectionError> {
        wait_until(
            self.handle.state(),
            |state| state.opening(direction),
            |state| {
                if let Some(error) = &state.closed {
                    return Poll::Ready(Err(error.clone()));
                }
                match state.core.streams().open(direction) {
                    Some(id) => {
                        state.sends.insert(id, SendSide::default());
                        if direction == Direction::Bidi {
                            state.recvs.insert(id, None);
                        }
                        Poll::Ready(Ok(id))
                    }
                    None => Poll::Pending,
                }
            },
        )
        .await
    }

    /// Streams that came before the connection ended are still handed out.
    async fn accept(&self, direction: Direction) -> Result<Option<StreamId>, ConnectionError> {
        let attempt = |state: &mut State| {
            if let Some(id) = state.core.streams().accept(direction) {
                state.recvs.insert(id, None);
                if direction == Direction::Bidi {
                    state.sends.insert(id, SendSide::default());
                }
                return Poll::Ready(Ok(Some(id)));
            }
            match &state.closed {
                Some(error) if error.is_clean() => Poll::Ready(Ok(None)),
                Some(error) => Poll::Ready(Err(error.clone())),
                None => Poll::Pending,
            }
        };
        wait_until(
            self.handle.state(),
            |state| state.accepting(direction),
            attempt,
        )
        .await
    }

    /// What the handshake agreed on: group, suite, ALPN.
    pub fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    /// The peer's certificates, its own first. Empty when the session was resumed or the peer
    /// showed none.
    pub fn peer_certificates(&self) -> Vec<CertificateDer<'static>> {
        self.handle.lock().core.peer_certificates().to_vec()
    }

    /// What it did so far.
    pub fn stats(&self) -> ConnectionStats {
        self.handle.lock().core.stats()
    }

    /// What the path carries, to start another connection from: see
    /// [`CarefulResume`](crate::CarefulResume). `None` unless that is switched on, before some round
    /// trips' worth of data was sent, and where the path carries so little that nothing is won.
    #[expect(
        clippy::disallowed_methods,
        reason = "what outlives the process is dated by the wall clock"
    )]
    pub fn saved_path(&self) -> Option<SavedPath> {
        let known = self.handle.lock().core.known_path()?;
        Some(SavedPath::new(known, SystemTime::now()))
    }

    /// What is known of the path it uses.
    pub fn path_stats(&self) -> PathStats {
        self.handle.lock().core.path_stats()
    }

    /// The peer's address.
    pub fn remote_address(&self) -> SocketAddr {
        self.handle.lock().core.remote_address()
    }

    /// Which end we are.
    pub fn side(&self) -> Side {
        self.handle.lock().core.side()
    }

    /// The smoothed round-trip time.
    pub fn rtt(&self) -> Duration {
        self.stats().rtt
    }

    /// Moves a client to another address of this machine, without loss of what is under way
    /// (RFC 9000 §9). Returns where its own new socket is bound to, once the server answered there.
    ///
    /// The new path is tried while the old one is still in use: on an error the connection stays
    /// where it was. Before the handshake is confirmed, and until the server gave a connection id to
    /// use on the new path, it waits. Of several wishes the last one counts. A port of 0 picks a free one; the
    /// address may be `0.0.0.0` or `[::]`, for a new port only.
    ///
    /// # Errors
    /// See [`MigrateError`].
    ///
    /// # Cancel safety
    /// The connection moves even when the future is dropped.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn run(connection: hybriq::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// let now_at = connection.migrate("192.0.2.17:0".parse()?).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn migrate(&self, local: SocketAddr) -> Result<SocketAddr, MigrateError> {
        let mut wakes = Vec::new();
        let wish = self.handle.lock().moving.begin(&mut wakes);
        wake(&mut wakes);
        if !self.handle.migrate(wish, local) {
            return Err(MigrateError::Closed);
        }
        wait_until(
            self.handle.state(),
            |state| &mut state.moving.waiters,
            |state| match state.moving.outcome(wish) {
                Some(outcome) => Poll::Ready(outcome),
                None if state.closed.is_some() => Poll::Ready(Err(MigrateError::Closed)),
                None => Poll::Pending,
            },
        )
        .await
    }

    /// Closes it with the application's code (RFC 9000 §10.2), without waiting for anything: data
    /// under way may be lost. Every operation of this end fails from now on.
    ///
    /// `code` is at most 2^62 - 1, larger ones are lowered to it; of `reason` the first 256 bytes
    /// are sent. To be sure that the peer learns of it, wait for [`Endpoint::idle`] before the
    /// runtime ends.
    ///
    /// [`Endpoint::idle`]: crate::Endpoint::idle
    pub fn close(&self, code: u64, reason: &[u8]) {
        let reason = reason.get(..limits::CLOSE_REASON).unwrap_or(reason);
        self.handle
            .close(wire_code(code), Bytes::copy_from_slice(reason));
    }

    /// Waits until the connection is over, and says why.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn closed(&self) -> ConnectionError {
        wait_until(
            self.handle.state(),
            |state| &mut state.closing,
            |state| match &state.closed {
                Some(error) => Poll::Ready(error.clone()),
                None => Poll::Pending,
            },
        )
        .await
    }
}

/// A code that fits on the wire.
pub(crate) fn wire_code(code: u64) -> u64 {
    code.min(MAX_CODE)
}
