//! The handle of a connection.

use std::{
    fmt,
    future::poll_fn,
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use hybriq_tls::{CertificateDer, Side};

mod path;
mod polled;
mod stage;
mod streams;
mod unreliable;

use super::stream;
pub(super) use stage::sealed;
pub use stage::{Established, Stage};

use crate::{
    errors::{ExportError, WriteError, wire_code},
    worker::{Handle, Polling, State, WaitFor},
};
use hybriq_proto::{
    events::agreement::Handshake,
    owners::streams::{Blocked, Direction, Priority, StreamId, Streams, Tallied, Tally},
    stats::{ConnectionStats, MemoryHeld, census::Census},
    wire::{
        error::ConnectionError,
        limits,
        packet::{Cid as ConnectionId, Version},
    },
};

/// A connection whose handshake is complete.
///
/// Clones are handles of the same connection. When the last handle and the last stream are dropped,
/// the connection is closed with code 0, unless
/// [`ApplicationCodes`](crate::transport::ApplicationCodes) says otherwise. It closes only after
/// all streams that were [finished](crate::SendStream::finish) have arrived, or once the peer acknowledges less
/// than 16 KiB of them in 30 seconds. [`Connection::close`] does not wait for them: call
/// [`SendStream::acknowledged`](crate::SendStream::acknowledged) first, or let the peer close.
///
/// Every waiting operation is an `async` method and has a `poll_` twin for hand-written futures.
///
/// `S` is the stage of the connection: [`EarlyConnection`](crate::EarlyConnection) is the same handle
/// before the handshake is complete.
#[derive(Clone)]
pub struct Connection<S = Established> {
    pub(super) stage: S,
    pub(super) handle: Polling,
}

impl<S: Stage> fmt::Debug for Connection<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(S::HANDLE)
            .field("peer_address", &self.peer_address())
            .field("side", &self.side())
            .finish_non_exhaustive()
    }
}

/// What a connection can do at every stage.
impl<S: Stage> Connection<S> {
    /// Waits until the peer needs nothing more of a stream that this end sends on: see
    /// [`SendStream::stopped`](crate::SendStream::stopped). For code that has the stream's id but
    /// not its [`SendStream`](crate::SendStream). Each stream supports one such wait at a time.
    ///
    /// # Errors
    /// The connection is over.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn stream_stopped(&self, stream: StreamId) -> Result<Option<u64>, WriteError> {
        poll_fn(|cx| stream::poll_stopped(&self.handle, stream, cx)).await
    }

    /// Sets the priority of a stream that this end sends on, if it is still open: see
    /// [`SendStream::set_priority`](crate::SendStream::set_priority). For code that has the
    /// stream's id but not its [`SendStream`](crate::SendStream), such as a layer above another
    /// crate's streams.
    pub fn set_stream_priority(&self, stream: StreamId, priority: Priority) {
        self.steer(|streams| {
            // A closed stream has nothing left to send.
            let _ = streams.set_priority(stream, priority);
        });
    }

    /// From now on, sends a PING after this much silence, in addition to
    /// [`TransportConfig::keep_alive`](crate::TransportConfig::keep_alive); the shorter time applies. For servers that
    /// keep a client waiting while they work for it. `None` or 0 leaves only the configured one.
    pub fn set_keep_alive(&self, interval: Option<Duration>) {
        self.handle.lock().core.set_keep_alive(interval);
        self.handle.touch();
    }

    /// Returns true if the peer may open this stream, or has opened it, under the limit that it was given
    /// (RFC 9000 §4.6).
    pub fn may_peer_open(&self, stream: StreamId) -> bool {
        self.handle.lock().core.streams().may_peer_open(stream)
    }

    /// Returns the counters of the connection.
    pub fn stats(&self) -> ConnectionStats {
        self.handle.lock().core.stats()
    }

    /// Returns the peer's address.
    pub fn peer_address(&self) -> SocketAddr {
        self.handle.lock().core.peer_address()
    }

    /// Returns the id that names this connection in [events](crate::events::Meta), logs and traces:
    /// the destination connection id of the client's first packet. Both ends know it and it never
    /// changes; no packet after the handshake contains it.
    pub fn id(&self) -> ConnectionId {
        self.handle.lock().core.id()
    }

    /// Returns which end this is.
    pub fn side(&self) -> Side {
        self.handle.lock().core.side()
    }

    /// Closes the connection at once with the application's code (RFC 9000 §10.2): data in flight
    /// may be lost. All later operations on this end fail.
    ///
    /// A `code` above 2^62 - 1 is lowered to that. Only the first 256 bytes of `reason` are sent.
    /// To be sure that the peer receives them, wait for [`Endpoint::idle`] before the runtime ends.
    ///
    /// [`Endpoint::idle`]: crate::Endpoint::idle
    pub fn close(&self, code: u64, reason: &[u8]) {
        let reason = reason.get(..limits::CLOSE_REASON).unwrap_or(reason);
        self.handle
            .close(wire_code(code), Bytes::copy_from_slice(reason));
    }

    /// Waits until the connection is over and returns the reason.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn closed(&self) -> ConnectionError {
        self.handle.wait(WaitFor::End, State::poll_closed).await
    }

    /// Returns why the connection is over; `None` while it is open.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.handle.lock().closed.clone()
    }

    fn steer(&self, act: impl FnOnce(&mut Streams)) {
        let mut state = self.handle.lock();
        act(state.core.streams());
        drop(state);
        self.handle.touch();
    }
}

impl Connection {
    /// Returns the worker's handle behind this one.
    #[cfg(test)]
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Creates a handle of a connection whose handshake is complete.
    pub(crate) fn new(handle: Handle, handshake: Arc<Handshake>) -> Self {
        Self {
            stage: Established(handshake),
            handle: Polling::new(handle),
        }
    }

    /// Sets the number of bidirectional streams that the peer may have open at once. Streams that
    /// were already allowed stay allowed (RFC 9000 §4.6).
    ///
    /// A server may start with none
    /// ([`max_bidi_streams(0)`](crate::TransportConfig::max_bidi_streams)) and raise the limit once
    /// it has identified its client.
    pub fn set_max_bidi_streams(&self, count: u64) {
        self.steer(|streams| streams.set_max_streams(Direction::Bidi, count));
    }

    /// Sets the number of unidirectional streams that the peer may have open at once. Streams that
    /// were already allowed stay allowed (RFC 9000 §4.6).
    pub fn set_max_uni_streams(&self, count: u64) {
        self.steer(|streams| streams.set_max_streams(Direction::Uni, count));
    }

    /// Sets the number of bytes that the peer may have in flight or unread on all streams together,
    /// and stops the automatic growth of the window. Bytes that were already allowed stay
    /// allowed (RFC 9000 §4.1).
    pub fn set_receive_window(&self, bytes: u64) {
        self.steer(|streams| streams.set_receive_window(bytes));
    }

    /// Returns how many bytes the [send buffer](crate::TransportConfig::send_buffer) of a stream
    /// accepts at once; pending until it accepts at least `least` bytes or is empty. For code that
    /// writes whole frames and has the stream's id but not its [`SendStream`](crate::SendStream).
    /// Wakes the task of its last call, or of the last write.
    ///
    /// # Errors
    /// The peer stopped the stream, it has ended, or the connection is over.
    pub fn poll_stream_room(
        &self,
        stream: StreamId,
        least: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, WriteError>> {
        stream::poll_room(&self.handle, stream, least, cx)
    }

    /// Returns the number of bidirectional streams that this end has finished but the peer has not
    /// fully acknowledged. Closing the connection loses the rest of their data.
    ///
    /// The call looks at every open stream: use it at the end of a connection.
    pub fn undelivered_streams(&self) -> usize {
        self.handle.lock().core.streams().undelivered_bidi()
    }

    /// Returns true if the peer has acknowledged everything that this end sent on a stream, or its
    /// reset. A stream that has not ended is not delivered, even if none of its data is in flight.
    pub fn is_delivered(&self, stream: StreamId) -> bool {
        let mut state = self.handle.lock();
        state.core.streams().is_send_acknowledged(stream)
    }

    /// Returns the streams whose data waits only for the peer: for its acknowledgement, or for more
    /// flow-control credit. If a stream's [`progress`](Blocked::progress) does not change for a long time, the peer is
    /// not reading its data.
    ///
    /// The call looks at every open stream.
    pub fn blocked_streams(&self) -> Vec<Blocked> {
        self.handle.lock().core.streams().blocked().collect()
    }

    /// Returns the memory that the connection holds, by kind.
    pub fn memory_held(&self) -> MemoryHeld {
        self.handle.lock().core.memory_held()
    }

    /// Starts to count the bytes of a stream, for protocols that limit several streams together. Returns the bytes of
    /// its receiving half so far; `None` if the stream is over.
    pub fn tally_stream(&self, stream: StreamId, tally: &Arc<dyn Tally>) -> Option<Tallied> {
        let mut state = self.handle.lock();
        state.core.streams().tally(stream, tally).ok()
    }

    /// Resets the sending part of a stream with the application's code, if it is still open, but
    /// delivers its first `reliable_size` bytes if the peer supports that. For code that has the
    /// stream's id but not its [`SendStream`](crate::SendStream), such as a session that ends with
    /// all its streams. See [`SendStream::reset_at`](crate::SendStream::reset_at).
    pub fn reset_stream(&self, stream: StreamId, code: u64, reliable_size: u64) {
        let code = wire_code(code);
        let mut state = self.handle.lock();
        let streams = state.core.streams();
        if reliable_size == 0 || streams.reset_at(stream, code, reliable_size).is_err() {
            // A closed stream has nothing left to reset.
            let _ = streams.reset(stream, code);
        }
        let writer = state.sends.get_mut(&stream);
        let writer = writer.and_then(|side| side.writer.take());
        drop(state);
        writer.into_iter().for_each(Waker::wake);
        self.handle.touch();
    }

    /// Returns true if the peer supports RESET_STREAM_AT, so that
    /// [`SendStream::reset_at`](crate::SendStream::reset_at) delivers the beginning of a stream
    /// (draft-ietf-quic-reliable-stream-reset §3).
    pub fn supports_reset_at(&self) -> bool {
        self.handle.lock().core.streams().supports_reset_at()
    }

    /// Asks the peer to stop sending on a stream, with the application's code, and drops unread data:
    /// for code that has the stream's id but not its [`RecvStream`](crate::RecvStream). See
    /// [`RecvStream::stop`](crate::RecvStream::stop).
    pub fn stop_stream(&self, stream: StreamId, code: u64) {
        let mut state = self.handle.lock();
        // A stream that has ended has nothing left to stop.
        let _ = state.core.streams().stop(stream, wire_code(code));
        let reader = state.recvs.get_mut(&stream).and_then(Option::take);
        drop(state);
        reader.into_iter().for_each(Waker::wake);
        self.handle.touch();
    }

    /// Returns what the connection holds, table by table: streams, buffers, packet records, handles
    /// and waiting tasks. Names and numbers of tables may change in any version.
    ///
    /// For tests and diagnosis: its cost is proportional to the streams and packets in flight. Once
    /// all streams are over and everything was acknowledged, the census must have [not
    /// grown](crate::stats::Census::grown_since) since the handshake was confirmed.
    pub fn census(&self) -> Census {
        self.handle.census()
    }

    /// Returns the negotiated key exchange, cipher suite and application protocol.
    pub fn handshake(&self) -> &Handshake {
        &self.stage.0
    }

    /// Returns the peer's certificates, its own first. Empty if the session was resumed or the peer
    /// presented none.
    pub fn peer_certificates(&self) -> Vec<CertificateDer<'static>> {
        self.handle.lock().core.peer_certificates().to_vec()
    }

    /// Fills `out` with keying material that both ends of this connection share and nobody else knows
    /// (RFC 8446 §7.5): the peer gets the same bytes for the same label, context and length.
    ///
    /// Register the label with IANA, or begin it with `EXPERIMENTAL`.
    ///
    /// # Errors
    /// [`ExportError`](crate::error::ExportError): the label is empty or too long, too many bytes
    /// were requested, or the TLS provider delivers no exporter secret. `out` is unchanged then.
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(connection: hybriq::Connection) -> Result<(), hybriq::error::ExportError> {
    /// let mut key = [0; 32];
    /// connection.export_keying_material(b"EXPERIMENTAL my protocol", b"", &mut key)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn export_keying_material(
        &self,
        label: &[u8],
        context: &[u8],
        out: &mut [u8],
    ) -> Result<(), ExportError> {
        let exporter = self.handle.lock().core.exporter().cloned();
        let exporter = exporter.ok_or(ExportError::Unavailable)?;
        Ok(exporter.export(label, context, out)?)
    }

    /// Updates the packet protection keys (RFC 9001 §6) as soon as that is allowed: the handshake
    /// is confirmed, the peer has followed the last update, and three probe timeouts have passed
    /// since. [`ConnectionStats::key_updates`] counts the updates.
    ///
    /// Applications need not call this: both ends update keys long before a limit is reached.
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

    /// Returns the span in which the connection's events are traced: `hybriq.connection`, with its
    /// [`id`](Self::id), peer and role. Enter it in the application's tasks, so that their events
    /// carry the id. It is disabled if no subscriber of the process wants it.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn run(connection: hybriq::Connection) {
    /// use tracing::Instrument as _;
    ///
    /// let span = connection.span().clone();
    /// connection.clone().spawn(async move {
    ///     tracing::info!("a client");
    ///     connection.closed().await
    /// }.instrument(span));
    /// # }
    /// ```
    pub fn span(&self) -> &tracing::Span {
        &self.handle.span
    }

    /// Returns the version of QUIC that the connection speaks.
    pub fn version(&self) -> Version {
        self.stage.0.version
    }

    /// Waits until the endpoint asks its connections to finish
    /// ([`Endpoint::drain`](crate::Endpoint::drain)). Finish the work in progress, start nothing
    /// new, and close the connection.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn draining(&self) {
        self.handle.drain().begun().await;
    }

    /// Starts a task on the runtime of the connection's worker. With a worker on its own
    /// thread ([`Placement::Threads`](crate::fleet::Placement::Threads)) the task runs on that thread,
    /// next to the worker, so data need not pass from one core to another. Such tasks must not
    /// block.
    ///
    /// The thread of a worker ends after the last connection of the endpoint, once its tasks have
    /// ended; a task that starts later is cancelled.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn run(server: hybriq::Endpoint) -> Result<(), Box<dyn std::error::Error>> {
    /// while let Some(incoming) = server.accept().await {
    ///     let connection = incoming.accept().await?;
    ///     connection.clone().spawn(async move {
    ///         while let Ok(Some((mut send, mut recv))) = connection.accept_bidi().await {
    ///             if tokio::io::copy(&mut recv, &mut send).await.is_ok() {
    ///                 send.finish();
    ///             }
    ///         }
    ///     });
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn spawn<F>(&self, task: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.handle.tasks().spawn(task)
    }
}
