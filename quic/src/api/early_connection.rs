//! The handle of a connection before its handshake is complete.

use std::{fmt, future::poll_fn, sync::Arc};

use hybriq_proto::events::agreement::EarlyData;

use super::connection::{Connection, Stage, sealed::Sealed};
use crate::{
    errors::{ConnectError, EarlyError},
    worker::{Attempt, Handle, Polling},
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
/// that may be repeated**; on the server, check [`RecvStream::is_early`](crate::RecvStream::is_early) before acting on any other
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
/// let connection = match client.connect_early(address, "example.com").early().await {
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
pub type EarlyConnection = Connection<Early>;

/// The handshake is not complete.
#[derive(Clone)]
pub struct Early(Arc<Waiting>);

impl fmt::Debug for Early {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Early")
    }
}

impl Sealed for Early {}

impl Stage for Early {
    type Error = EarlyError;

    const HANDLE: &'static str = "EarlyConnection";

    fn refused() -> Option<EarlyError> {
        Some(EarlyError::ZeroRttRejected)
    }
}

/// Wait for the handshake, which ends when the last clone of an early connection is dropped.
struct Waiting(Arc<Attempt>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.forget();
    }
}

impl EarlyConnection {
    pub(crate) fn new_early(attempt: Arc<Attempt>, handle: Handle) -> Self {
        Self {
            stage: Early(Arc::new(Waiting(attempt))),
            handle: Polling::new(handle),
        }
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
        let (handle, handshake) = poll_fn(|cx| self.stage.0.0.poll(cx)).await?;
        let early_data = handshake.early_data;
        Ok((Connection::new(handle, handshake), early_data))
    }

    /// Returns the application protocol of 0-RTT data: on a client, that of the earlier connection;
    /// on a server, that of this one.
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.handle.lock().core.early_alpn()
    }
}
