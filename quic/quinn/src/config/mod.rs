//! Configurations of endpoints, servers and clients.

pub mod congestion;
mod endpoint;
mod transport;

use std::{
    fmt,
    net::{SocketAddrV4, SocketAddrV6},
    sync::Arc,
};

use hybriq::{
    memory::{ServerMemory, ServerStore},
    transport::Version,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub use self::endpoint::{ConnectionIdGenerator, EndpointConfig, RandomConnectionIdGenerator};
pub(crate) use self::transport::Shared;
pub use self::transport::{AckFrequencyConfig, IdleTimeout, MtuDiscoveryConfig, TransportConfig};
use crate::crypto;

/// Configuration of a server.
#[derive(Clone)]
pub struct ServerConfig {
    /// Configuration of the transport.
    pub transport: Arc<TransportConfig>,
    /// TLS.
    pub crypto: Arc<dyn crypto::ServerConfig>,
    /// Address validation tokens that clients get for later connections.
    pub validation_token: ValidationTokenConfig,
    migration: bool,
    preferred: (Option<SocketAddrV4>, Option<SocketAddrV6>),
    pub(crate) max_incoming: Option<usize>,
}

impl ServerConfig {
    /// Creates a configuration over TLS.
    pub fn with_crypto(crypto: Arc<dyn crypto::ServerConfig>) -> Self {
        Self {
            transport: Arc::default(),
            crypto,
            validation_token: ValidationTokenConfig::default(),
            migration: true,
            preferred: (None, None),
            max_incoming: None,
        }
    }

    /// Creates a configuration with one certificate: post-quantum groups first, with 0-RTT data, without client
    /// authentication and application protocols.
    ///
    /// # Errors
    /// The certificate or its key cannot be used.
    pub fn with_single_cert(
        cert_chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, rustls::Error> {
        let crypto = crypto::rustls::server(cert_chain, key)?;
        Ok(Self::with_crypto(Arc::new(crypto)))
    }

    /// Sets the configuration of the transport.
    pub fn transport_config(&mut self, transport: Arc<TransportConfig>) -> &mut Self {
        self.transport = transport;
        self
    }

    /// Sets which tokens clients get for later connections.
    pub fn validation_token_config(&mut self, config: ValidationTokenConfig) -> &mut Self {
        self.validation_token = config;
        self
    }

    /// Sets whether clients may move to another address. Default: they may.
    pub fn migration(&mut self, value: bool) -> &mut Self {
        self.migration = value;
        self
    }

    /// Sets the IPv4 address that clients are asked to move to. Default: none.
    pub fn preferred_address_v4(&mut self, address: Option<SocketAddrV4>) -> &mut Self {
        self.preferred.0 = address;
        self
    }

    /// Sets the IPv6 address that clients are asked to move to. Default: none.
    pub fn preferred_address_v6(&mut self, address: Option<SocketAddrV6>) -> &mut Self {
        self.preferred.1 = address;
        self
    }

    /// Sets how many clients may wait to be accepted, for endpoints that start with this configuration: 1 to 4,096.
    /// Default: 4,096.
    pub fn max_incoming(&mut self, max_incoming: usize) -> &mut Self {
        self.max_incoming = Some(max_incoming);
        self
    }

    pub(crate) fn build(&self, shared: &Shared) -> hybriq::ServerConfig {
        let mut transport = self.transport.build(shared);
        if !self.migration {
            transport = transport.without_migration();
        }
        if self.preferred != (None, None) {
            transport = transport.preferred_address(self.preferred.0, self.preferred.1);
        }
        hybriq::ServerConfig::of_provider(self.crypto.provider()).transport(transport)
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

/// Address validation tokens that clients get for later connections: hybriq's own, which are encrypted, used once and
/// shared by [`hybriq::fleet::TokenKeys`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ValidationTokenConfig;

/// Configuration of a client.
#[derive(Clone)]
pub struct ClientConfig {
    transport: Arc<TransportConfig>,
    crypto: Arc<dyn crypto::ClientConfig>,
    servers: Arc<dyn ServerStore>,
    version: Option<u32>,
}

impl ClientConfig {
    /// Creates a configuration over TLS.
    pub fn new(crypto: Arc<dyn crypto::ClientConfig>) -> Self {
        Self {
            transport: Arc::default(),
            crypto,
            servers: Arc::new(ServerMemory::new()),
            version: None,
        }
    }

    /// Creates a configuration that trusts these roots: post-quantum groups first, with 0-RTT data, without a client
    /// certificate and application protocols.
    ///
    /// # Errors
    /// There is no root among them.
    #[expect(
        clippy::missing_panics_doc,
        reason = "the crypto of this crate has TLS 1.3"
    )]
    pub fn with_root_certificates(
        roots: Arc<rustls::RootCertStore>,
    ) -> Result<Self, rustls::client::VerifierBuilderError> {
        let crypto = Arc::new(crypto::rustls::crypto());
        let verifier =
            rustls::client::WebPkiServerVerifier::builder_with_provider(roots, crypto.clone())
                .build()?;
        let config = rustls::ClientConfig::builder_with_provider(crypto)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("the crypto of this crate has TLS 1.3")
            .with_webpki_verifier(verifier)
            .with_no_client_auth();
        Ok(Self::over(config))
    }

    /// Creates a configuration that lets the operating system judge certificates: otherwise like
    /// [`with_root_certificates`](Self::with_root_certificates).
    ///
    /// # Errors
    /// The system's verifier cannot be used.
    #[cfg(feature = "platform-verifier")]
    pub fn try_with_platform_verifier() -> Result<Self, rustls::Error> {
        use rustls_platform_verifier::BuilderVerifierExt as _;
        let config =
            rustls::ClientConfig::builder_with_provider(Arc::new(crypto::rustls::crypto()))
                .with_protocol_versions(&[&rustls::version::TLS13])?
                .with_platform_verifier()?
                .with_no_client_auth();
        Ok(Self::over(config))
    }

    fn over(mut config: rustls::ClientConfig) -> Self {
        config.enable_early_data = true;
        let config = crypto::rustls::QuicClientConfig::try_from(config);
        Self::new(Arc::new(config.expect(
            "a configuration with the crypto of this crate can be used with QUIC",
        )))
    }

    /// Sets the configuration of the transport.
    pub fn transport_config(&mut self, transport: Arc<TransportConfig>) -> &mut Self {
        self.transport = transport;
        self
    }

    /// Sets what is remembered of servers, tokens among it. Default: a memory that clones share.
    pub fn server_store(&mut self, store: Arc<dyn ServerStore>) -> &mut Self {
        self.servers = store;
        self
    }

    /// Sets the version of QUIC: 1 or `0x6b3343cf`, version 2. Default: both, by compatible version negotiation.
    pub fn version(&mut self, version: u32) -> &mut Self {
        self.version = Some(version);
        self
    }

    /// Returns the configuration for hybriq; `None` if its version is not supported.
    pub(crate) fn build(&self, shared: &Shared) -> Option<hybriq::ClientConfig> {
        let mut transport = self.transport.build(shared);
        if let Some(number) = self.version {
            let version = known_version(number)?;
            if !shared.versions.is_empty() && !shared.versions.contains(&version) {
                return None;
            }
            transport = transport.versions([version]);
        }
        let config = hybriq::ClientConfig::new()
            .provider(self.crypto.provider())
            .server_store(self.servers.clone())
            .transport(transport);
        Some(if self.crypto.offers_early_data() {
            config.offer_early_data()
        } else {
            config
        })
    }

    pub(crate) fn has_early_ticket(&self, server_name: &str) -> bool {
        self.crypto.has_early_ticket(server_name)
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig")
            .field("transport", &self.transport)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Returns the version of this number, if hybriq supports it.
fn known_version(number: u32) -> Option<Version> {
    match number {
        1 => Some(Version::V1),
        0x6b33_43cf => Some(Version::V2),
        _ => None,
    }
}
