//! Sessions.

use std::{fmt, io, sync::Arc, time::Duration};

use bytes::{BufMut as _, Bytes, BytesMut};
use hybriq::{Connection, Direction, StreamId};
use hybriq_h3::core::{
    datagram_head_len, put_datagram_head,
    webtransport::{Capsule, Decoder, LONGEST_REASON, stream_head},
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::{
    RecvStream, SendStream, SessionError, StreamError,
    sessions::Sessions,
    shared::{Arrived, Shared},
};

/// Largest part of a request's stream that is read at once, in bytes.
const PART: usize = 1 << 10;

/// A session of WebTransport. Clones are handles of the same session; when the last is dropped, the
/// session is closed with code 0.
///
/// # Examples
/// ```no_run
/// # use hybriq_http::webtransport::{Session, StreamError};
/// async fn echo(session: Session) -> Result<(), StreamError> {
///     loop {
///         let (mut send, mut recv) = session.accept_bi().await?;
///         let message = recv.read_to_end(64 << 10).await?;
///         send.write_all(&message).await?;
///         send.finish()?;
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Session(Arc<Handle>);

struct Handle {
    shared: Arc<Shared>,
    sessions: Sessions,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close(0, String::new());
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Session").field(&self.0.shared.id).finish()
    }
}

impl Session {
    /// Starts a session on the stream of its request, which must have been answered with a status of 2xx.
    /// `stream` reads and writes the payload of that stream's DATA frames.
    pub(crate) fn start(
        sessions: &Sessions,
        connection: Connection,
        request: StreamId,
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
    ) -> Self {
        let max_datagrams = sessions.limits().datagrams;
        let shared = Arc::new(Shared::new(request, connection.clone(), max_datagrams));
        sessions.add(&shared);
        connection.spawn(drive(shared.clone(), sessions.clone(), stream));
        let sessions = sessions.clone();
        Self(Arc::new(Handle { shared, sessions }))
    }

    /// Returns the connection of the session.
    pub fn connection(&self) -> &Connection {
        &self.0.shared.connection
    }

    /// Waits for the next bidirectional stream of the peer.
    ///
    /// # Errors
    /// The session is over.
    ///
    /// # Cancel safety
    /// Takes no stream if the future is dropped before it is ready.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), SessionError> {
        let shared = &self.0.shared;
        loop {
            // There are only these in the queue.
            if let Arrived::Bidi(send, recv, head) = shared.bidi().await? {
                shared.track(Some((send.id(), 0)), Some(recv.id()))?;
                let send = SendStream::new(send, 0, shared.clone());
                return Ok((send, RecvStream::new(recv, head, shared.clone())));
            }
        }
    }

    /// Waits for the next unidirectional stream of the peer.
    ///
    /// # Errors
    /// The session is over.
    ///
    /// # Cancel safety
    /// Takes no stream if the future is dropped before it is ready.
    pub async fn accept_uni(&self) -> Result<RecvStream, SessionError> {
        let shared = &self.0.shared;
        loop {
            if let Arrived::Uni(recv, head) = shared.uni().await? {
                shared.track(None, Some(recv.id()))?;
                return Ok(RecvStream::new(recv, head, shared.clone()));
            }
        }
    }

    /// Opens a bidirectional stream, once the peer allows one.
    ///
    /// # Errors
    /// The session is over.
    ///
    /// # Cancel safety
    /// A future that is dropped may have opened a stream, which is reset.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), SessionError> {
        let shared = &self.0.shared;
        let open = async {
            let (send, recv) = shared.connection.open_bidi().await?;
            let header = self.header(Direction::Bidi);
            shared.track(Some((send.id(), header.len() as u64)), Some(recv.id()))?;
            let recv = RecvStream::new(recv, Bytes::new(), shared.clone());
            Ok((self.begin(send, header).await?, recv))
        };
        self.unless_ended(open).await
    }

    /// Opens a unidirectional stream, once the peer allows one.
    ///
    /// # Errors
    /// The session is over.
    ///
    /// # Cancel safety
    /// A future that is dropped may have opened a stream, which is reset.
    pub async fn open_uni(&self) -> Result<SendStream, SessionError> {
        let shared = &self.0.shared;
        let open = async {
            let send = shared.connection.open_uni().await?;
            let header = self.header(Direction::Uni);
            shared.track(Some((send.id(), header.len() as u64)), None)?;
            self.begin(send, header).await
        };
        self.unless_ended(open).await
    }

    /// Returns the bytes at the start of each stream.
    fn header(&self, direction: Direction) -> Bytes {
        stream_head(self.0.shared.id, direction).into()
    }

    async fn begin(
        &self,
        mut send: hybriq::SendStream,
        header: Bytes,
    ) -> Result<SendStream, SessionError> {
        let len = header.len() as u64;
        let written = send.write_chunk(header).await;
        let stream = SendStream::new(send, len, self.0.shared.clone());
        match written.map_err(|error| stream.error(error)) {
            // A stream that was stopped at once says so when it is used.
            Ok(()) | Err(StreamError::Stopped(_)) => Ok(stream),
            Err(StreamError::Session(error)) => Err(error),
            Err(_) => Err(SessionError::Aborted),
        }
    }

    async fn unless_ended<T>(
        &self,
        act: impl Future<Output = Result<T, SessionError>>,
    ) -> Result<T, SessionError> {
        tokio::select! {
            biased;
            end = self.0.shared.ended() => Err(end),
            done = act => done,
        }
    }

    /// Sends a datagram. The payload is copied.
    ///
    /// # Errors
    /// The datagram is too large, the peer takes none, the queue is full, or the session is over.
    pub fn send_datagram(&self, payload: &[u8]) -> Result<(), SessionError> {
        if let Some(end) = self.0.shared.end() {
            return Err(end);
        }
        let mut datagram = Vec::with_capacity(payload.len() + 8);
        put_datagram_head(self.0.shared.id, &mut datagram);
        datagram.extend_from_slice(payload);
        Ok(self.connection().send_datagram(datagram.into())?)
    }

    /// Returns the next datagram of the peer. The oldest are dropped if too many wait (see
    /// [`Limits::datagrams`](super::Limits::datagrams)).
    ///
    /// # Errors
    /// The session is over.
    ///
    /// # Cancel safety
    /// Takes no datagram if the future is dropped before it is ready.
    pub async fn recv_datagram(&self) -> Result<Bytes, SessionError> {
        self.0.shared.datagram().await
    }

    /// Returns the largest size of a datagram now, in bytes. `None` if the peer takes no datagrams.
    pub fn max_datagram_size(&self) -> Option<usize> {
        let most = self.connection().max_datagram_size()?;
        most.checked_sub(datagram_head_len(self.0.shared.id))
    }

    /// Closes the session, with all its streams. The first 1024 bytes of `reason` are sent.
    pub fn close(&self, code: u32, reason: &str) {
        let mut len = reason.len().min(LONGEST_REASON);
        while !reason.is_char_boundary(len) {
            len -= 1;
        }
        let reason = reason.get(..len).unwrap_or_default();
        self.0.shared.close(code, reason.to_owned());
    }

    /// Waits until the session is over, and returns how it ended.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn closed(&self) -> SessionError {
        self.0.shared.ended().await
    }

    /// Asks the peer to end the session soon (DRAIN_WEBTRANSPORT_SESSION). It goes on until an end
    /// closes it.
    pub fn drain(&self) {
        self.0.shared.drain();
    }

    /// Asks the peer to end the session soon once a future is ready, for example at the shutdown of a
    /// server.
    pub fn drain_when(&self, event: impl Future<Output = ()> + Send + 'static) {
        // The task holds no handle, so that dropping the last one still closes the session.
        let shared = self.0.shared.clone();
        let task = self.0.sessions.on_task();
        self.connection().spawn(async move {
            let _task = task;
            tokio::select! {
                () = event => shared.drain(),
                _ = shared.ended() => {}
            }
        });
    }

    /// Waits until the peer asks this end to end the session soon, or it is over.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn draining(&self) {
        self.0.shared.draining().await;
    }
}

/// Runs the stream of a session's request until both ends are through with it.
async fn drive(
    shared: Arc<Shared>,
    sessions: Sessions,
    stream: impl AsyncRead + AsyncWrite + Send,
) {
    let _task = sessions.on_task();
    let (mut read, mut write) = tokio::io::split(stream);
    let closed_here = tokio::select! {
        biased;
        end = receive(&shared, &mut read) => {
            shared.finish(end);
            false
        }
        () = send(&shared, &mut write, sessions.limits().header_time) => true,
    };
    sessions.remove(shared.id);
    let end = async {
        // The peer may be gone.
        let _ = write.shutdown().await;
        if closed_here {
            // Nothing is kept of what comes. Without this, STOP_SENDING could overtake the capsule.
            let mut bytes = [0; PART];
            while let Ok(1..) = read.read(&mut bytes).await {
                tokio::task::consume_budget().await;
            }
        }
    };
    // A peer that does not answer has its stream reset.
    let _ = tokio::time::timeout(sessions.limits().header_time, end).await;
}

/// Reads capsules until the session is over.
async fn receive(shared: &Shared, stream: &mut (impl AsyncRead + Unpin)) -> SessionError {
    match read_capsules(shared, stream).await {
        Ok(end) => end,
        Err(_) => {
            let reason = shared.connection.close_reason();
            reason.map_or(SessionError::Aborted, SessionError::Connection)
        }
    }
}

/// Reads capsules, and returns how the peer ended the session.
async fn read_capsules(
    shared: &Shared,
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<SessionError> {
    let mut decoder = Decoder::default();
    let mut part = BytesMut::new();
    loop {
        part.reserve(PART);
        let is_end = stream.read_buf(&mut (&mut part).limit(PART)).await? == 0;
        let mut data = part.split().freeze();
        while let Some(capsule) = decoder.next(&mut data).map_err(io::Error::other)? {
            match capsule {
                Capsule::Drain => shared.on_drain(),
                Capsule::Close { code, reason } => {
                    return Ok(SessionError::Closed { code, reason });
                }
            }
        }
        if is_end && !decoder.is_between() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if is_end {
            // The end of the stream closes the session, too.
            let (code, reason) = (0, String::new());
            return Ok(SessionError::Closed { code, reason });
        }
        // Capsules without number do not keep other tasks waiting.
        tokio::task::consume_budget().await;
    }
}

/// Sends capsules until this end closes the session. A peer that does not take the last one in time does not
/// get it.
async fn send(shared: &Shared, stream: &mut (impl AsyncWrite + Unpin), time: Duration) {
    loop {
        let capsule = shared.capsule().await;
        let mut bytes = Vec::new();
        capsule.write(&mut bytes);
        let sent = stream.write_all(&bytes);
        let is_last = matches!(capsule, Capsule::Close { .. });
        let failed = if is_last {
            matches!(tokio::time::timeout(time, sent).await, Ok(Err(_)))
        } else {
            sent.await.is_err()
        };
        if failed {
            // Reading finds the reason.
            std::future::pending::<()>().await;
        }
        if is_last {
            return;
        }
    }
}
