use std::{
    fmt,
    net::SocketAddr,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use hybriq_tls::{CertificateDer, Side};

pub(crate) mod datagrams;
mod migrate;

use crate::{
    recv_stream::RecvStream,
    send_stream::SendStream,
    worker::{Handle, wait_until},
};
use hybriq_proto::{
    agreement::Handshake,
    error::ConnectionError,
    saved_path::SavedPath,
    stats::{ConnectionStats, PathStats},
};
use hybriq_proto::{
    limits,
    packet::Version,
    streams::{Direction, StreamId, Streams},
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
            .field("peer_address", &self.peer_address())
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
            |state| state.poll_open(direction),
        )
        .await
    }

    async fn accept(&self, direction: Direction) -> Result<Option<StreamId>, ConnectionError> {
        wait_until(
            self.handle.state(),
            |state| state.accepting(direction),
            |state| state.poll_accept(direction),
        )
        .await
    }

    /// Lets the peer have so many bidirectional streams open at once, from now on. What it was
    /// allowed before stays allowed (RFC 9000 §4.6).
    ///
    /// A server may start with none
    /// ([`max_bidi_streams(0)`](crate::TransportConfig::max_bidi_streams)) and raise the limit once
    /// it knows whom it talks to.
    pub fn set_max_bidi_streams(&self, count: u64) {
        self.steer(|streams| streams.set_max_streams(Direction::Bidi, count));
    }

    /// Lets the peer have so many unidirectional streams open at once, from now on. What it was
    /// allowed before stays allowed (RFC 9000 §4.6).
    pub fn set_max_uni_streams(&self, count: u64) {
        self.steer(|streams| streams.set_max_streams(Direction::Uni, count));
    }

    /// Lets the peer have so many bytes under way or unread on all streams together, from now on.
    /// What it was allowed before stays allowed (RFC 9000 §4.1), and the window does not grow by
    /// itself any more.
    pub fn set_receive_window(&self, bytes: u64) {
        self.steer(|streams| streams.set_receive_window(bytes));
    }

    fn steer(&self, act: impl FnOnce(&mut Streams)) {
        let mut state = self.handle.lock();
        act(state.core.streams());
        drop(state);
        self.handle.touch();
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

    /// Updates the keys that packets are protected with (RFC 9001 §6), as soon as that is allowed:
    /// the handshake is confirmed, the peer has followed the last update, and three probe timeouts
    /// went by since. How often it happened is in [`ConnectionStats::key_updates`].
    ///
    /// There is no need to: both ends do it by themselves long before a key wears out.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(connection: hybriq::Connection) {
    /// connection.update_keys();
    /// # }
    /// ```
    pub fn update_keys(&self) {
        self.handle.lock().core.request_key_update();
        self.handle.touch();
    }

    /// What is known of the path it uses.
    pub fn path_stats(&self) -> PathStats {
        self.handle.lock().core.path_stats()
    }

    /// The peer's address.
    pub fn peer_address(&self) -> SocketAddr {
        self.handle.lock().core.peer_address()
    }

    /// The version of QUIC it speaks.
    pub fn version(&self) -> Version {
        self.handshake.version
    }

    /// Which end we are.
    pub fn side(&self) -> Side {
        self.handle.lock().core.side()
    }

    /// The smoothed round-trip time.
    pub fn rtt(&self) -> Duration {
        self.stats().rtt
    }

    /// Changes the connection ids of both directions, so that whoever watches cannot tell by them
    /// that what follows is the same connection (RFC 9000 §9.5). A migration does so by itself.
    ///
    /// `false` if the peer has not retired the ids of the last change, or has given no others to
    /// move to; what could be changed is. Both need a round trip from the handshake's end, or from
    /// one change to the next.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn run(connection: hybriq::Connection) {
    /// // Woken after a long sleep, perhaps behind another address:
    /// let is_new = connection.rotate_cids();
    /// # }
    /// ```
    #[expect(
        clippy::disallowed_methods,
        reason = "the handle is outside of the core"
    )]
    pub fn rotate_cids(&self) -> bool {
        let rotated = self.handle.lock().core.rotate_cids(Instant::now());
        self.handle.touch();
        rotated
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
