//! Handshakes in progress.

use std::{
    fmt,
    future::{Future, poll_fn},
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::{connection::Connection, early_connection::EarlyConnection};
use crate::{
    errors::ConnectError,
    worker::{Attempt, Departure, Promise},
};

/// A handshake in progress: a future that returns the [`Connection`], or a [`ConnectError`].
///
/// [`Connecting::early`] returns the connection before its handshake is complete.
///
/// # Cancel safety
/// Nothing is lost between polls. Dropping the future gives up the handshake.
#[must_use = "dropping it gives up the handshake; await it"]
pub struct Connecting(State);

enum State {
    /// The handshake could not start; `None` once the error was returned.
    Failed(Option<ConnectError>),
    Started(Arc<Attempt>),
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connecting")
    }
}

impl Connecting {
    pub(crate) fn failed(error: ConnectError) -> Self {
        Self(State::Failed(Some(error)))
    }

    /// Starts a handshake: `request` hands the promise of its outcome to the worker.
    pub(crate) fn start(departure: Departure, request: impl FnOnce(Promise)) -> Self {
        let (attempt, promise) = Attempt::new(departure);
        request(promise);
        Self(State::Started(attempt))
    }
}

impl Connecting {
    /// Takes the error of a handshake that could not start: the address or the name cannot be a
    /// server's, the configuration cannot be used, or the endpoint is closed. `None` if it started.
    pub fn take_failure(&mut self) -> Option<ConnectError> {
        match &mut self.0 {
            State::Failed(error) => error.take(),
            State::Started(_) => None,
        }
    }

    /// Returns the connection before its handshake is complete, if it may carry data already. The
    /// handshake continues in the background.
    ///
    /// A **client** may send 0-RTT packets if it has a ticket from an earlier connection and both
    /// ends allow it: [`ClientConfig::offer_early_data`], [`ServerConfig::accept_early_data`]. A
    /// **server** may always send before the handshake is complete, and receives the streams of
    /// 0-RTT packets at once; without this call it receives them from the [`Connection`].
    ///
    /// Waits for the endpoint to start the connection, not for the peer. Data written right
    /// afterwards is usually sent with the client's first datagrams, and always after
    /// [`Endpoint::connect_early`](crate::Endpoint::connect_early).
    ///
    /// # Errors
    /// Returns `self` if the connection may not carry early data, or if its handshake has already
    /// ended. Await it to get the [`Connection`], or for the reason why there is none.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the handshake.
    ///
    /// # Examples
    /// ```no_run
    /// // A server; `EarlyConnection` has the example of a client.
    /// async fn serve(connecting: hybriq::Connecting) -> Result<(), Box<dyn std::error::Error>> {
    ///     let early = match connecting.early().await {
    ///         Ok(early) => early,
    ///         Err(connecting) => {
    ///             // The handshake has already ended.
    ///             let connection = connecting.await?;
    ///             # drop(connection);
    ///             return Ok(());
    ///         }
    ///     };
    ///     // Requests come before the handshake is over.
    ///     while let Some((send, recv)) = early.accept_bidi().await? {
    ///         if recv.is_early() {
    ///             // Whoever recorded it may have sent it: answer only what may be repeated.
    ///         }
    ///         # drop(send);
    ///     }
    ///     let (connection, _) = early.established().await?;
    ///     # drop(connection);
    ///     Ok(())
    /// }
    /// ```
    ///
    /// [`ClientConfig::offer_early_data`]: crate::ClientConfig::offer_early_data
    /// [`ServerConfig::accept_early_data`]: crate::ServerConfig::accept_early_data
    pub async fn early(mut self) -> Result<EarlyConnection, Self> {
        let State::Started(attempt) = &self.0 else {
            return Err(self);
        };
        let attempt = attempt.clone();
        let Some(handle) = poll_fn(|cx| attempt.poll_early(cx)).await else {
            return Err(self);
        };
        // From here on, the early connection owns the attempt.
        self.0 = State::Failed(None);
        Ok(EarlyConnection::new_early(attempt, handle))
    }
}

impl Future for Connecting {
    type Output = Result<Connection, ConnectError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Failed(error) => {
                Poll::Ready(Err(error.take().unwrap_or(ConnectError::EndpointClosed)))
            }
            State::Started(attempt) => attempt
                .poll(cx)
                .map_ok(|(handle, handshake)| Connection::new(handle, handshake)),
        }
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        if let State::Started(attempt) = &self.0 {
            attempt.leave();
        }
    }
}

/// Checks that a certificate can be issued for the name: an IP address, or a DNS name (RFC 1123
/// §2.1) that may contain underscores, as some names in use do.
pub(crate) fn check_server_name(name: &str) -> Result<(), ConnectError> {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let is_dns_name = || {
        let name = name.strip_suffix('.').unwrap_or(name);
        name.len() <= 253 && name.split('.').all(is_label)
    };
    if name.parse::<IpAddr>().is_ok() || is_dns_name() {
        Ok(())
    } else {
        Err(ConnectError::ServerName(name.to_owned()))
    }
}
