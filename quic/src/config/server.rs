//! The configuration of servers.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use hybriq_proto::Direction;
use hybriq_proto::config::{ServerTerms, TransportConfig};
use hybriq_proto::endpoint::{AddressProof, FirstFlight, Setup, WorstCaseMemory};
use hybriq_tls::{Backend, ConfigError, ConfigErrors, Identity, Provider, ServerOptions, Side};

use super::{
    ClientConfig,
    settings::{check_profile, check_provider, config_setters},
};

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
    terms: ServerTerms,
    built: Arc<OnceLock<Setup>>,
}

impl ServerConfig {
    /// Creates a configuration that prefers post-quantum groups, uses the default provider, accepts
    /// no ALPN and asks for no client certificates.
    pub fn new(identity: Identity) -> Self {
        Self::over(ServerOptions::new(identity), None)
    }

    /// Creates a configuration over a custom TLS provider, which has its own certificates: see
    /// [`provider`](Self::provider).
    pub fn of_provider(provider: Arc<dyn Provider>) -> Self {
        Self::over(ServerOptions::without_identity(), Some(provider))
    }

    fn over(tls: ServerOptions, provider: Option<Arc<dyn Provider>>) -> Self {
        Self {
            tls,
            backend: Backend::default(),
            provider,
            transport: TransportConfig::new(),
            terms: ServerTerms::NONE,
            built: Arc::default(),
        }
    }

    hybriq_tls::server_setters!();
    config_setters!(ServerOptions);

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
        self.terms.commitment = Some(time);
        self.built = Arc::default();
        self
    }

    /// Sets the application settings that clients rely on when they send 0-RTT data, such as those of HTTP/3 (RFC 9114
    /// §7.2.4.2), in any encoding. They are stored with the session of each ticket, and 0-RTT data is accepted only with
    /// a ticket of the same settings, byte for byte. Default: none.
    #[must_use]
    pub fn early_settings(mut self, settings: impl Into<Vec<u8>>) -> Self {
        self.terms.early_settings = settings.into();
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
            Some(provider) => check_provider(&**provider, Side::Server, self.tls.shared.profile)?,
            None => self.backend.check_server(&self.tls, SystemTime::now())?,
        }
        self.check_commitment()?;
        Ok(())
    }

    /// Checks that all certificates satisfy the server's commitment.
    fn check_commitment(&self) -> Result<(), ConfigError> {
        if self.terms.commitment.is_none() {
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

    /// Returns the number of streams in one direction that a peer may have open at once on a connection.
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
                check_profile(self.tls.shared.profile, &**provider)?;
                provider.clone()
            }
            None => self.backend.server(&self.tls)?,
        };
        self.check_commitment()?;
        let transport = self.transport.clone();
        let setup = Setup {
            provider,
            transport: Arc::new(transport.server_terms(self.terms.clone())),
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
