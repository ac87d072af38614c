//! Handles of servers.

use std::{
    net::SocketAddr,
    sync::{Arc, PoisonError},
    time::Duration,
};

use hybriq::{Endpoint, EndpointError, ServerConfig, stats::Census};
use tokio::sync::Semaphore;

use super::{
    connections::{Cause, Order},
    state::{ALPN_TCP, CLOSE_TIME, Phase, Settings, Shared},
};

/// A handle to a server, usable from any task and thread. Clones refer to the same server.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle")
            .field("local_address", &self.local_address())
            .field("connections", &self.connections())
            .finish_non_exhaustive()
    }
}

impl Handle {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Returns the address that the server listens on.
    pub fn local_address(&self) -> SocketAddr {
        self.0.endpoint.local_address()
    }

    /// Returns the number of open connections, over TCP and over QUIC.
    pub fn connections(&self) -> usize {
        self.0.connections.count()
    }

    /// Returns the number of entries in each table of the server: connections, handshakes, requests, streams of other
    /// protocols, places that are taken, and tasks that wait for a shutdown. Once all clients have left, the numbers
    /// are those of a new server; anything beyond that is a leak. The transport is not included.
    ///
    /// The call visits every connection.
    ///
    /// # Examples
    /// ```
    /// /// Returns true if no connection has a request in progress.
    /// fn is_idle(server: &hybriq_http::Handle) -> bool {
    ///     let census = server.census();
    ///     census.entries("requests") == 0 && census.entries("tunnels") == 0
    /// }
    /// ```
    pub fn census(&self) -> Census {
        let Self(shared) = self;
        let mut census = Census::default();
        census.add("requests", 0, 0);
        shared.connections.census(&mut census);
        shared.watch.census(&mut census);
        let most = shared.limits.tcp_connections.min(Semaphore::MAX_PERMITS);
        let taken = most.saturating_sub(shared.places.available_permits());
        census.add("places of connections over TCP", taken, 0);
        census.add("waits for a phase", shared.phase.receiver_count(), 0);
        census
    }

    /// Returns the bytes that clients take now, counted as for [`Limits::memory`](crate::Limits::memory): handshakes,
    /// connections and requests.
    ///
    /// The call visits every connection.
    pub fn memory(&self) -> u64 {
        self.0.watch.memory_of_all()
    }

    /// Returns the QUIC endpoint, for example for its counters.
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// Replaces the configuration (certificate, key exchange, transport) of connections accepted from now on, over
    /// TCP and QUIC. Existing connections keep theirs. If the configuration is invalid, the old one stays in place.
    ///
    /// # Errors
    /// The configuration cannot be used, or the server was shut down. Each [`EndpointError`] says what
    /// to do.
    pub fn reload(&self, config: ServerConfig) -> Result<(), EndpointError> {
        let tls = Arc::new(config.tcp(ALPN_TCP)?);
        let early = config.accepts_early_data();
        self.0
            .endpoint
            .set_server_config(config.alpn([hybriq_h3::ALPN]))?;
        let settings = self.0.settings.lock();
        *settings.unwrap_or_else(PoisonError::into_inner) = Settings { tls, early };
        Ok(())
    }

    /// Shuts the server down. Accepts no more connections, tells clients by GOAWAY (RFC 9114 §5.2) to send no more
    /// requests, and waits until the requests in progress are answered, for at most `timeout`. Then it closes the
    /// remaining connections, whatever holds them: streams that the service has from an [`Upgrade`](crate::Upgrade)
    /// and WebTransport sessions fail from then on. Returns when [`Server::serve`](super::Server::serve) is about to
    /// return, at most a second after the timeout.
    ///
    /// # Cancel safety
    /// If the future is dropped, the server waits for its requests without a deadline.
    pub async fn shutdown(&self, timeout: Duration) {
        self.0.phase.send_if_modified(|phase| {
            let first = *phase == Phase::Serving;
            if first {
                *phase = Phase::Draining;
            }
            first
        });
        self.0.watch.tell_all(Order::Drain, Cause::Shutdown);
        self.0.endpoint.stop_accepting();
        let ended = self.0.connections.ended();
        let _ = tokio::time::timeout(timeout, ended).await;
        self.0.phase.send_replace(Phase::Closing);
        self.0.endpoint.close(hybriq_h3::Code::H3_NO_ERROR.0, b"");
        self.0.ended().await;
        // The port is free then.
        let closed = async {
            self.0.endpoint.ended().await;
            self.0.listening.closed().await;
        };
        let _ = tokio::time::timeout(CLOSE_TIME, closed).await;
    }
}
