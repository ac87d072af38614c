//! Datagrams: messages that are not sent again when they are lost.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hybriq_proto::{
    owners::datagrams::{DatagramOptions, Fate as DatagramFate, SendError},
    wire::error::ConnectionError,
};

use super::{Connection, stage::Stage};
use crate::{
    errors::SendDatagramError,
    sync::clock,
    worker::{Handle, State, WaitFor},
};

/// Datagrams (RFC 9221): messages that keep their boundaries, are not sent again when they are lost,
/// and may overtake each other.
///
/// Congestion control and pacing apply as for streams. While streams and datagrams both have data
/// to send, they get the same number of bytes.
impl<S: Stage> Connection<S> {
    /// Returns the largest datagram that can be sent now; `None` if the peer accepts no datagrams. It grows as path MTU
    /// discovery succeeds, and may shrink when the path changes. 0-RTT packets have less room than later ones; whether
    /// the peer accepts datagrams is then known from the earlier connection.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.handle.lock().core.max_datagram_size()
    }

    /// Sends a datagram. When the queue is full, the oldest datagram is dropped, unless the
    /// [configuration](crate::transport::DatagramConfig::when_full) says to refuse the new one.
    ///
    /// An early connection of a client sends it in a 0-RTT packet: **an attacker can replay it**. If
    /// the server refuses 0-RTT data, [`DatagramStats`](crate::stats::DatagramStats) counts the
    /// datagrams sent so far as lost and the queued ones as dropped. Nothing is sent again
    /// automatically.
    ///
    /// # Errors
    /// The peer accepts none, it is too large for the path, the queue is full, the server refused
    /// 0-RTT data, or the connection is over.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(connection: hybriq::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// connection.send_datagram("where I am".into())?;
    /// while let Some(datagram) = connection.recv_datagram().await? {
    ///     println!("{} bytes", datagram.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        self.send_datagram_with(data, DatagramOptions::new())
    }

    /// Sends a datagram like [`send_datagram`](Self::send_datagram), unless it has to wait longer than
    /// `max_age`: it is dropped then, and counted as
    /// [`expired`](crate::stats::DatagramStats::expired). For data that is useless later.
    ///
    /// # Errors
    /// As for [`send_datagram`](Self::send_datagram).
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(connection: hybriq::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// connection.send_datagram_for("20 ms of sound".into(), Duration::from_millis(100))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn send_datagram_for(
        &self,
        data: Bytes,
        max_age: Duration,
    ) -> Result<(), SendDatagramError> {
        let mut options = DatagramOptions::new();
        // A time that cannot be expressed never comes.
        if let Some(at) = clock::now().checked_add(max_age) {
            options = options.expires(at);
        }
        self.send_datagram_with(data, options)
    }

    /// Sends a datagram like [`send_datagram`](Self::send_datagram), with its own deadline or urgency.
    ///
    /// # Errors
    /// As for [`send_datagram`](Self::send_datagram). The queue is also full for a datagram that is less urgent than
    /// all that wait.
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(connection: hybriq::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// use hybriq::transport::DatagramOptions;
    ///
    /// connection.send_datagram_with("a key was pressed".into(), DatagramOptions::new().urgency(0))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn send_datagram_with(
        &self,
        data: Bytes,
        options: DatagramOptions,
    ) -> Result<(), SendDatagramError> {
        let len = data.len();
        let mut state = self.handle.lock();
        if let Some(error) = &state.closed {
            return Err(error.clone().into());
        }
        if self.handle.check(&state).is_err() {
            return Err(SendDatagramError::ZeroRttRejected);
        }
        let taken = state.core.send_datagram_with(data, options);
        drop(state);
        taken.map_err(|error| public(error, len))?;
        self.handle.touch();
        Ok(())
    }

    /// Sends a datagram like [`send_datagram_with`](Self::send_datagram_with), and returns a future of what becomes of
    /// it. The future need not be polled, and does not keep the connection alive.
    ///
    /// # Errors
    /// As for [`send_datagram_with`](Self::send_datagram_with). The queue also counts as full while the fates of 4096
    /// datagrams are awaited. The future fails if the connection ends first.
    ///
    /// # Cancel safety
    /// The datagram is sent even if the future is dropped.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(connection: hybriq::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// use hybriq::transport::{DatagramFate, DatagramOptions};
    ///
    /// let fate = connection.send_datagram_tracked("where I am".into(), DatagramOptions::new())?;
    /// if fate.await? != DatagramFate::Acknowledged {
    ///     println!("it did not arrive, as far as we know");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn send_datagram_tracked(
        &self,
        data: Bytes,
        options: DatagramOptions,
    ) -> Result<
        impl Future<Output = Result<DatagramFate, ConnectionError>> + Send + Sync + use<S>,
        SendDatagramError,
    > {
        let (tag, fate) = self.handle.lock().fates.add();
        let sent = self.send_datagram_with(data, options.tag(tag));
        if sent.is_err() {
            self.handle.lock().fates.give_up(tag);
        }
        sent.map(|()| fate)
    }

    /// Returns the next datagram of the peer; `None` once the connection was closed cleanly, with
    /// [the code for it](crate::transport::ApplicationCodes::no_error) or without an error.
    /// Datagrams that arrived before the end are still returned.
    ///
    /// A client gets none before the handshake is complete. On a server that [accepts early
    /// data](crate::ServerConfig::accept_early_data), the first datagrams may come from 0-RTT packets
    /// and thus be replayed; an early connection takes them first.
    ///
    /// Unread datagrams are dropped, oldest first, once more than
    /// [`receive_buffer`](crate::transport::DatagramConfig::receive_buffer) bytes wait.
    ///
    /// # Errors
    /// The connection is over for another reason, or the server refused 0-RTT data.
    ///
    /// # Cancel safety
    /// Takes no datagram if the future is dropped before it is ready.
    pub async fn recv_datagram(&self) -> Result<Option<Bytes>, S::Error> {
        self.wait(WaitFor::Datagram, State::poll_recv_datagram)
            .await
    }
}

impl Connection {
    /// Sends a datagram once there is room for it in the queue, regardless of the
    /// [configuration](crate::transport::DatagramConfig::when_full).
    ///
    /// # Errors
    /// The peer accepts none, it is too large for the path, or the connection is over.
    ///
    /// # Cancel safety
    /// Sends nothing if the future is dropped before it is ready.
    pub async fn send_datagram_wait(&self, data: Bytes) -> Result<(), SendDatagramError> {
        let send = |state: &mut State| send_within(state, &data);
        self.handle.wait(WaitFor::DatagramRoom, send).await?;
        self.handle.touch();
        Ok(())
    }

    /// Sends a datagram once there is room for it; the twin of [`send_datagram_wait`](Self::send_datagram_wait).
    /// Wakes the task of its last call with this handle.
    ///
    /// # Errors
    /// As for [`send_datagram_wait`](Self::send_datagram_wait).
    pub fn poll_send_datagram(
        &mut self,
        cx: &mut Context<'_>,
        data: &Bytes,
    ) -> Poll<Result<(), SendDatagramError>> {
        let send = |_: &Handle, state: &mut State| send_within(state, data);
        let sent = self.handle.poll(WaitFor::DatagramRoom, cx, send);
        if sent.is_ready() {
            self.handle.touch();
        }
        sent
    }

    /// Sends a datagram if there is room for it.
    #[cfg(feature = "futures")]
    pub(crate) fn try_send_datagram(&self, data: &Bytes) -> Poll<Result<(), SendDatagramError>> {
        let sent = send_within(&mut self.handle.lock(), data);
        self.handle.touch();
        sent
    }
}

fn send_within(state: &mut State, data: &Bytes) -> Poll<Result<(), SendDatagramError>> {
    if let Some(error) = &state.closed {
        return Poll::Ready(Err(error.clone().into()));
    }
    match state.core.send_datagram_within(data) {
        Ok(()) => Poll::Ready(Ok(())),
        Err(SendError::Full) => Poll::Pending,
        Err(error) => Poll::Ready(Err(public(error, data.len()))),
    }
}

fn public(error: SendError, len: usize) -> SendDatagramError {
    match error {
        SendError::Unsupported => SendDatagramError::Unsupported,
        SendError::TooLarge(max) => SendDatagramError::TooLarge { len, max },
        _ => SendDatagramError::Full,
    }
}
