//! Endpoints and their builder.

use std::{
    fmt,
    net::{Ipv6Addr, SocketAddr, ToSocketAddrs},
    sync::Arc,
};

use bytes::Bytes;
use tokio::runtime::Handle;

use crate::config::TokenKeys;
use crate::{
    config::{ClientConfig, Ids, ServerConfig},
    connecting::{Connecting, check_server_name},
    error::{ConnectError, EndpointError, wire_code},
    incoming::Incoming,
    udp::{self, Socket},
    worker::{EndpointStats, Mailbox, Shared, Worker},
};
use hybriq_proto::config::AddressValidation;
use hybriq_proto::{
    cids::{CidGenerator, ResetKey},
    endpoint::{Setup, StatelessReset},
    limits,
};

/// Largest number of sockets that an endpoint is made with. Connections that migrate need more.
const ADDRESSES: usize = limits::SOCKETS / 2;

/// A UDP socket that accepts connections, starts connections, or both.
///
/// Clones are handles of the same endpoint. When the last handle is dropped, the endpoint accepts no
/// new connections. Existing connections live on, and the socket is closed with the last of them.
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
    shared: Arc<Shared>,
    client: Option<Setup>,
    /// Runtime that the worker runs on.
    runtime: Handle,
}

impl Clone for Endpoint {
    fn clone(&self) -> Self {
        self.shared.on_handle_cloned();
        Self {
            shared: self.shared.clone(),
            client: self.client.clone(),
            runtime: self.runtime.clone(),
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
    /// Makes an endpoint that accepts connections on an address.
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

    /// Makes an endpoint that starts connections from a free port, over IPv6 and IPv4.
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

    /// Returns a builder, for an endpoint that accepts and connects on one socket, a client on a given
    /// address, and other settings.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }

    /// Waits for the next client that wants to connect. Returns `None` once the endpoint is closed.
    ///
    /// At most [`accept_backlog`](EndpointBuilder::accept_backlog) clients wait here. The datagrams of
    /// further clients are dropped until there is room; these clients send again by themselves. An
    /// endpoint without a server configuration never has clients.
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
    /// the handshake up.
    ///
    /// # Errors
    /// This function returns no error; the future returns a [`ConnectError`].
    pub fn connect(&self, address: SocketAddr, server_name: &str) -> Connecting {
        let setup = self.client.clone().ok_or(ConnectError::NoClientConfig);
        self.start(setup, address, server_name)
    }

    /// Connects to a server with the given configuration, in place of the endpoint's.
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
        self.start(
            config.setup().map_err(ConnectError::Tls),
            address,
            server_name,
        )
    }

    fn start(
        &self,
        setup: Result<Setup, ConnectError>,
        address: SocketAddr,
        server_name: &str,
    ) -> Connecting {
        let checked = setup.and_then(|setup| {
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
                let peer = udp::canonical(address);
                Connecting::start(|promise| {
                    self.shared
                        .connect(setup, peer, server_name.to_owned(), promise);
                })
            }
            Err(error) => Connecting::failed(error),
        }
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
    /// New connections start from there. Existing connections migrate to it as by
    /// [`Connection::migrate`](crate::Connection::migrate), each by itself; one that cannot migrate
    /// stays where it was, without an error. The old socket is closed once no connection uses it.
    ///
    /// May be called from any thread: the new socket belongs to the runtime that the endpoint was made
    /// on.
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
        // The socket registers with this runtime, whose I/O driver `bind` has used before.
        let runtime = self.runtime.enter();
        let socket = bind_first(address, self.shared.options())?;
        drop(runtime);
        let address = socket.local_address();
        if self.shared.rebind(socket) {
            Ok(address)
        } else {
            Err(EndpointError::Closed)
        }
    }

    /// Closes all connections with the application's code, and the endpoint: from now on `accept`
    /// returns `None`, `connect` fails, and waiting clients are refused.
    ///
    /// Returns at once; [`Endpoint::idle`] waits until the peers were told. Later calls have no
    /// effect. A `code` above 2^62 - 1, the largest that fits on the wire, is lowered to it.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.shared
            .close(wire_code(code), &Bytes::copy_from_slice(reason));
    }

    /// Waits until no connection is left.
    ///
    /// After a connection was closed, the endpoint answers late packets of the peer for three times
    /// the probe timeout (RFC 9000 §10.2), so that a lost CONNECTION_CLOSE is sent again. If the
    /// runtime ends earlier, the peer may notice the end only by its idle timeout.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn idle(&self) {
        self.shared.idle().await;
    }

    /// Returns the counters of the endpoint, as of its worker's last turn.
    pub fn stats(&self) -> EndpointStats {
        self.shared.stats()
    }
}

/// Builder of an [`Endpoint`]. Start from [`Endpoint::builder`].
///
/// # Examples
/// ```no_run
/// use hybriq::{ClientConfig, Endpoint, Identity, ServerConfig};
///
/// # fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
/// let both = Endpoint::builder()
///     .server(ServerConfig::new(identity).alpn(["echo"]))
///     .client(ClientConfig::new().alpn(["echo"]))
///     .bind("[::]:4433")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct EndpointBuilder {
    server: Option<ServerConfig>,
    client: Option<ClientConfig>,
    workers: usize,
    socket: udp::Options,
    token_keys: Option<TokenKeys>,
    address_validation: AddressValidation,
    also: Vec<SocketAddr>,
    accept_backlog: usize,
    ids: Ids,
}

impl Default for EndpointBuilder {
    fn default() -> Self {
        Self {
            server: None,
            client: None,
            workers: 1,
            socket: udp::Options::default(),
            token_keys: None,
            address_validation: AddressValidation::default(),
            also: Vec::new(),
            accept_backlog: limits::WAITING_INCOMING,
            ids: Ids::default(),
        }
    }
}

impl EndpointBuilder {
    /// Sets the configuration that connections are accepted with. Default: none; no connections are
    /// accepted.
    pub fn server(mut self, config: ServerConfig) -> Self {
        self.server = Some(config);
        self
    }

    /// Sets the configuration that connections are started with. Default: none; only
    /// [`Endpoint::connect_with`] starts connections.
    pub fn client(mut self, config: ClientConfig) -> Self {
        self.client = Some(config);
        self
    }

    /// Sets the number of tasks and sockets that share the work. Default: 1, and nothing else is
    /// possible for now.
    pub fn workers(mut self, count: usize) -> Self {
        self.workers = count;
        self
    }

    /// Binds another socket, at most 7, for a server on several networks or with a preferred address
    /// (RFC 9000 §9.6). Connections are accepted on all sockets, and start from the first. Default:
    /// none.
    ///
    /// # Examples
    /// ```no_run
    /// use hybriq::{Endpoint, Identity, ServerConfig};
    ///
    /// # fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
    /// let server = Endpoint::builder()
    ///     .server(ServerConfig::new(identity).alpn(["echo"]))
    ///     .also_bind("198.51.100.7:4433".parse()?)
    ///     .bind("192.0.2.7:4433")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn also_bind(mut self, address: SocketAddr) -> Self {
        self.also.push(address);
        self
    }

    /// Sends each datagram by its own system call. For network drivers whose segmentation offload
    /// (GSO) is broken, and for packet captures on the sending machine.
    pub fn without_gso(mut self) -> Self {
        self.socket.gso = false;
        self
    }

    /// Sets the number of bytes that the system is asked to buffer for each socket and direction.
    /// Default: 8 MiB. The system has limits of its own (on Linux `net.core.rmem_max` and
    /// `wmem_max`).
    pub fn socket_buffers(mut self, bytes: usize) -> Self {
        self.socket.buffer_size = bytes;
        self
    }

    /// Sets the number of clients that may wait to be [accepted](Endpoint::accept), 1 to 4096.
    /// Default: 4096. The datagrams of further clients are dropped; these clients try again a little
    /// later.
    pub fn accept_backlog(mut self, clients: usize) -> Self {
        self.accept_backlog = clients;
        self
    }

    /// Sets the keys of address validation tokens, which several servers of one service share.
    /// Default: random keys of this endpoint.
    ///
    /// # Examples
    /// ```no_run
    /// use hybriq::{Endpoint, Identity, ServerConfig, TokenKeys};
    ///
    /// # fn run(secret: [u8; 32]) -> Result<(), Box<dyn std::error::Error>> {
    /// # let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
    /// // The same on every machine of the service.
    /// let keys = TokenKeys::from_secret(secret);
    /// let server = Endpoint::builder()
    ///     .server(ServerConfig::new(identity).alpn(["echo"]))
    ///     .token_keys(keys)
    ///     .bind("[::]:4433")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn token_keys(mut self, keys: TokenKeys) -> Self {
        self.token_keys = Some(keys);
        self
    }

    /// Sets when clients must prove their address before the server does any work for them. Default:
    /// [`AddressValidation::Adaptive`].
    ///
    /// # Examples
    /// ```no_run
    /// use hybriq::{AddressValidation, Endpoint, Identity, ServerConfig};
    ///
    /// # fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// # let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
    /// let server = Endpoint::builder()
    ///     .server(ServerConfig::new(identity))
    ///     .address_validation(AddressValidation::Always)
    ///     .bind("[::]:4433")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn address_validation(mut self, policy: AddressValidation) -> Self {
        self.address_validation = policy;
        self
    }

    /// Sets the key of stateless resets (RFC 9000 §10.3). Use the same key after a restart, and on
    /// machines that may receive each other's packets. Default: a random key.
    ///
    /// # Examples
    /// ```no_run
    /// use hybriq::{Endpoint, Identity, ResetKey, ServerConfig};
    ///
    /// # fn run(secret: [u8; 32]) -> Result<(), Box<dyn std::error::Error>> {
    /// # let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
    /// // From a file, so that peers learn at once that this server was restarted.
    /// let key = ResetKey::from_secret(secret);
    /// let server = Endpoint::builder()
    ///     .server(ServerConfig::new(identity).alpn(["echo"]))
    ///     .reset_key(key)
    ///     .bind("[::]:4433")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn reset_key(mut self, key: ResetKey) -> Self {
        self.ids.reset_key = Some(key);
        self
    }

    /// Sends no stateless resets for packets of unknown connections; their peers wait for their idle
    /// timeout. For machines that may receive packets of connections on another machine.
    pub fn without_stateless_reset(mut self) -> Self {
        self.ids.resets = StatelessReset::Off;
        self
    }

    /// Sets the generator of connection ids. Default: [`RandomCids`](crate::RandomCids) of 8 bytes.
    /// Use [`QuicLb`](crate::QuicLb) behind a load balancer that routes by connection id.
    ///
    /// # Examples
    /// ```
    /// use hybriq::{Endpoint, RandomCids};
    ///
    /// let builder = Endpoint::builder().cid_generator(RandomCids::of_len(20));
    /// ```
    pub fn cid_generator(mut self, generator: impl CidGenerator + 'static) -> Self {
        self.ids.generator = Arc::new(generator);
        self
    }

    /// Uses empty connection ids for packets to this endpoint, which saves 8 bytes in each of them.
    /// Default: 8 bytes.
    ///
    /// Only for an endpoint that accepts no connections. Packets then belong to a connection by the
    /// address they come from (RFC 9000 §5.1): a second connection to the same address fails with
    /// [`ConnectError::AddressInUse`], and a connection ends if the server's address changes.
    pub fn zero_length_cids(mut self) -> Self {
        self.ids.without_length();
        self
    }

    /// Opens the sockets and starts the endpoint on the tokio runtime of the caller.
    ///
    /// If the address resolves to several, the first one that can be bound is used.
    ///
    /// # Errors
    /// A setting or an address cannot be used, the TLS configuration is invalid, or there is no tokio
    /// runtime. Each [`EndpointError`] says what to do.
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    pub fn bind(self, address: impl ToSocketAddrs) -> Result<Endpoint, EndpointError> {
        let runtime = Handle::try_current().map_err(|_| EndpointError::NoRuntime)?;
        // Panics here without a time driver, not later in the worker's task.
        drop(tokio::time::sleep(std::time::Duration::ZERO));
        if self.workers != 1 {
            return Err(EndpointError::Workers(self.workers));
        }
        self.ids.check(self.server.as_ref())?;
        let setups = self.setups()?;
        if self.also.len() >= ADDRESSES {
            return Err(EndpointError::Addresses(self.also.len() + 1));
        }
        let mut sockets = vec![bind_first(address, self.socket)?];
        for &address in &self.also {
            sockets.push(Socket::bind(address, self.socket)?);
        }
        let (endpoint, worker) = self.on_sockets(sockets, setups, runtime.clone());
        runtime.spawn(worker.run());
        Ok(endpoint)
    }

    /// Builds the TLS providers of the configurations.
    pub(crate) fn setups(&self) -> Result<Setups, EndpointError> {
        Ok(Setups {
            server: self.server.as_ref().map(ServerConfig::setup).transpose()?,
            client: self.client.as_ref().map(ClientConfig::setup).transpose()?,
        })
    }

    /// Makes an endpoint on these sockets, and its worker, which is to run.
    pub(crate) fn on_sockets(
        mut self,
        sockets: Vec<Socket>,
        setups: Setups,
        runtime: Handle,
    ) -> (Endpoint, Worker) {
        self.ids.settle();
        let Setups { server, client } = setups;
        let addresses = sockets.iter().map(Socket::local_address).collect();

        let mailbox = Mailbox::new();
        let shared = Shared::new([mailbox.clone()].into(), addresses, self.socket);
        let sockets = (sockets, self.socket);
        let mut worker = Worker::new(0, shared.clone(), mailbox, sockets, server)
            .with_ids(&self.ids, self.workers);
        let token_keys = self.token_keys.unwrap_or_else(TokenKeys::random);
        worker.set_address_validation(token_keys, self.address_validation);
        worker.set_accept_backlog(self.accept_backlog);
        let endpoint = Endpoint {
            shared,
            client,
            runtime,
        };
        (endpoint, worker)
    }
}

/// What an endpoint accepts and starts connections with.
#[derive(Clone)]
pub(crate) struct Setups {
    server: Option<Setup>,
    client: Option<Setup>,
}

fn bind_first(address: impl ToSocketAddrs, options: udp::Options) -> Result<Socket, EndpointError> {
    let nothing = || {
        EndpointError::Address(std::io::Error::new(
            std::io::ErrorKind::NotFound,
            "the name has no addresses",
        ))
    };
    let mut failed = None;
    for address in address.to_socket_addrs().map_err(EndpointError::Address)? {
        match Socket::bind(address, options) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(nothing))
}
