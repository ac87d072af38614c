//! Clients that want to connect.

use std::{
    fmt,
    future::{Future, IntoFuture},
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::common::{Common, Count};
use crate::{Connecting, Connection, ConnectionError, ServerConfig};

/// A client that wants to connect. Dropping it refuses the client.
pub struct Incoming {
    incoming: hybriq::Incoming,
    common: Arc<Common>,
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.incoming.fmt(f)
    }
}

impl Incoming {
    pub(super) fn new(incoming: hybriq::Incoming, common: Arc<Common>) -> Self {
        Self { incoming, common }
    }

    /// Accepts the client with the endpoint's configuration.
    ///
    /// # Errors
    /// Always succeeds: the [`Connecting`] returns errors.
    pub fn accept(self) -> Result<Connecting, ConnectionError> {
        Ok(self.start(hybriq::Incoming::accept))
    }

    /// Accepts the client with another configuration.
    ///
    /// # Errors
    /// Always succeeds: the [`Connecting`] returns errors.
    #[expect(clippy::needless_pass_by_value, reason = "the signature of quinn")]
    pub fn accept_with(
        self,
        server_config: Arc<ServerConfig>,
    ) -> Result<Connecting, ConnectionError> {
        let config = server_config.build(&self.common.shared);
        Ok(self.start(|incoming| incoming.accept_with(config)))
    }

    fn start(self, accept: impl FnOnce(hybriq::Incoming) -> hybriq::Connecting) -> Connecting {
        let (remote, local_ip) = (self.remote_address(), self.local_ip());
        self.common.add(Count::Accepted);
        let connecting = accept(self.incoming);
        Connecting::new(
            connecting,
            remote,
            local_ip,
            true,
            self.common.runtime.clone(),
        )
    }

    /// Refuses the client with CONNECTION_REFUSED.
    pub fn refuse(self) {
        self.common.add(Count::Refused);
        self.incoming.refuse();
    }

    /// Sends a Retry packet, so that the client proves that it receives at its address. It comes back as another
    /// `Incoming`.
    ///
    /// # Errors
    /// The client would ignore it: the error returns the client.
    pub fn retry(self) -> Result<(), RetryError> {
        let common = self.common;
        self.incoming.retry().map_err(|incoming| {
            RetryError(Box::new(Self {
                incoming: *incoming,
                common,
            }))
        })
    }

    /// Drops the client's packet without an answer.
    pub fn ignore(self) {
        self.common.add(Count::Ignored);
        self.incoming.ignore();
    }

    /// Returns the local address that the client's packet was sent to, if the system reports it.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.incoming.local_ip()
    }

    /// Returns the client's address, which may be forged unless it is validated.
    pub fn remote_address(&self) -> SocketAddr {
        self.incoming.peer_address()
    }

    /// Returns true if the client proved that it receives at its address.
    pub fn remote_address_validated(&self) -> bool {
        self.incoming.is_validated()
    }

    /// Returns true if the client would follow a [`retry`](Self::retry).
    pub fn may_retry(&self) -> bool {
        self.incoming.may_retry()
    }

    /// Returns the client of hybriq, with its ClientHello.
    pub fn hybriq(&self) -> &hybriq::Incoming {
        &self.incoming
    }
}

impl IntoFuture for Incoming {
    type Output = Result<Connection, ConnectionError>;
    type IntoFuture = IncomingFuture;

    fn into_future(self) -> IncomingFuture {
        IncomingFuture(self.start(hybriq::Incoming::accept))
    }
}

/// Future of the connection of an [`Incoming`].
#[derive(Debug)]
pub struct IncomingFuture(Connecting);

impl Future for IncomingFuture {
    type Output = Result<Connection, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

/// The client would ignore a Retry.
#[derive(Debug, thiserror::Error)]
#[error("retry() with validated Incoming")]
pub struct RetryError(Box<Incoming>);

impl RetryError {
    /// Returns the client.
    pub fn into_incoming(self) -> Incoming {
        *self.0
    }
}
