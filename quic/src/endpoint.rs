//! The handle of an endpoint, and its builder.

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

/// Sockets that an endpoint may be made with: connections that move need some more.
const ADDRESSES: usize = limits::SOCKETS / 2;

/// A UDP socket that accepts connections, starts connections, or both.
///
/// Clones are the same endpoint. When the last one is dropped nobody new is accepted, the
/// connections there are live on, and the socket is closed with the last of them.
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
}

impl Clone for Endpoint {
    fn clone(&self) -> Self {
        self.shared.on_handle_cloned();
        Self {
            shared: self.shared.clone(),
            client: self.client.clone(),
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
    /// Accepts connections on an address; `[::]:4433` takes IPv6 and IPv4, port 0 picks a free one.
    ///
    /// Must be called inside a tokio runtime, on which it runs from then on.
    ///
    /// # Errors
    /// Each [`EndpointError`] says how to mend it.
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    pub fn server(
        address: impl ToSocketAddrs,
        config: ServerConfig,
    ) -> Result<Self, EndpointError> {
        Self::builder().server(config).bind(address)
    }

    /// Starts connections from a free port, over IPv6 and IPv4.
    ///
    /// Must be called inside a tokio runtime, on which it runs from then on.
    ///
    /// # Errors
    /// Each [`EndpointError`] says how to mend it.
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    pub fn client(config: ClientConfig) -> Result<Self, EndpointError> {
        Self::builder()
            .client(config)
            .bind((Ipv6Addr::UNSPECIFIED, 0))
    }

    /// All the choices: accept and connect on one socket, another address for a client, no GSO.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }

    /// The next client that wants to connect; `None` once the endpoint is closed.
    ///
    /// Up to 4,096 of them wait here; those beyond are ignored until there is room, and try again
    /// on their own. An endpoint without a server configuration never gets any.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn accept(&self) -> Option<Incoming> {
        let (worker, incoming) = self.shared.accept().await?;
        Some(Incoming::new(self.shared.clone(), worker, incoming))
    }

    /// Connects to a server, with the endpoint's client configuration.
    ///
    /// `server_name` is the name that its certificate must carry: a DNS name, or an IP address.
    /// The handshake starts at once, not when the future is first polled. Dropping the future
    /// gives it up.
    ///
    /// # Errors
    /// The future's [`ConnectError`].
    pub fn connect(&self, address: SocketAddr, server_name: &str) -> Connecting {
        let setup = self.client.clone().ok_or(ConnectError::NoClientConfig);
        self.start(setup, address, server_name)
    }

    /// Connects to a server, with a configuration of its own.
    ///
    /// The TLS provider is built at the first use of a configuration, which takes the time to read
    /// certificates; keep the configuration, or clones of it, for more connections.
    ///
    /// # Errors
    /// The future's [`ConnectError`].
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

    /// Where the socket is bound to that connections start from.
    pub fn local_address(&self) -> SocketAddr {
        let nowhere = (Ipv6Addr::UNSPECIFIED, 0).into();
        self.local_addresses().first().copied().unwrap_or(nowhere)
    }

    /// Where all sockets are bound to that it was made with: the first as
    /// [`Endpoint::local_address`], then those of [`EndpointBuilder::also_bind`].
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        self.shared.addresses()
    }

    /// Moves to another address: new connections start from there, and those there are migrate to
    /// it as by [`Connection::migrate`](crate::Connection::migrate), each by itself and without an
    /// error if it cannot. For clients whose network changes. Returns where the new socket is bound
    /// to; the one before is closed when no connection uses it any more.
    ///
    /// # Errors
    /// Each [`EndpointError`] says how to mend it.
    ///
    /// # Examples
    /// ```no_run
    /// # fn run(client: &hybriq::Endpoint) -> Result<(), hybriq::EndpointError> {
    /// let now_at = client.rebind("[::]:0")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn rebind(&self, address: impl ToSocketAddrs) -> Result<SocketAddr, EndpointError> {
        Handle::try_current().map_err(|_| EndpointError::NoRuntime)?;
        let socket = bind_first(address, self.shared.options())?;
        let address = socket.local_address();
        if self.shared.rebind(socket) {
            Ok(address)
        } else {
            Err(EndpointError::Closed)
        }
    }

    /// Closes all connections with the application's code and takes no new ones: `accept` returns
    /// `None`, `connect` fails, clients that wait are refused.
    ///
    /// Returns at once; [`Endpoint::idle`] waits until the peers were told. The first call counts.
    /// `code` is at most 2^62 - 1, larger ones are lowered to it.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.shared
            .close(wire_code(code), &Bytes::copy_from_slice(reason));
    }

    /// Waits until no connection is left.
    ///
    /// A connection is left until it is drained: after it was closed the endpoint answers stray
    /// packets of the peer for three times the probe timeout (RFC 9000 §10.2), so that a lost
    /// CONNECTION_CLOSE is sent again. Ending the runtime earlier may leave the peer to its idle
    /// timeout.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn idle(&self) {
        self.shared.idle().await;
    }

    /// What the endpoint did so far, as of its last turn.
    pub fn stats(&self) -> EndpointStats {
        self.shared.stats()
    }
}

/// Makes an [`Endpoint`]. Start from [`Endpoint::builder`].
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
    /// Accepts connections with this. Default: none are accepted.
    pub fn server(mut self, config: ServerConfig) -> Self {
        self.server = Some(config);
        self
    }

    /// Starts connections with this. Default: none, so that only [`Endpoint::connect_with`] starts
    /// any.
    pub fn client(mut self, config: ClientConfig) -> Self {
        self.client = Some(config);
        self
    }

    /// How many tasks and sockets share the work. Default 1, and for now nothing else.
    pub fn workers(mut self, count: usize) -> Self {
        self.workers = count;
        self
    }

    /// Binds a further socket, at most 7: for a server on several networks, or with a preferred
    /// address (RFC 9000 §9.6). Connections are accepted on each, and start from the first. Default:
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

    /// Sends every datagram by a call of its own. For network drivers that get trains wrong, and
    /// for packet captures on the sending machine.
    pub fn without_gso(mut self) -> Self {
        self.socket.gso = false;
        self
    }

    /// Bytes the system is asked to buffer for the socket, each way. Default 8 MiB; the system has
    /// limits of its own (on Linux `net.core.rmem_max` and `wmem_max`).
    pub fn socket_buffers(mut self, bytes: usize) -> Self {
        self.socket.buffer_size = bytes;
        self
    }

    /// How many clients may wait to be [accepted](Endpoint::accept), 1 to 4096. Default 4096. What
    /// others send is dropped, so that they try again a little later.
    pub fn accept_backlog(mut self, clients: usize) -> Self {
        self.accept_backlog = clients;
        self
    }

    /// The keys of address validation tokens, for servers that clients take for one. Default:
    /// random ones of this endpoint's own.
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

    /// When clients have to prove that they receive at their address before a server does anything
    /// for them. Default: [`AddressValidation::Adaptive`].
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

    /// The key of stateless resets (RFC 9000 §10.3): the same on machines that may get one another's
    /// packets, and after a restart. Default: a random one.
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

    /// Answers no packets of connections that are not here. Their peers then wait for their idle
    /// timeout. For machines that may get packets of connections which live on another.
    pub fn without_stateless_reset(mut self) -> Self {
        self.ids.resets = StatelessReset::Off;
        self
    }

    /// How connection ids are made. Default: [`RandomCids`](crate::RandomCids) of 8 bytes; there is
    /// [`QuicLb`](crate::QuicLb) behind a load balancer that routes by them.
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

    /// Does without connection ids of its own, which saves 8 bytes in every packet that comes.
    /// Default: it has some.
    ///
    /// Only for an endpoint that accepts no connections, and has at most one connection to each
    /// address: packets are told apart by where they come from (RFC 9000 §5.1). A second one fails
    /// with [`ConnectError::AddressInUse`]. Connections don't survive a change of the server's
    /// address.
    pub fn zero_length_cids(mut self) -> Self {
        self.ids.without_length();
        self
    }

    /// Opens the socket and starts to work, on the tokio runtime of the caller.
    ///
    /// Where the address resolves to several, the first that works is taken.
    ///
    /// # Errors
    /// Each [`EndpointError`] says how to mend it.
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    pub fn bind(mut self, address: impl ToSocketAddrs) -> Result<Endpoint, EndpointError> {
        let runtime = Handle::try_current().map_err(|_| EndpointError::NoRuntime)?;
        // Panics here without a time driver, not later in the worker's task.
        drop(tokio::time::sleep(std::time::Duration::ZERO));
        if self.workers != 1 {
            return Err(EndpointError::Workers(self.workers));
        }
        self.ids.check(self.server.as_ref())?;
        self.ids.settle();
        let server = self.server.as_ref().map(ServerConfig::setup).transpose()?;
        let client = self.client.as_ref().map(ClientConfig::setup).transpose()?;
        if self.also.len() >= ADDRESSES {
            return Err(EndpointError::Addresses(self.also.len() + 1));
        }
        let mut sockets = vec![bind_first(address, self.socket)?];
        for address in self.also {
            sockets.push(Socket::bind(address, self.socket)?);
        }
        let addresses = sockets.iter().map(Socket::local_address).collect();

        let mailbox = Mailbox::new();
        let shared = Shared::new([mailbox.clone()].into(), addresses, self.socket);
        let sockets = (sockets, self.socket);
        let mut worker = Worker::new(0, shared.clone(), mailbox, sockets, server)
            .with_ids(&self.ids, self.workers);
        let token_keys = self.token_keys.unwrap_or_else(TokenKeys::random);
        worker.set_address_validation(token_keys, self.address_validation);
        worker.set_accept_backlog(self.accept_backlog);
        runtime.spawn(worker.run());
        Ok(Endpoint { shared, client })
    }
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
