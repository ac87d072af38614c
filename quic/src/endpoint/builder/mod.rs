//! Builder of endpoints.

mod binding;

use std::{net::SocketAddr, sync::Arc};

use hybriq_proto::{
    config::AddressValidation,
    endpoint::StatelessReset,
    owners::cids::{CidGenerator, ResetKey},
    wire::limits,
};

use crate::{
    config::{
        ClientConfig, FleetKeys, Ids, Limits, NetworkRate, Placement, Prefixes, ServerConfig,
        TokenKeys, Workers,
    },
    udp,
    worker::Watcher,
};

#[cfg(test)]
pub(crate) use self::binding::Setups;

/// Builder of an [`Endpoint`](crate::Endpoint). Start from
/// [`Endpoint::builder`](crate::Endpoint::builder).
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
    workers: Workers,
    placement: Placement,
    steering: Steered,
    socket: udp::Options,
    pub(super) token_keys: Option<TokenKeys>,
    address_validation: AddressValidation,
    also: Vec<SocketAddr>,
    accept_backlog: usize,
    limits: Limits,
    pub(super) ids: Ids,
    watcher: Watcher,
    name: Option<Arc<str>>,
}

impl Default for EndpointBuilder {
    fn default() -> Self {
        Self {
            server: None,
            client: None,
            workers: Workers::Exactly(1),
            placement: Placement::default(),
            steering: Steered::ById,
            socket: udp::Options::default(),
            token_keys: None,
            address_validation: AddressValidation::default(),
            also: Vec::new(),
            accept_backlog: limits::WAITING_INCOMING,
            limits: Limits::default(),
            ids: Ids::default(),
            watcher: Watcher::default(),
            name: None,
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
    /// [`Endpoint::connect_with`](crate::Endpoint::connect_with) starts connections.
    pub fn client(mut self, config: ClientConfig) -> Self {
        self.client = Some(config);
        self
    }

    /// Sets the number of workers. Default: 1.
    ///
    /// Each worker has its own socket on the endpoint's address. On Linux the system finds the
    /// worker of a datagram by its connection id. Where it cannot, it chooses by the addresses, and
    /// a worker passes on any datagram that belongs to another, for example after a client has
    /// moved.
    ///
    /// Connections start on the workers in turn. An endpoint that accepts none, and is bound to port
    /// 0, gives each worker its own port.
    ///
    /// # Examples
    /// ```no_run
    /// use hybriq::{Endpoint, Identity, ServerConfig, Workers, fleet::Placement};
    ///
    /// # fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// # let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
    /// let server = Endpoint::builder()
    ///     .server(ServerConfig::new(identity).alpn(["echo"]))
    ///     .workers(Workers::PerCore)
    ///     .placement(Placement::PinnedThreads)
    ///     .bind("[::]:4433")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn workers(mut self, workers: impl Into<Workers>) -> Self {
        self.workers = workers.into();
        self
    }

    /// Sets the name of the endpoint in metrics and traces, which distinguishes it from others in
    /// the process. Default: none.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets where the workers run. Default: on the tokio runtime of the caller.
    pub const fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Lets the system choose the worker of a datagram by its addresses instead of its connection
    /// id.
    pub const fn without_steering(mut self) -> Self {
        self.steering = Steered::ByAddress;
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

    /// Sends each datagram in its own system call. For network drivers whose segmentation offload
    /// (GSO) is broken, and for packet captures on the sending machine.
    pub fn without_gso(mut self) -> Self {
        self.socket.gso = false;
        self
    }

    /// Sets how many bytes the system is asked to buffer for each socket and direction. Default: 8
    /// MiB. The system has its own limits (on Linux `net.core.rmem_max` and `wmem_max`).
    pub fn socket_buffers(mut self, bytes: usize) -> Self {
        self.socket.buffer_size = bytes;
        self
    }

    /// Sets the number of clients that may wait to be [accepted](crate::Endpoint::accept), 1 to
    /// 4096; values outside this range are clamped. Default: 4096. The datagrams of further clients
    /// are dropped; these clients try again a little later.
    pub fn accept_backlog(mut self, clients: usize) -> Self {
        self.accept_backlog = clients;
        self
    }

    /// Sets the largest number of connections at once, including those that the endpoint starts and
    /// those that are closing. Further clients are refused with CONNECTION_REFUSED. Default: no
    /// limit.
    ///
    /// Clients must prove their address by a Retry once handshakes use half of the free
    /// connections; only then are clients refused, so that nobody can use up the connections with
    /// forged addresses.
    pub const fn max_connections(mut self, connections: usize) -> Self {
        self.limits.connections = Some(connections);
        self
    }

    /// Sets how many clients may be in their handshake at once, over all workers. Default: no
    /// limit.
    ///
    /// Above half of this limit, clients must prove their address by a Retry, so that nobody can use it
    /// up with forged addresses. Further clients are refused with CONNECTION_REFUSED. With several
    /// workers the count of each worker is from its last turn, so the limit may be exceeded for a
    /// moment.
    pub const fn max_handshakes(mut self, clients: usize) -> Self {
        self.limits.handshakes = Some(clients);
        self
    }

    /// Sets the largest rate at which the clients of one network may connect: `per_second`, and
    /// `burst` at once after a pause, each at least 1. A network is a /24 of IPv4 or a /56 of IPv6,
    /// unless [`network_prefixes`](Self::network_prefixes) says otherwise. Default: no limit.
    ///
    /// Beyond the rate a client must prove its address by a Retry, so that nobody can use up the
    /// rate of others with forged addresses. Clients with proven addresses have a separate rate;
    /// beyond that they are refused with CONNECTION_REFUSED. It takes 256 KiB of memory. Networks
    /// may share one rate by chance, which becomes likely with thousands of networks at once.
    pub const fn max_rate_per_network(mut self, per_second: u32, burst: u32) -> Self {
        self.limits.per_network = Some(NetworkRate { per_second, burst });
        self
    }

    /// Sets the lengths in bits of the prefixes that the addresses of one network share, for
    /// [`max_rate_per_network`](Self::max_rate_per_network): up to 32 for IPv4 and 128 for IPv6.
    /// Default: 24 and 56, the prefixes that one customer of a provider typically has.
    pub const fn network_prefixes(mut self, v4: u8, v6: u8) -> Self {
        self.limits.prefixes = Prefixes { v4, v6 };
        self
    }

    /// Sets the keys of address validation tokens, which several servers of one service share.
    /// Default: random keys for this endpoint.
    ///
    /// # Examples
    /// ```no_run
    /// use hybriq::{Endpoint, Identity, ServerConfig, fleet::TokenKeys};
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

    /// Sets the keys that the processes and machines of one service share: the [keys of
    /// tokens](Self::token_keys) and the [key of resets](Self::reset_key). Default: random keys for
    /// this endpoint.
    pub fn fleet_keys(self, keys: &FleetKeys) -> Self {
        self.token_keys(keys.token_keys())
            .reset_key(keys.reset_key())
    }

    /// Sets when clients must prove their address before the server does any work for them. Default:
    /// [`AddressValidation::Adaptive`].
    ///
    /// # Examples
    /// ```no_run
    /// use hybriq::{Endpoint, Identity, ServerConfig, fleet::AddressValidation};
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
    /// use hybriq::{Endpoint, Identity, ServerConfig, fleet::ResetKey};
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

    /// Sends no stateless resets for packets of unknown connections; their peers wait for their
    /// idle timeout. For machines that may receive packets of connections held by another machine.
    pub fn without_stateless_reset(mut self) -> Self {
        self.ids.resets = StatelessReset::Off;
        self
    }

    /// Sets the generator of connection ids. Default: [`RandomCids`](crate::fleet::RandomCids) of 8 bytes.
    /// Use [`QuicLb`](crate::fleet::QuicLb) behind a load balancer that routes by connection id.
    ///
    /// # Examples
    /// ```
    /// use hybriq::{Endpoint, fleet::RandomCids};
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
    /// [`AddressInUse`](crate::ConnectError::AddressInUse), and a connection ends if the server's
    /// address changes.
    pub fn zero_length_cids(mut self) -> Self {
        self.ids.without_length();
        self
    }

    /// Logs the connections of the endpoint for tools such as qvis: see [`qlog`](crate::qlog).
    /// Default: none. Connections whose [`TransportConfig`](crate::TransportConfig) has its own
    /// sampler keep that one.
    #[cfg(feature = "qlog")]
    pub fn qlog(mut self, qlog: &crate::qlog::Qlog) -> Self {
        self.watcher = Watcher(Some(Arc::new(qlog.clone())));
        self
    }
}

/// How the system chooses the worker of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Steered {
    /// By its connection id.
    ById,
    /// By its addresses.
    ByAddress,
}
