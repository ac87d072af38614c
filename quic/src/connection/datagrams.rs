use std::task::Poll;

use bytes::Bytes;

use super::Connection;
use crate::{
    error::SendDatagramError,
    worker::{Handle, State},
};
use hybriq_proto::datagrams::SendError;
use hybriq_proto::error::ConnectionError;

/// Datagrams (RFC 9221): messages that keep their bounds, are not sent again when they are lost, and
/// may overtake each other.
///
/// Congestion control and pacing hold for them as for streams. As long as both wait to be sent, they
/// get the same number of bytes.
impl Connection {
    /// Bytes a datagram may have now; `None` if the peer takes none. It grows with what is found of
    /// the path, and may shrink when the path changes.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.handle.lock().core.max_datagram_size()
    }

    /// Sends a datagram. When too many wait already, the oldest gives way, unless the
    /// [configuration](crate::DatagramConfig::when_full) is to refuse.
    ///
    /// # Errors
    /// The peer takes none, it is too large for the path, the queue is full, or the connection is
    /// over.
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
        send(&self.handle, data)
    }

    /// Sends a datagram once there is room for it in the queue, whatever the
    /// [configuration](crate::DatagramConfig::when_full) says.
    ///
    /// # Errors
    /// The peer takes none, it is too large for the path, or the connection is over.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has sent nothing.
    pub async fn send_datagram_wait(&self, data: Bytes) -> Result<(), SendDatagramError> {
        crate::worker::wait_until(
            self.handle.state(),
            |state| &mut state.datagram_writers,
            |state| {
                if let Some(error) = &state.closed {
                    return Poll::Ready(Err(error.clone().into()));
                }
                match state.core.send_datagram_within(&data) {
                    Ok(()) => Poll::Ready(Ok(())),
                    Err(SendError::Full) => Poll::Pending,
                    Err(error) => Poll::Ready(Err(public(error, data.len()))),
                }
            },
        )
        .await?;
        self.handle.touch();
        Ok(())
    }

    /// The next datagram that came; `None` when the connection was closed cleanly, with code 0 or
    /// without an error. Those that came before are still handed out.
    ///
    /// On a server that [accepts early data](crate::ServerConfig::accept_early_data) datagrams of a
    /// client's 0-RTT packets, which may be recordings, are among the first, unless
    /// [`EarlyConnection::recv_datagram`](crate::EarlyConnection::recv_datagram) took them.
    ///
    /// What nobody reads is dropped, the oldest first, once more than
    /// [`receive_buffer`](crate::DatagramConfig::receive_buffer) bytes wait.
    ///
    /// # Errors
    /// The connection is over for another reason.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has taken nothing.
    pub async fn recv_datagram(&self) -> Result<Option<Bytes>, ConnectionError> {
        crate::worker::wait_until(
            self.handle.state(),
            |state| &mut state.datagram_readers,
            poll_recv,
        )
        .await
    }
}

/// Sends one, of the handle's time: after a refusal none of those that were to be early.
pub(crate) fn send(handle: &Handle, data: Bytes) -> Result<(), SendDatagramError> {
    let len = data.len();
    let mut state = handle.lock();
    if let Some(error) = &state.closed {
        return Err(error.clone().into());
    }
    if handle.check(&state).is_err() {
        return Err(SendDatagramError::ZeroRttRejected);
    }
    let taken = state.core.send_datagram(data);
    drop(state);
    taken.map_err(|error| public(error, len))?;
    handle.touch();
    Ok(())
}

/// The next one that came. Those that came before the connection ended are still handed out.
pub(crate) fn poll_recv(state: &mut State) -> Poll<Result<Option<Bytes>, ConnectionError>> {
    if let Some(data) = state.core.datagrams().recv() {
        return Poll::Ready(Ok(Some(data)));
    }
    match &state.closed {
        Some(error) if error.is_clean() => Poll::Ready(Ok(None)),
        Some(error) => Poll::Ready(Err(error.clone())),
        None => Poll::Pending,
    }
}

fn public(error: SendError, len: usize) -> SendDatagramError {
    match error {
        SendError::Unsupported => SendDatagramError::Unsupported,
        SendError::TooLarge(max) => SendDatagramError::TooLarge { len, max },
        SendError::Full => SendDatagramError::Full,
    }
}
