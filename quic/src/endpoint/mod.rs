//! Endpoints.

pub(crate) mod addresses;
mod builder;
#[cfg(feature = "futures")]
pub(crate) mod clients;
#[cfg(unix)]
mod listen_fds;
mod restart;
pub(crate) mod sockets;

use std::{
    fmt,
    net::{Ipv6Addr, SocketAddr, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use hybriq_proto::{
    endpoint::Setup,
    stats::{EndpointStats, census::Census},
    wire::{
        error::{ConnectionError, SystemError},
        udp::canonical,
    },
};

use self::sockets::Ports;
use crate::{
    api::{
        connecting::{Connecting, check_server_name},
        incoming::Incoming,
    },
    config::{ClientConfig, ServerConfig},
    errors::{ConnectError, EndpointError, wire_code},
    udp,
    worker::{Departure, HandshakeCount, Shared, WorkerSettings},
};
pub use builder::EndpointBuilder;
#[cfg(test)]
pub(crate) use builder::Setups;
#[cfg(unix)]
pub use listen_fds::{ListenFds, ListenFdsError, ListenUdp};

/// A UDP socket that accepts connections, starts connections, or both.
///
/// Clones are handles of the same endpoint. When the last handle is dropped, the endpoint accepts no
/// new connections. Existing connections live on, and the socket is closed with the last of them.
///
/// # Dropping handles
/// Endpoints, connections and streams may be dropped in any order; no drop waits for anything, and
/// every waiting task is woken.
///
/// - After the last `Endpoint` is dropped, its connections and streams work as before. Clients that
///   wait for [`Endpoint::accept`] or arrive later are refused; an [`Incoming`] that was taken
///   counts as a handle of the endpoint.
/// - A finished stream arrives completely, regardless of what is dropped afterwards. The connection is closed with
///   code 0 when its last handle and its last stream are dropped and all finished streams have arrived, or when the
///   peer acknowledges less than 16 KiB of them in 30 seconds. The runtime must keep running until then: keep a clone
///   of the endpoint for [`Endpoint::idle`] at the end of a program.
/// - [`Endpoint::close`] and [`Connection::close`](crate::Connection::close) wait for nothing:
///   unacknowledged data may be lost.
/// - If the runtime ends earlier, all operations fail with an error that says so.
///
/// # Examples
/// ```no_run
/// use hybriq::{Endpoint, Identity, ServerConfig};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
/// let server = Endpoint::server("[::]:4433", ServerConfig::new(identity).alpn(["echo"]))?;
/// while let Some(incoming) = server.accept().await {
///     tokio::spawn(async move {
///         let connection = incoming.accept().await?;
///         while let Some((mut send, mut recv)) = connection.accept_bidi().await? {
///             tokio::io::copy(&mut recv, &mut send).await?;
///             send.finish();
///         }
///         Ok::<_, std::io::Error>(())
///     });
/// }
/// # Ok(())
/// # }
/// ```
pub struct Endpoint {
    pub(crate) shared: Arc<Shared>,
    settings: Arc<WorkerSettings>,
    client: Option<Setup>,
    /// Options for opening sockets.
    ports: Ports,
}

impl Clone for Endpoint {
    fn clone(&self) -> Self {
        self.shared.on_handle_cloned();
        Self {
            shared: self.shared.clone(),
            settings: self.settings.clone(),
            client: self.client.clone(),
            ports: self.ports,
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.on_handle_dropped();
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("local_address", &self.local_address())
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Creates an endpoint that accepts connections on an address.
    ///
    /// `[::]:4433` takes IPv6 and IPv4. Port 0 picks a free port; [`local_address`] returns it. The
    /// endpoint runs on the tokio runtime of the caller.
    ///
    /// [`local_address`]: Self::local_address
    ///
    /// # Errors
    /// The address cannot be used, the TLS configuration is invalid, or there is no tokio runtime.
    /// Each [`EndpointError`] says what to do.
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    pub fn server(
        address: impl ToSocketAddrs,
        config: ServerConfig,
    ) -> Result<Self, EndpointError> {
        Self::builder().server(config).bind(address)
    }

    /// Creates an endpoint that starts connections from a free port, over IPv6 and IPv4.
    ///
    /// The endpoint runs on the tokio runtime of the caller.
    ///
    /// # Errors
    /// No socket can be opened, the TLS configuration is invalid, or there is no tokio runtime. Each
    /// [`EndpointError`] says what to do.
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    pub fn client(config: ClientConfig) -> Result<Self, EndpointError> {
        Self::builder()
            .client(config)
            .bind((Ipv6Addr::UNSPECIFIED, 0))
    }

    /// Returns a builder, for an endpoint that accepts and connects on one socket, for a client on
    /// a given address, and for other settings.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }

    /// Waits for the next client that wants to connect. Returns `None` once the endpoint is closed.
    ///
    /// At most [`accept_backlog`](EndpointBuilder::accept_backlog) clients wait here. The datagrams
    /// of further clients are dropped until there is room; these clients retransmit automatically.
    /// An endpoint without a server configuration never has clients.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn accept(&self) -> Option<Incoming> {
        let (worker, incoming) = self.shared.accept().await?;
        Some(Incoming::new(self.shared.clone(), worker, incoming))
    }

    /// Connects to a server with the endpoint's client configuration.
    ///
    /// `server_name` is the DNS name or IP address that the server's certificate must be issued for.
    /// The handshake starts at once, not when the future is first polled. Dropping the future gives
    /// up the handshake.
    ///
    /// Connections are spread over the workers of the endpoint. A connection that is started by a
    /// task on a worker's thread ([`Connection::spawn`](crate::Connection::spawn), with
    /// [`Placement::Threads`](crate::fleet::Placement::Threads)) stays with that worker.
    ///
    /// # Errors
    /// This function returns no error; the future returns a [`ConnectError`].
    pub fn connect(&self, address: SocketAddr, server_name: &str) -> Connecting {
        let setup = self.client.clone().ok_or(ConnectError::NoClientConfig);
        self.start(setup, address, server_name, Departure::Now)
    }

    /// Connects to a server like [`connect`](Self::connect), but if the connection may carry early
    /// data ([`Connecting::early`]), its first flight is held until something is written, or until
    /// the application waits for something from the connection.
    ///
    /// So the first data always leaves with the ClientHello, in 0-RTT packets, even if the task is
    /// suspended between the two; after `connect` it may come too late on a busy machine. A
    /// connection without a ticket starts at once.
    ///
    /// # Errors
    /// This function returns no error; the future returns a [`ConnectError`].
    ///
    /// # Examples
    /// ```no_run
    /// # async fn run(client: hybriq::Endpoint) -> Result<(), Box<dyn std::error::Error>> {
    /// let connecting = client.connect_early("[::1]:4433".parse()?, "example.com");
    /// if let Ok(early) = connecting.early().await {
    ///     let mut request = early.open_uni().await?;
    ///     // The ClientHello is sent with this.
    ///     request.write_all(b"a request that may be repeated").await?;
    ///     request.finish();
    ///     let (connection, early_data) = early.established().await?;
    ///     # drop((connection, early_data));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect_early(&self, address: SocketAddr, server_name: &str) -> Connecting {
        let setup = self.client.clone().ok_or(ConnectError::NoClientConfig);
        self.start(setup, address, server_name, Departure::WithData)
    }

    /// Connects to a server with the given configuration instead of the endpoint's.
    ///
    /// The first use of a configuration builds its TLS provider, which reads certificates. Keep the
    /// configuration, or a clone of it, for more connections.
    ///
    /// # Errors
    /// This function returns no error; the future returns a [`ConnectError`].
    #[expect(clippy::needless_pass_by_value, reason = "configurations are values")]
    pub fn connect_with(
        &self,
        config: ClientConfig,
        address: SocketAddr,
        server_name: &str,
    ) -> Connecting {
        let setup = config.setup().map_err(ConnectError::Tls);
        self.start(setup, address, server_name, Departure::Now)
    }

    /// Connects like [`connect_early`](Self::connect_early), with the given configuration instead of the endpoint's.
    #[expect(clippy::needless_pass_by_value, reason = "configurations are values")]
    pub fn connect_early_with(
        &self,
        config: ClientConfig,
        address: SocketAddr,
        server_name: &str,
    ) -> Connecting {
        let setup = config.setup().map_err(ConnectError::Tls);
        self.start(setup, address, server_name, Departure::WithData)
    }

    fn start(
        &self,
        setup: Result<Setup, ConnectError>,
        address: SocketAddr,
        server_name: &str,
        departure: Departure,
    ) -> Connecting {
        let checked = setup.and_then(|setup| {
            if let Some(reason) = self.shared.failure() {
                return Err(ConnectionError::SocketFailed(reason).into());
            }
            if self.shared.is_closed() {
                return Err(ConnectError::EndpointClosed);
            }
            if address.port() == 0 {
                return Err(ConnectError::PortZero(address));
            }
            if !udp::can_reach(self.local_address(), address) {
                return Err(ConnectError::Address(address));
            }
            check_server_name(server_name)?;
            Ok(setup)
        });
        match checked {
            Ok(setup) => {
                let peer = canonical(address);
                Connecting::start(departure, |promise| {
                    self.shared
                        .connect(setup, peer, server_name.to_owned(), promise);
                })
            }
            Err(error) => Connecting::failed(error),
        }
    }

    /// Returns the system's error if a socket of the endpoint failed permanently, that is, returned
    /// only errors for 10 seconds. The endpoint is then closed: [`Endpoint::accept`] returns
    /// `None`, and connections end with
    /// [`ConnectionError::SocketFailed`](crate::ConnectionError::SocketFailed). Create a new
    /// endpoint.
    pub fn failure(&self) -> Option<SystemError> {
        self.shared.failure()
    }

    /// Returns the address of the socket that connections start from.
    pub fn local_address(&self) -> SocketAddr {
        let nowhere = (Ipv6Addr::UNSPECIFIED, 0).into();
        self.local_addresses().first().copied().unwrap_or(nowhere)
    }

    /// Returns the addresses of all sockets that the endpoint was made with: first
    /// [`Endpoint::local_address`], then those of [`EndpointBuilder::also_bind`].
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        self.shared.addresses()
    }

    /// Moves the endpoint to another address, for clients whose network changes. Returns the address
    /// of the new socket.
    ///
    /// New connections start from there. Existing connections migrate to it as with
    /// [`Connection::migrate`](crate::Connection::migrate), each independently; a connection that
    /// cannot migrate stays where it was, without an error. The old socket is closed once no
    /// connection uses it.
    ///
    /// May be called from any thread.
    ///
    /// # Errors
    /// The address cannot be used, or the endpoint is closed. Each [`EndpointError`] says what to do.
    ///
    /// # Examples
    /// ```no_run
    /// # fn run(client: &hybriq::Endpoint) -> Result<(), hybriq::EndpointError> {
    /// let now_at = client.rebind("[::]:0")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn rebind(&self, address: impl ToSocketAddrs) -> Result<SocketAddr, EndpointError> {
        if self.shared.is_closed() {
            return Err(EndpointError::Closed);
        }
        let sockets = sockets::open(address, &self.ports, self.shared.workers())?;
        let first = sockets.first().map(udp::Opened::local_address);
        let address = first.ok_or(EndpointError::Closed)?;
        self.move_to(sockets, address)
    }

    /// Replaces the configuration of connections that are accepted from now on: certificates, key
    /// exchange, transport. Existing connections keep theirs. An invalid configuration leaves the
    /// old one in place; use [`ServerConfig::check`] to find out beforehand.
    ///
    /// Clients can resume sessions of the old configuration if both configurations share their
    /// [`ServerConfig::tickets`].
    ///
    /// # Errors
    /// The configuration is invalid, the endpoint is closed, or it was made without a server
    /// configuration. Each [`EndpointError`] says what to do.
    ///
    /// # Examples
    /// ```no_run
    /// use hybriq::{Endpoint, EndpointError, Identity, ServerConfig};
    ///
    /// fn reload(server: &Endpoint) -> Result<(), EndpointError> {
    ///     let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
    ///     server.set_server_config(ServerConfig::new(identity).alpn(["echo"]))
    /// }
    /// ```
    #[expect(clippy::needless_pass_by_value, reason = "configurations are values")]
    pub fn set_server_config(&self, config: ServerConfig) -> Result<(), EndpointError> {
        if !self.ports.accepts {
            return Err(EndpointError::NoServerConfig);
        }
        let setup = config.setup()?;
        let tell = |setup: &Setup| !self.shared.is_closed() && self.shared.set_server(setup);
        if self.settings.set_server(setup, tell) {
            Ok(())
        } else {
            Err(EndpointError::Closed)
        }
    }

    /// Stops accepting clients: those already waiting and those that arrive later are refused with
    /// CONNECTION_REFUSED, and [`Endpoint::accept`] returns `None`. Existing connections continue,
    /// and the endpoint may start more. This cannot be undone.
    pub fn stop_accepting(&self) {
        self.shared.shut();
    }

    /// Ends the endpoint gracefully: accepts no more clients, asks the applications of all
    /// connections to finish ([`Connection::draining`](crate::Connection::draining)), waits until
    /// they have closed them, and after the timeout closes the rest with this code and reason.
    /// Returns the number of connections that it closed.
    ///
    /// # Cancel safety
    /// If the future is dropped, the endpoint stays as after [`Endpoint::stop_accepting`], with its
    /// connections asked to finish.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn run(server: hybriq::Endpoint) {
    /// let cut_off = server.drain(std::time::Duration::from_secs(10), 0, b"maintenance").await;
    /// println!("{cut_off} connections were not done");
    /// # }
    /// ```
    pub async fn drain(&self, timeout: Duration, code: u64, reason: &[u8]) -> usize {
        self.stop_accepting();
        self.shared.begin_drain();
        // The outcome is the same: the remaining connections are closed.
        let _ = tokio::time::timeout(timeout, self.idle()).await;
        let before = self.shared.cut_off();
        self.close(code, reason);
        self.idle().await;
        self.shared.cut_off() - before
    }

    /// Closes the endpoint and all its connections, with the application's code: from now on
    /// `accept` returns `None`, `connect` fails, and waiting clients are refused.
    ///
    /// Returns at once; [`Endpoint::idle`] waits until the peers have been notified. Later calls have no
    /// effect. A `code` above 2^62 - 1, the largest that fits on the wire, is lowered to that.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.shared
            .close(wire_code(code), &Bytes::copy_from_slice(reason));
    }

    /// Waits until no connection is left.
    ///
    /// After a connection was closed, the endpoint answers late packets of the peer for three times
    /// the probe timeout (RFC 9000 §10.2), so that a lost CONNECTION_CLOSE is sent again. The wait
    /// ends early if the peer answers with a close or a stateless reset, which a peer may omit (RFC
    /// 9000 §10.2.2), as this implementation does. If the runtime ends earlier, the peer may notice the end only when
    /// its idle timeout expires.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn idle(&self) {
        self.shared.idle().await;
    }

    /// Waits until the endpoint has ended: it was [closed](Self::close) and [no
    /// connection](Self::idle) is left, its sockets are closed, and their ports are free.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn ended(&self) {
        self.shared.ended().await;
    }

    /// Ends a [closed](Self::close) endpoint without waiting any longer for its peers, and closes
    /// its sockets; [`Endpoint::idle`] then completes. A peer whose CONNECTION_CLOSE was lost notices the end when its
    /// idle timeout expires. Has no effect before the endpoint is closed.
    pub fn abandon(&self) {
        self.shared.abandon();
    }

    /// Returns what the endpoint, its workers and all their connections hold, table by table. Names and
    /// numbers of tables may change in any version.
    ///
    /// For tests and diagnosis: each worker looks at all of its connections. Once all connections
    /// are [gone](Self::idle), the census must have [not grown](crate::stats::Census::grown_since)
    /// since the endpoint was new.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn census(&self) -> Census {
        self.shared.census().await
    }

    /// Returns the counters of the endpoint: the sums over its workers as of their last turns.
    pub fn stats(&self) -> EndpointStats {
        self.shared.stats()
    }

    /// Returns the handshakes that ended so far, as client and as server, grouped by outcome: the
    /// group and other properties that make them post-quantum, or who refused whom and why. Each
    /// handshake is counted once. There are only a few entries, in no particular order; their
    /// counts grow as long as the endpoint lives.
    ///
    /// # Examples
    /// ```
    /// /// Share of post-quantum connections, in percent.
    /// fn share(endpoint: &hybriq::Endpoint) -> u64 {
    ///     let (mut all, mut safe) = (0, 0);
    ///     for handshake in endpoint.handshakes() {
    ///         if let hybriq::stats::HandshakeOutcome::Completed { .. } = handshake.outcome {
    ///             all += handshake.count;
    ///             safe += handshake.count * u64::from(handshake.outcome.is_post_quantum());
    ///         }
    ///     }
    ///     100 * safe / all.max(1)
    /// }
    /// ```
    pub fn handshakes(&self) -> Vec<HandshakeCount> {
        self.shared.handshakes()
    }

    /// Returns the counters of each worker as of its last turn.
    pub fn worker_stats(&self) -> Vec<EndpointStats> {
        self.shared.worker_stats()
    }
}
