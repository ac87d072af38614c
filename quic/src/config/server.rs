//! The configuration of servers.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use hybriq_proto::Direction;
use hybriq_proto::config::TransportConfig;
use hybriq_proto::endpoint::{AddressProof, FirstFlight, Setup, WorstCaseMemory};
use hybriq_tls::{
    Backend, CertificateCompression, ChainChoice, ClientAuth, ConfigError, ConfigErrors,
    EarlyDataPolicy, Identity, KeyExchange, KeyLog, Profile, Provider, ServerOptions, Side, Suite,
    Tickets,
};

use super::{ClientConfig, check_profile, check_provider};

/// Configuration of a server. Start from [`ServerConfig::new`].
///
/// Clones share the TLS provider, which is built from the options at first use.
///
/// # Examples
/// ```no_run
/// use hybriq::{Identity, KeyExchange, ServerConfig};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
/// let config = ServerConfig::new(identity)
///     .alpn(["echo"])
///     .key_exchange_for("secret.example", KeyExchange::RequirePostQuantum);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ServerConfig {
    tls: ServerOptions,
    backend: Backend,
    provider: Option<Arc<dyn Provider>>,
    transport: TransportConfig,
    commitment: Option<Duration>,
    built: Arc<OnceLock<Setup>>,
}

impl ServerConfig {
    /// Creates a configuration that prefers post-quantum groups, uses the default provider, accepts
    /// no ALPN and asks for no client certificates.
    pub fn new(identity: Identity) -> Self {
        Self {
            tls: ServerOptions::new(identity),
            backend: Backend::default(),
            provider: None,
            transport: TransportConfig::new(),
            commitment: None,
            built: Arc::default(),
        }
    }

    /// Sets the application protocols to accept, first choice first. A client that offers none of
    /// them is refused with TLS alert 120 (RFC 9001 §8.1). Default: none, for clients that do not
    /// use ALPN either.
    #[must_use]
    pub fn alpn(self, protocols: impl IntoIterator<Item: AsRef<[u8]>>) -> Self {
        self.with_tls(|tls| tls.alpn(protocols))
    }

    /// Sets the key-exchange groups to accept. Default: [`KeyExchange::PreferPostQuantum`].
    #[must_use]
    pub fn key_exchange(self, policy: KeyExchange) -> Self {
        self.with_tls(|tls| tls.key_exchange(policy))
    }

    /// Sets the key-exchange groups to accept from clients that ask for this server name. Default:
    /// the same groups for every name.
    #[must_use]
    pub fn key_exchange_for(self, server_name: impl Into<String>, policy: KeyExchange) -> Self {
        self.with_tls(|tls| tls.key_exchange_for(server_name, policy))
    }

    /// Adds a certificate for clients whose server name matches it. Default: none; the first
    /// certificate serves every other name.
    #[must_use]
    pub fn add_identity(self, identity: Identity) -> Self {
        self.with_tls(|tls| tls.add_identity(identity))
    }

    /// Sets which client certificates are asked for. Default: [`ClientAuth::None`].
    #[must_use]
    pub fn client_auth(self, client_auth: ClientAuth) -> Self {
        self.with_tls(|tls| tls.client_auth(client_auth))
    }

    /// Sets the cipher suites to accept, first choice first. Default: AES-128-GCM, AES-256-GCM,
    /// ChaCha20-Poly1305; s2n-tls has fixed lists and refuses others.
    #[must_use]
    pub fn suites(self, suites: Vec<Suite>) -> Self {
        self.with_tls(|tls| tls.suites(suites))
    }

    /// Sets the algorithms of certificate compression (RFC 8879), first choice first, for our
    /// certificates and for those of the peer. Default: none. Each needs the cargo feature of its name,
    /// `brotli` or `zlib`; s2n-tls has none and refuses the option.
    #[must_use]
    pub fn certificate_compression(
        self,
        algorithms: impl IntoIterator<Item = CertificateCompression>,
    ) -> Self {
        self.with_tls(|tls| tls.certificate_compression(algorithms))
    }

    /// Sets how to choose among several certificates that suit a client. Default:
    /// [`ChainChoice::First`].
    #[must_use]
    pub fn chain_choice(self, choice: ChainChoice) -> Self {
        self.with_tls(|tls| tls.chain_choice(choice))
    }

    /// Sends the server's own certificates alone, without their intermediates, to clients that
    /// already have them: see [`Trust::intermediates`](hybriq_tls::Trust::intermediates). Default:
    /// whole chains.
    #[must_use]
    pub fn leave_out_intermediates(self) -> Self {
        self.with_tls(ServerOptions::leave_out_intermediates)
    }

    /// Does the same only for connections that agree on one of these application protocols. Default:
    /// none.
    #[must_use]
    pub fn leave_out_intermediates_for(
        self,
        protocols: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Self {
        self.with_tls(|tls| tls.leave_out_intermediates_for(protocols))
    }

    /// Sets the rules of an authority for groups, suites, certificates and 0-RTT, which bind this server
    /// and its clients. Default: [`Profile::Default`]. [`ServerConfig::check`] names every option that
    /// the profile forbids.
    ///
    /// # Examples
    /// ```no_run
    /// use hybriq::{Identity, Profile, ServerConfig};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let identity = Identity::from_pem_files("ml-dsa-87.pem", "key.pem")?;
    /// let config = ServerConfig::new(identity).profile(Profile::Cnsa2);
    /// config.check()?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn profile(self, profile: Profile) -> Self {
        self.with_tls(|tls| tls.profile(profile))
    }

    /// Promises clients that the certificates of this server stay post-quantum for this time after
    /// each handshake, in whole seconds up to 2^32 − 1; clients honour at most a year. Clients with
    /// the downgrade alarm ([`ClientConfig::continuity`](crate::ClientConfig::continuity)) refuse
    /// the connection or report it if the server breaks the promise. Zero withdraws it. Default: no
    /// promise.
    ///
    /// Begin with a day, and renew certificates in time. All certificates of this configuration
    /// must be post-quantum, keys and signatures, up to the last one of the chain that is sent:
    /// [`ServerConfig::check`] names one that is not, and the server does not start.
    ///
    /// The time goes into a transport parameter of this library, which only its clients read: no TLS
    /// library here can send the extension of draft-sheffer-tls-pqc-continuity.
    #[must_use]
    pub fn post_quantum_commitment(mut self, time: Duration) -> Self {
        self.commitment = Some(time);
        self.built = Arc::default();
        self
    }

    /// Sets where the connections' secrets are logged. Default: nowhere.
    ///
    /// # Security
    /// Whoever reads the log can read the connections.
    #[must_use]
    pub fn key_log(self, key_log: KeyLog) -> Self {
        self.with_tls(|tls| tls.key_log(key_log))
    }

    /// Issues no session tickets, so that every handshake is a full one.
    #[must_use]
    pub fn without_tickets(self) -> Self {
        self.with_tls(ServerOptions::without_tickets)
    }

    /// Recognises the session tickets of every configuration that has a clone of this value. Use it
    /// for a configuration that replaces another, or that
    /// [`Incoming::accept_with`](crate::Incoming::accept_with) uses for some clients. Default:
    /// recognises only its own tickets.
    ///
    /// With rustls, 0-RTT data must be on in all of these configurations or off in all: otherwise a
    /// ticket from one kind leads to a full handshake with the other.
    #[must_use]
    pub fn tickets(self, tickets: Tickets) -> Self {
        self.with_tls(|tls| tls.tickets(tickets))
    }

    /// Accepts 0-RTT data of returning clients, which saves a round trip. Default: off. rustls
    /// only.
    ///
    /// # Security
    /// An attacker can replay 0-RTT data. This server accepts each ticket once, but forgets that
    /// after a restart, and other servers do not know about it. See
    /// [`RecvStream::is_early`](crate::RecvStream::is_early).
    ///
    /// # Examples
    /// ```no_run
    /// use hybriq::{Connecting, Endpoint, Identity, ServerConfig};
    ///
    /// # fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
    /// let config = ServerConfig::new(identity).alpn(["echo"]).accept_early_data();
    /// let server = Endpoint::server("[::]:4433", config)?;
    /// # Ok(())
    /// # }
    ///
    /// async fn serve(connecting: Connecting) -> Result<(), Box<dyn std::error::Error>> {
    ///     // Requests come before the handshake is over.
    ///     let early = connecting.early().await.map_err(|_| "no attempt")?;
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
    #[must_use]
    pub fn accept_early_data(self) -> Self {
        self.with_tls(|tls| tls.early_data(EarlyDataPolicy::On))
    }

    /// Sets the TLS library. Default: rustls.
    #[must_use]
    pub fn tls(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self.built = Arc::default();
        self
    }

    /// Sets a custom TLS provider, which replaces every TLS option of this configuration. Default:
    /// none.
    #[must_use]
    pub fn provider(mut self, provider: Arc<dyn Provider>) -> Self {
        self.provider = Some(provider);
        self.built = Arc::default();
        self
    }

    /// Sets the options of the transport. Default: [`TransportConfig::new`].
    #[must_use]
    pub fn transport(mut self, transport: TransportConfig) -> Self {
        self.transport = transport;
        self.built = Arc::default();
        self
    }

    /// Changes TLS options that have no method here, for example `change_rustls` for the
    /// configuration of rustls itself (feature `unstable-rustls`). Default: no change.
    #[must_use]
    pub fn tls_options(self, change: impl FnOnce(ServerOptions) -> ServerOptions) -> Self {
        self.with_tls(change)
    }

    fn with_tls(mut self, change: impl FnOnce(ServerOptions) -> ServerOptions) -> Self {
        self.tls = change(self.tls);
        self.built = Arc::default();
        self
    }

    /// Returns true if clients may send 0-RTT data: see
    /// [`accept_early_data`](Self::accept_early_data). An invalid configuration accepts none.
    pub fn accepts_early_data(&self) -> bool {
        self.setup()
            .is_ok_and(|setup| setup.provider.supports_early_data())
    }

    /// Returns configurations of rustls for TLS over TCP, with this configuration's certificates,
    /// key exchange policies and client authentication, for servers that offer HTTP/1.1 and HTTP/2
    /// alongside HTTP/3. `alpn` lists the application protocols over TCP, first choice first.
    ///
    /// # Errors
    /// The error names the option that cannot be used.
    #[cfg(feature = "rustls")]
    pub fn tcp(
        &self,
        alpn: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<hybriq_tls::rustls::TcpServer, ConfigError> {
        hybriq_tls::rustls::TcpServer::new(&self.tls, alpn)
    }

    /// Checks the configuration without serving: the TLS library knows the groups and suites, each
    /// key belongs to its certificate, every certificate is valid now, and the roots and the key
    /// log can be used. A custom [provider](Self::provider) must be able to start a server session.
    ///
    /// # Errors
    /// The error names every option that cannot be used and says how to fix it.
    ///
    /// # Examples
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let identity = hybriq::Identity::from_pem_files("cert.pem", "key.pem")?;
    /// let config = hybriq::ServerConfig::new(identity);
    /// if let Err(problems) = config.check() {
    ///     for problem in problems.iter() {
    ///         eprintln!("{problem}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[expect(
        clippy::disallowed_methods,
        reason = "certificates are valid by the wall clock"
    )]
    pub fn check(&self) -> Result<(), ConfigErrors> {
        match &self.provider {
            Some(provider) => check_provider(&**provider, Side::Server, self.tls.chosen_profile())?,
            None => self.backend.check_server(&self.tls, SystemTime::now())?,
        }
        self.check_commitment()?;
        Ok(())
    }

    /// Checks that all certificates satisfy the server's commitment.
    fn check_commitment(&self) -> Result<(), ConfigError> {
        if self.commitment.is_none() {
            return Ok(());
        }
        match &self.provider {
            None => self.tls.check_post_quantum(),
            Some(provider) => Err(ConfigError::Unsupported {
                provider: provider.name(),
                detail: "nobody knows the certificates of a custom provider; leave \
                         `post_quantum_commitment` out"
                    .to_owned(),
            }),
        }
    }

    /// Returns the memory that peers can make a server with this configuration hold, as a function
    /// of its [transport](Self::transport) options, for capacity planning.
    ///
    /// # Examples
    /// ```no_run
    /// use hybriq::{Identity, ServerConfig, TransportConfig};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
    /// let small = TransportConfig::new()
    ///     .receive_window(256 * 1024)
    ///     .max_send_buffer(64 * 1024)
    ///     .send_buffer(64 * 1024);
    /// let worst = ServerConfig::new(identity).transport(small).worst_case_memory();
    /// println!("unread data: {} bytes for each connection", worst.received);
    /// println!("10,000 connections: {} bytes at most", worst.total(1, 10_000));
    /// # Ok(())
    /// # }
    /// ```
    pub fn worst_case_memory(&self) -> WorstCaseMemory {
        self.transport.worst_case_memory()
    }

    /// Returns how many streams of a direction a peer may have open at once on a connection.
    pub fn most_peer_streams(&self, direction: Direction) -> u64 {
        self.transport.most_peer_streams(direction)
    }

    /// Forecasts what a handshake with a client costs, in datagrams and round trips, for each
    /// certificate of this server that suits the client, first choice first. Empty if the TLS
    /// library cannot forecast it.
    ///
    /// The client's configuration represents all clients like it: its groups, application protocols
    /// and certificate compression count.
    /// [`Incoming::first_flights`](crate::Incoming::first_flights) forecasts it for a client that
    /// is connecting.
    ///
    /// # Errors
    /// The error names the option that cannot be used.
    ///
    /// # Examples
    /// ```no_run
    /// use hybriq::{
    ///     ClientConfig, Group, Identity, KeyExchange, ServerConfig, stats::AddressProof,
    /// };
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let identity = Identity::from_pem_files("chain.pem", "key.pem")?;
    /// let server = ServerConfig::new(identity).alpn(["h3"]);
    /// for group in [Group::X25519, Group::X25519MLKEM768] {
    ///     let client = ClientConfig::new()
    ///         .alpn(["h3"])
    ///         .key_exchange(KeyExchange::Exactly(vec![group]));
    ///     for flight in server.first_flights(&client, "example.com", AddressProof::None)? {
    ///         println!("{group}: {} datagrams, {} round trips", flight.datagrams, flight.round_trips);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn first_flights(
        &self,
        client: &ClientConfig,
        server_name: &str,
        proof: AddressProof,
    ) -> Result<Vec<FirstFlight>, ConfigError> {
        let client = client.setup()?;
        self.setup()?.first_flights(&client, server_name, proof)
    }

    /// Returns the configuration for the protocol core. Builds the TLS provider at the first call.
    #[doc(hidden)]
    pub fn setup(&self) -> Result<Setup, ConfigError> {
        if let Some(setup) = self.built.get() {
            return Ok(setup.clone());
        }
        let provider = match &self.provider {
            Some(provider) => {
                check_profile(self.tls.chosen_profile(), &**provider)?;
                provider.clone()
            }
            None => self.backend.server(&self.tls)?,
        };
        self.check_commitment()?;
        let transport = self.transport.clone();
        let setup = Setup {
            provider,
            transport: Arc::new(transport.post_quantum_commitment(self.commitment)),
        };
        Ok(self.built.get_or_init(|| setup).clone())
    }
}

impl std::fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerConfig")
            .field("tls", &self.tls)
            .field("backend", &self.backend)
            .field(
                "provider",
                &self.provider.as_ref().map(|provider| provider.name()),
            )
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}
