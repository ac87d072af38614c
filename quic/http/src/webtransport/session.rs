//! Sessions.

use std::{fmt, io, sync::Arc, time::Duration};

use bytes::{BufMut as _, Bytes, BytesMut};
use hybriq::{Connection, Direction, StreamId};
use hybriq_h3::{
    Violation, datagram_head_len, put_datagram_head,
    webtransport::{Event, LONGEST_REASON, Session as Wire, Terms, stream_head},
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::{
    RecvStream, SendStream, SessionError, StreamError,
    sessions::Sessions,
    shared::{Arrived, Counter, Place, SendEnd, Shared, Taken},
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
///     while let Some((mut send, mut recv)) = session.accept_bidi().await? {
///         let message = recv.read_to_end(64 << 10).await?;
///         send.write_all(&message).await?;
///         send.finish();
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Session(Arc<Handle>);

/// What both ends of a session have agreed on.
pub(super) struct Agreed {
    pub(super) terms: Terms,
    /// Protocol of the application.
    pub(super) protocol: Option<String>,
}

struct Handle {
    shared: Arc<Shared>,
    sessions: Sessions,
    protocol: Option<String>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close(0, "");
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
    pub(super) fn start(
        sessions: &Sessions,
        agreed: Agreed,
        connection: &Connection,
        request: StreamId,
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
    ) -> Self {
        let Agreed { terms, protocol } = agreed;
        let max_datagrams = sessions.limits().datagrams;
        let shared = Shared::new(request, connection.clone(), terms, max_datagrams);
        let shared = Arc::new(shared);
        sessions.add(&shared);
        connection.spawn(drive(shared.clone(), sessions.clone(), stream));
        let sessions = sessions.clone();
        Self(Arc::new(Handle {
            shared,
            sessions,
            protocol,
        }))
    }

    /// Returns the connection of the session.
    pub fn connection(&self) -> &Connection {
        &self.0.shared.connection
    }

    /// Returns the protocol of the application that both ends have agreed on, if they have: see
    /// [`Protocols`](super::Protocols).
    pub fn protocol(&self) -> Option<&str> {
        self.0.protocol.as_deref()
    }

    /// Returns the next bidirectional stream of the peer; `None` once the session was [closed
    /// cleanly](SessionError::is_clean).
    ///
    /// # Errors
    /// The session is over for another reason.
    ///
    /// # Cancel safety
    /// Takes no stream if the future is dropped before it is ready.
    pub async fn accept_bidi(&self) -> Result<Option<(SendStream, RecvStream)>, SessionError> {
        unless_clean(self.next_bidi().await)
    }

    pub(super) async fn next_bidi(&self) -> Result<(SendStream, RecvStream), SessionError> {
        let shared = &self.0.shared;
        loop {
            // There are only these in the queue.
            let Taken { stream, counter } = shared.bidi().await?;
            if let Arrived::Bidi(send, recv, head) = stream {
                shared.track(Some(SendEnd::new(send.id(), 0)), Some(recv.id()))?;
                let send = SendStream::new(send, 0, counter.clone(), shared.clone());
                let recv = RecvStream::new(recv, head, counter, shared.clone());
                return Ok((send, recv));
            }
        }
    }

    /// Returns the next unidirectional stream of the peer; `None` once the session was [closed
    /// cleanly](SessionError::is_clean).
    ///
    /// # Errors
    /// The session is over for another reason.
    ///
    /// # Cancel safety
    /// Takes no stream if the future is dropped before it is ready.
    pub async fn accept_uni(&self) -> Result<Option<RecvStream>, SessionError> {
        unless_clean(self.next_uni().await)
    }

    pub(super) async fn next_uni(&self) -> Result<RecvStream, SessionError> {
        let shared = &self.0.shared;
        loop {
            let Taken { stream, counter } = shared.uni().await?;
            if let Arrived::Uni(recv, head) = stream {
                shared.track(None, Some(recv.id()))?;
                return Ok(RecvStream::new(recv, head, counter, shared.clone()));
            }
        }
    }

    /// Opens a bidirectional stream, once the peer allows one.
    ///
    /// # Errors
    /// The session is over.
    ///
    /// # Cancel safety
    /// Dropping the future resets a stream that it has already opened.
    pub async fn open_bidi(&self) -> Result<(SendStream, RecvStream), SessionError> {
        let shared = &self.0.shared;
        let open = async {
            let place = shared.account.place(Direction::Bidi).await;
            let (send, recv) = shared.connection.open_bidi().await?;
            let header = self.header(Direction::Bidi);
            let (id, len) = (send.id(), header.len() as u64);
            shared.track(Some(SendEnd::new(id, len)), Some(id))?;
            let counter = shared.account.count(&shared.connection, id, len);
            let recv = RecvStream::new(recv, Bytes::new(), counter.clone(), shared.clone());
            Ok((self.begin(send, header, counter, place).await?, recv))
        };
        self.unless_ended(open).await
    }

    /// Opens a unidirectional stream, once the peer allows one.
    ///
    /// # Errors
    /// The session is over.
    ///
    /// # Cancel safety
    /// Dropping the future resets a stream that it has already opened.
    pub async fn open_uni(&self) -> Result<SendStream, SessionError> {
        let shared = &self.0.shared;
        let open = async {
            let place = shared.account.place(Direction::Uni).await;
            let send = shared.connection.open_uni().await?;
            let header = self.header(Direction::Uni);
            let (id, len) = (send.id(), header.len() as u64);
            shared.track(Some(SendEnd::new(id, len)), None)?;
            let counter = shared.account.count(&shared.connection, id, len);
            self.begin(send, header, counter, place).await
        };
        self.unless_ended(open).await
    }

    /// Returns the bytes at the start of each stream.
    fn header(&self, direction: Direction) -> Bytes {
        stream_head(self.0.shared.id, direction).into()
    }

    async fn begin(
        &self,
        send: hybriq::SendStream,
        header: Bytes,
        counter: Option<Arc<Counter>>,
        place: Place<'_>,
    ) -> Result<SendStream, SessionError> {
        let shared = self.0.shared.clone();
        let mut stream = SendStream::new(send, header.len() as u64, counter, shared);
        let written = stream.write_head(header).await;
        // The peer counts the streams whose header arrives.
        place.take();
        match written {
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

    /// Sends a datagram. Its data is copied.
    ///
    /// # Errors
    /// The datagram is too large, the peer takes none, the queue is full, or the session is over.
    pub fn send_datagram(&self, data: Bytes) -> Result<(), SessionError> {
        let datagram = self.datagram(data)?;
        Ok(match self.0.shared.max_age() {
            Some(age) => self.connection().send_datagram_for(datagram, age),
            None => self.connection().send_datagram(datagram),
        }?)
    }

    /// Sends a datagram, unless it has to wait longer than `max_age`: see
    /// [`hybriq::Connection::send_datagram_for`].
    ///
    /// # Errors
    /// As [`send_datagram`](Self::send_datagram).
    pub fn send_datagram_for(&self, data: Bytes, max_age: Duration) -> Result<(), SessionError> {
        let datagram = self.datagram(data)?;
        Ok(self.connection().send_datagram_for(datagram, max_age)?)
    }

    /// Sends a datagram once there is room for it in the queue of the connection. It waits as long as necessary,
    /// regardless of the [age](Self::set_outgoing_max_age) of datagrams.
    ///
    /// # Errors
    /// The datagram is too large, the peer takes none, or the session is over.
    ///
    /// # Cancel safety
    /// Sends nothing if the future is dropped before it is ready.
    pub async fn send_datagram_wait(&self, data: Bytes) -> Result<(), SessionError> {
        let datagram = self.datagram(data)?;
        let send = async { Ok(self.connection().send_datagram_wait(datagram).await?) };
        self.unless_ended(send).await
    }

    /// Sets the age beyond which datagrams that still wait to be sent are dropped, like `outgoingMaxAge` of the API of
    /// browsers (WebTransport §4). `None`, the default, keeps them until there is no room.
    pub fn set_outgoing_max_age(&self, age: Option<Duration>) {
        self.0.shared.set_max_age(age);
    }

    /// Returns a datagram of the connection with this payload.
    fn datagram(&self, payload: Bytes) -> Result<Bytes, SessionError> {
        if let Some(end) = self.0.shared.end() {
            return Err(end);
        }
        let mut datagram = Vec::with_capacity(payload.len() + 8);
        put_datagram_head(self.0.shared.id, &mut datagram);
        datagram.put(payload);
        Ok(datagram.into())
    }

    /// Returns the next datagram of the peer; `None` once the session was [closed cleanly](SessionError::is_clean). The
    /// oldest are dropped if too many wait (see [`Limits::datagrams`](super::Limits::datagrams)).
    ///
    /// # Errors
    /// The session is over for another reason.
    ///
    /// # Cancel safety
    /// Takes no datagram if the future is dropped before it is ready.
    pub async fn recv_datagram(&self) -> Result<Option<Bytes>, SessionError> {
        unless_clean(self.next_datagram().await)
    }

    pub(super) async fn next_datagram(&self) -> Result<Bytes, SessionError> {
        self.0.shared.datagram().await
    }

    /// Returns the largest size of a datagram now, in bytes. `None` if the peer accepts no datagrams.
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
        self.0.shared.close(code, reason);
    }

    /// Waits until the session is over, and returns how it ended.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn closed(&self) -> SessionError {
        self.0.shared.ended().await
    }

    /// Asks the peer to end the session soon (DRAIN_WEBTRANSPORT_SESSION). The session continues until an end closes
    /// it.
    pub fn drain(&self) {
        self.0.shared.account.with(Wire::drain);
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
                () = event => shared.account.with(Wire::drain),
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

/// Returns what was taken; `None` after a clean end.
fn unless_clean<T>(taken: Result<T, SessionError>) -> Result<Option<T>, SessionError> {
    match taken {
        Ok(taken) => Ok(Some(taken)),
        Err(end) if end.is_clean() => Ok(None),
        Err(end) => Err(end),
    }
}

/// End of the part of a session in which both ends use it.
enum Over {
    /// The peer has ended it.
    ByPeer(SessionError),
    /// This end has closed it, and the capsule was sent.
    Here,
    Violation(Violation),
}

/// Runs the stream of a session's request until both ends are through with it.
async fn drive(
    shared: Arc<Shared>,
    sessions: Sessions,
    stream: impl AsyncRead + AsyncWrite + Send,
) {
    let _task = sessions.on_task();
    let time = sessions.limits().header_time;
    let (mut read, mut write) = tokio::io::split(stream);
    let over = tokio::select! {
        biased;
        violation = shared.account.watch() => Over::Violation(violation),
        over = receive(&shared, &mut read) => over,
        () = send(&shared, &mut write, time) => Over::Here,
    };
    let is_closed = match over {
        Over::ByPeer(end) => {
            let is_closed = matches!(end, SessionError::Closed { .. });
            shared.finish(end);
            is_closed
        }
        Over::Here => true,
        Over::Violation(violation) => {
            shared.abort(violation);
            false
        }
    };
    sessions.remove(shared.id);
    let end = async {
        // The peer may be gone.
        let _ = write.shutdown().await;
        // Nothing is kept of what comes. Without this, STOP_SENDING could overtake the capsule.
        if let Err(violation) = rest(&shared, &mut read).await {
            shared.abort(violation);
        }
    };
    if is_closed {
        // A peer that does not answer has its stream reset.
        let _ = tokio::time::timeout(time, end).await;
    }
}

/// Reads capsules until the session is over.
async fn receive(shared: &Shared, stream: &mut (impl AsyncRead + Unpin)) -> Over {
    loop {
        let Ok(data) = part(stream).await else {
            let reason = shared.connection.close_reason();
            let end = reason.map_or(SessionError::Aborted, SessionError::Connection);
            return Over::ByPeer(end);
        };
        match shared.account.on_data(data) {
            Ok(events) => {
                for event in events {
                    match event {
                        Event::Credit => shared.account.share(),
                        Event::Drain => shared.on_drain(),
                        Event::Closed { code, reason } => {
                            return Over::ByPeer(SessionError::Closed { code, reason });
                        }
                        // What it means is not known yet.
                        _ => {}
                    }
                }
            }
            Err(violation) => return Over::Violation(violation),
        }
    }
}

/// Reads the data after the end of the session, until the stream ends.
async fn rest(shared: &Shared, stream: &mut (impl AsyncRead + Unpin)) -> Result<(), Violation> {
    while let Ok(data) = part(stream).await {
        let is_end = data.is_none();
        shared.account.on_data(data)?;
        if is_end {
            break;
        }
    }
    Ok(())
}

/// Reads the next part of the stream; `None` at its end. Capsules without number do not keep other tasks waiting.
async fn part(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Bytes>> {
    tokio::task::consume_budget().await;
    let mut bytes = BytesMut::with_capacity(PART);
    let count = stream.read_buf(&mut (&mut bytes).limit(PART)).await?;
    Ok((count > 0).then(|| bytes.freeze()))
}

/// Sends capsules until this end closes the session. A peer that does not take the last one in time does not
/// get it.
async fn send(shared: &Shared, stream: &mut (impl AsyncWrite + Unpin), time: Duration) {
    loop {
        let (bytes, is_last) = shared.account.output().await;
        let sent = async {
            stream.write_all(&bytes).await?;
            stream.flush().await
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of the stream without number are read in turns.
    #[tokio::test]
    async fn other_tasks_run_between_capsules() {
        let mut endless = tokio::io::repeat(0x17);
        let read = async { while part(&mut endless).await.is_ok() {} };
        tokio::select! {
            biased;
            () = read => {}
            () = tokio::task::yield_now() => {}
        }
    }
}
