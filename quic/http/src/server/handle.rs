//! Handles of servers.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, Weak},
    time::Duration,
};

use hybriq::{
    Endpoint, EndpointError, ServerConfig,
    error::{ConfigError, RestartError},
    stats::Census,
};
use socket2::SockRef;
use tokio::{net::TcpListener, sync::Semaphore};

use super::{
    connections::{Cause, Order},
    http3::for_http3,
    state::{CLOSE_TIME, Phase, Settings, Shared},
};

/// Shortest time between two looks at watched files.
const LEAST_INTERVAL: Duration = Duration::from_millis(10);

/// Returns hashes of what the files contain, or `None` for one that cannot be read. Keys are not kept.
async fn contents(files: &Arc<[PathBuf]>) -> Option<Vec<Option<u64>>> {
    let files = files.clone();
    let hash = |path: &PathBuf| {
        let content = std::fs::read(path).ok()?;
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        Some(hasher.finish())
    };
    let read = move || files.iter().map(hash).collect();
    tokio::task::spawn_blocking(read).await.ok()
}

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
    /// Over QUIC, clients can resume if the new configuration allows their key exchange and has the same setting for
    /// 0-RTT. Over TCP, they can resume if the key exchange policy is unchanged. Sessions of clients that present
    /// certificates end, so that the certificates are verified again. [`ServerConfig::tickets`] in both configurations replaces this rule.
    ///
    /// # Errors
    /// The configuration cannot be used, or the server was shut down. Each [`EndpointError`] says what
    /// to do.
    pub fn reload(&self, config: ServerConfig) -> Result<(), EndpointError> {
        let (config, new) = Settings::of(config, Some(self.0.settings()))?;
        let config = for_http3(config, &self.0.limits, self.0.features);
        self.0.endpoint.set_server_config(config)?;
        let settings = self.0.settings.lock();
        *settings.unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// Watches files, such as those of certificates, keys and OCSP responses, and [reloads](Self::reload) the configuration that
    /// `config` makes of them when their content changes. Looks every `interval`, at least 10 ms. Returns once the
    /// server is shut down.
    ///
    /// A configuration that cannot be used, for example because only one of two files is new, is logged as a warning,
    /// and the old one stays until the files change again.
    ///
    /// # Cancel safety
    /// Dropping the future ends the watch.
    ///
    /// # Examples
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use hybriq::{Identity, ServerConfig, error::ConfigError};
    /// use hybriq_http::Server;
    ///
    /// fn config() -> Result<ServerConfig, ConfigError> {
    ///     let first = Identity::from_pem_files("first.pem", "first.key")?;
    ///     // For clients that ask for another name.
    ///     let second = Identity::from_pem_files("second.pem", "second.key")?;
    ///     Ok(ServerConfig::new(first).add_identity(second))
    /// }
    ///
    /// # async fn run(app: axum::Router) -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::bind("[::]:443", config()?)?;
    /// let handle = server.handle();
    /// let files = ["first.pem", "first.key", "second.pem", "second.key"];
    /// tokio::spawn(async move { handle.watch(files, Duration::from_secs(30), config).await });
    /// server.serve(app).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn watch<P: Into<PathBuf>>(
        &self,
        files: impl IntoIterator<Item = P>,
        interval: Duration,
        config: impl Fn() -> Result<ServerConfig, ConfigError>,
    ) {
        let files: Arc<[PathBuf]> = files.into_iter().map(Into::into).collect();
        let mut used = contents(&files).await;
        loop {
            tokio::select! {
                () = tokio::time::sleep(interval.max(LEAST_INTERVAL)) => {}
                () = self.0.phase(Phase::Draining) => return,
            }
            let new = contents(&files).await;
            if new == used {
                continue;
            }
            used = new;
            match config()
                .map_err(EndpointError::from)
                .and_then(|new| self.reload(new))
            {
                Ok(()) => tracing::info!("reloaded the configuration: its files have changed"),
                Err(error) => tracing::warn!(
                    %error,
                    "the changed files are not used, and the configuration stays"
                ),
            }
        }
    }

    /// Waits for a successor, a newer process of the same service, and hands the sockets for TCP and UDP over to it. The
    /// successor calls [`ServerBuilder::take_over_or_bind`](super::ServerBuilder::take_over_or_bind) with the same path.
    ///
    /// New clients are the successor's from then on. This process answers what its own clients ask, and asks them to
    /// leave: with GOAWAY over HTTP/2 and HTTP/3, and with `connection: close` in the next response over HTTP/1.1, so
    /// that no request is lost. [`Server::serve`](super::Server::serve) returns once they have left, idle ones after
    /// [`Limits::header_time`](crate::Limits::header_time); [`shutdown`](Self::shutdown) limits that time. If the
    /// successor ends early, call this again to wait for another one.
    ///
    /// Linux and Android only. See [`Endpoint::hand_over`], and [restarts](hybriq::guide::restart).
    ///
    /// # Errors
    /// As for [`Endpoint::hand_over`]. The server continues as before.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait; the server is either with this process or with the successor.
    ///
    /// # Security
    /// Whoever can connect to the path can take over the server: see [`Endpoint::hand_over`].
    ///
    /// # Examples
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use hybriq::{Identity, ServerConfig, fleet::FleetKeys};
    /// use hybriq_http::Server;
    ///
    /// const PATH: &str = "/run/web/restart";
    ///
    /// # async fn run(app: axum::Router) -> Result<(), Box<dyn std::error::Error>> {
    /// let keys = FleetKeys::from_file("/run/secrets/fleet")?;
    /// let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
    /// let config = ServerConfig::new(identity).tickets(keys.tickets());
    /// // The first process binds the address; every later one takes over.
    /// let builder = Server::builder().fleet_keys(&keys);
    /// let server = builder.take_over_or_bind(PATH, "[::]:443", config).await?;
    /// let handle = server.handle();
    /// tokio::spawn(async move {
    ///     handle.hand_over(PATH).await?;
    ///     handle.shutdown(Duration::from_secs(60)).await;
    ///     Ok::<_, hybriq::error::RestartError>(())
    /// });
    /// server.serve(app).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn hand_over(&self, path: impl AsRef<Path>) -> Result<(), RestartError> {
        let listeners = || {
            let listeners = self.0.listeners.iter().filter_map(Weak::upgrade);
            let copy = |listener: Arc<TcpListener>| {
                let copy = SockRef::from(&*listener).try_clone();
                copy.ok().map(Into::into)
            };
            listeners.filter_map(copy).collect()
        };
        self.0.endpoint.hand_over_with(path, listeners).await
    }

    /// Shuts the server down. Accepts no more connections, tells clients with GOAWAY (RFC 9114 §5.2) to send no more
    /// requests, and waits until the requests in progress are answered, for at most `timeout`. Then it closes the
    /// remaining connections, regardless of what holds them: streams that the service has from an
    /// [`Upgrade`](crate::Upgrade) and WebTransport sessions fail from then on. After a [successor](Self::hand_over)
    /// has taken over, clients are only asked to leave, and idle connections over HTTP/1.1 are left alone until the
    /// deadline. Returns when
    /// [`Server::serve`](super::Server::serve) is about to return, at most a second after the timeout.
    ///
    /// # Cancel safety
    /// If the future is dropped, the server waits for its requests without a deadline.
    pub async fn shutdown(&self, timeout: Duration) {
        let has_successor = self.0.endpoint.has_successor();
        if !has_successor {
            self.0.begin(Phase::Draining);
            self.0.watch.tell_all(Order::Drain, Cause::Shutdown);
            self.0.endpoint.stop_accepting();
        }
        let ended = async {
            if has_successor {
                // Clients that arrived before the successor did are served.
                self.0.phase(Phase::Leaving).await;
            }
            self.0.connections.ended().await;
        };
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
