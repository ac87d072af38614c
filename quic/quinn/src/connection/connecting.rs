//! Handshakes in progress.

use std::{
    any::Any,
    fmt,
    future::{Future, poll_fn},
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::{runtime::Handle, sync::oneshot};

use super::{Connection, Inner};
use crate::{ConnectionError, crypto::rustls::HandshakeData};

/// A handshake in progress: a future that returns the [`Connection`]. Dropping it gives up the handshake.
#[must_use = "dropping it gives up the handshake; await it"]
pub struct Connecting {
    state: State,
    remote: SocketAddr,
    local_ip: Option<IpAddr>,
    /// True if data may be sent before the handshake is complete.
    early: bool,
    runtime: Handle,
}

enum State {
    Waiting(hybriq::Connecting),
    /// The handshake is over; `None` once the outcome was returned.
    Over(Option<Result<hybriq::Connection, ConnectionError>>),
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting")
            .field("remote_address", &self.remote)
            .finish_non_exhaustive()
    }
}

impl Connecting {
    pub(crate) fn new(
        connecting: hybriq::Connecting,
        remote: SocketAddr,
        local_ip: Option<IpAddr>,
        early: bool,
        runtime: Handle,
    ) -> Self {
        Self {
            state: State::Waiting(connecting),
            remote,
            local_ip,
            early,
            runtime,
        }
    }

    /// Returns the connection before its handshake is complete, for a client's 0-RTT data or a server's data right after
    /// its first flight.
    ///
    /// # Errors
    /// Returns `self` if a client has no ticket that allows 0-RTT data.
    ///
    /// # Security
    /// An attacker can replay 0-RTT data: send only requests that may be repeated.
    #[expect(clippy::result_large_err, reason = "the signature of quinn")]
    pub fn into_0rtt(self) -> Result<(Connection, ZeroRttAccepted), Self> {
        match self.state {
            State::Waiting(connecting) if self.early => {
                let inner = Arc::new(Inner::starting(Some(self.remote)));
                let (told, accepted) = oneshot::channel();
                let followed = inner.clone();
                self.runtime.spawn(async move {
                    let _ = told.send(followed.follow(connecting).await);
                });
                Ok((Connection(inner), ZeroRttAccepted(accepted)))
            }
            state => Err(Self { state, ..self }),
        }
    }

    /// Waits for the end of the handshake and returns what it agreed on: a [`HandshakeData`].
    ///
    /// # Errors
    /// The handshake failed, or its connection was already returned.
    pub async fn handshake_data(&mut self) -> Result<Box<dyn Any>, ConnectionError> {
        poll_fn(|cx| self.poll_over(cx)).await;
        match &self.state {
            State::Over(Some(Ok(connection))) => {
                Ok(Box::new(HandshakeData::of(connection.handshake())))
            }
            State::Over(Some(Err(error))) => Err(error.clone()),
            State::Over(None) | State::Waiting(_) => Err(ConnectionError::LocallyClosed),
        }
    }

    /// Returns the local address of the connection on a server, if it is known.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.local_ip
    }

    /// Returns the peer's address.
    pub fn remote_address(&self) -> SocketAddr {
        self.remote
    }

    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let State::Waiting(connecting) = &mut self.state {
            let outcome = ready!(Pin::new(connecting).poll(cx));
            self.state = State::Over(Some(outcome.map_err(ConnectionError::from)));
        }
        Poll::Ready(())
    }
}

impl Future for Connecting {
    type Output = Result<Connection, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(self.poll_over(cx));
        let outcome = match &mut self.state {
            State::Over(outcome) => outcome.take(),
            State::Waiting(_) => None,
        };
        let outcome = outcome.unwrap_or(Err(ConnectionError::LocallyClosed));
        Poll::Ready(outcome.map(Connection::established))
    }
}

/// Future of the end of a handshake: true if data that was sent before has arrived. On a server the value means nothing.
#[derive(Debug)]
pub struct ZeroRttAccepted(oneshot::Receiver<bool>);

impl Future for ZeroRttAccepted {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        Pin::new(&mut self.0).poll(cx).map(|it| it.unwrap_or(false))
    }
}
