//! TLS configurations.

use std::sync::Arc;

use hybriq_tls::Provider;

/// TLS of a client: [`rustls::QuicClientConfig`], or any [`Provider`] of hybriq's interface to TLS.
pub trait ClientConfig: Send + Sync {
    /// Returns what starts sessions.
    fn provider(&self) -> Arc<dyn Provider>;

    /// Returns true if 0-RTT data may be sent.
    fn offers_early_data(&self) -> bool {
        false
    }

    /// Returns true if an earlier connection to the server left a ticket that allows 0-RTT data.
    fn has_early_ticket(&self, server_name: &str) -> bool {
        let _ = server_name;
        false
    }
}

/// TLS of a server: [`rustls::QuicServerConfig`], or any [`Provider`] of hybriq's interface to TLS.
pub trait ServerConfig: Send + Sync {
    /// Returns what starts sessions.
    fn provider(&self) -> Arc<dyn Provider>;
}

/// A key of HMAC: [`EndpointConfig::new`](crate::EndpointConfig::new).
pub trait HmacKey: Send + Sync {
    /// Writes the tag of the data, which has [`signature_len`](Self::signature_len) bytes.
    fn sign(&self, data: &[u8], signature_out: &mut [u8]);

    /// Returns the length of tags, in bytes.
    fn signature_len(&self) -> usize;
}

#[cfg(feature = "ring")]
impl HmacKey for ring::hmac::Key {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        let tag = ring::hmac::sign(self, data);
        for (to, from) in signature_out.iter_mut().zip(tag.as_ref()) {
            *to = *from;
        }
    }

    fn signature_len(&self) -> usize {
        self.algorithm().digest_algorithm().output_len()
    }
}

/// No keying material can be exported for this label, context and length.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no keying material for this label, context and length; give at most 8,160 bytes of output"
)]
pub struct ExportKeyingMaterialError;

/// TLS by rustls, from any of its configurations.
pub mod rustls {
    use std::{fmt, sync::Arc};

    use hybriq_tls::{KeyExchange, Provider, rustls as tls};
    use rustls::crypto::{CryptoProvider, aws_lc_rs};
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::{ClientConfig, NamedGroup, ServerConfig};

    /// What the handshake agreed on: the type behind
    /// [`Connection::handshake_data`](crate::Connection::handshake_data).
    #[derive(Debug)]
    #[non_exhaustive]
    pub struct HandshakeData {
        /// The application protocol.
        pub protocol: Option<Vec<u8>>,
        /// Name that the client asked for; `None` on a client.
        pub server_name: Option<String>,
        /// Group of the key exchange.
        pub negotiated_key_exchange_group: NamedGroup,
    }

    impl HandshakeData {
        pub(crate) fn of(handshake: &hybriq::Handshake) -> Self {
            let server_name = handshake.server_name.clone();
            Self {
                protocol: handshake.alpn.clone(),
                server_name: server_name.filter(|_| handshake.role.is_server()),
                negotiated_key_exchange_group: handshake.key_exchange.group.0.into(),
            }
        }
    }

    /// A configuration of rustls cannot be used with QUIC; the text says why, and what to do.
    #[derive(Clone, Debug)]
    pub struct NoInitialCipherSuite {
        problem: String,
    }

    impl fmt::Display for NoInitialCipherSuite {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.problem)
        }
    }

    impl std::error::Error for NoInitialCipherSuite {}

    impl From<hybriq_tls::ConfigError> for NoInitialCipherSuite {
        fn from(error: hybriq_tls::ConfigError) -> Self {
            Self {
                problem: error.to_string(),
            }
        }
    }

    /// TLS of a client by rustls: its crypto, verifier, certificates, key log and application protocols.
    ///
    /// Tickets are kept in a memory of this value, not in the configuration's `resumption`.
    #[derive(Debug)]
    pub struct QuicClientConfig {
        provider: Arc<tls::Client>,
        early: bool,
    }

    impl QuicClientConfig {
        /// Creates it like `try_from`, for connections whose key exchange satisfies a policy: another one is
        /// refused, by this end or by the peer.
        ///
        /// # Errors
        /// The configuration cannot be used with QUIC, or has no group of the policy.
        pub fn with_key_exchange(
            config: ClientConfig,
            policy: KeyExchange,
        ) -> Result<Self, NoInitialCipherSuite> {
            Self::new(config, Some(policy))
        }

        fn new(
            config: ClientConfig,
            policy: Option<KeyExchange>,
        ) -> Result<Self, NoInitialCipherSuite> {
            Ok(Self {
                early: config.enable_early_data,
                provider: Arc::new(tls::Client::of_config(config, policy)?),
            })
        }
    }

    impl super::ClientConfig for QuicClientConfig {
        fn provider(&self) -> Arc<dyn Provider> {
            self.provider.clone()
        }

        fn offers_early_data(&self) -> bool {
            self.early
        }

        fn has_early_ticket(&self, server_name: &str) -> bool {
            self.early && self.provider.has_early_ticket(server_name)
        }
    }

    impl TryFrom<ClientConfig> for QuicClientConfig {
        type Error = NoInitialCipherSuite;

        fn try_from(config: ClientConfig) -> Result<Self, NoInitialCipherSuite> {
            Self::new(config, None)
        }
    }

    impl TryFrom<Arc<ClientConfig>> for QuicClientConfig {
        type Error = NoInitialCipherSuite;

        fn try_from(config: Arc<ClientConfig>) -> Result<Self, NoInitialCipherSuite> {
            Self::new(Arc::unwrap_or_clone(config), None)
        }
    }

    /// TLS of a server by rustls: its crypto, certificates, client authentication, key log and application
    /// protocols. 0-RTT data is accepted if `max_early_data_size` is not 0.
    #[derive(Debug)]
    pub struct QuicServerConfig {
        provider: Arc<tls::Server>,
    }

    impl QuicServerConfig {
        /// Creates it like `try_from`, for connections whose key exchange satisfies a policy: another one is
        /// refused.
        ///
        /// # Errors
        /// The configuration cannot be used with QUIC, or has a group that the policy does not allow: rustls
        /// would take it if a client lists it first.
        pub fn with_key_exchange(
            config: ServerConfig,
            policy: KeyExchange,
        ) -> Result<Self, NoInitialCipherSuite> {
            Self::new(config, Some(policy))
        }

        fn new(
            config: ServerConfig,
            policy: Option<KeyExchange>,
        ) -> Result<Self, NoInitialCipherSuite> {
            Ok(Self {
                provider: Arc::new(tls::Server::of_config(config, policy)?),
            })
        }
    }

    impl super::ServerConfig for QuicServerConfig {
        fn provider(&self) -> Arc<dyn Provider> {
            self.provider.clone()
        }
    }

    impl TryFrom<ServerConfig> for QuicServerConfig {
        type Error = NoInitialCipherSuite;

        fn try_from(config: ServerConfig) -> Result<Self, NoInitialCipherSuite> {
            Self::new(config, None)
        }
    }

    impl TryFrom<Arc<ServerConfig>> for QuicServerConfig {
        type Error = NoInitialCipherSuite;

        fn try_from(config: Arc<ServerConfig>) -> Result<Self, NoInitialCipherSuite> {
            Self::new(Arc::unwrap_or_clone(config), None)
        }
    }

    /// Returns the crypto of configurations that are made here: post-quantum groups first.
    pub(crate) fn crypto() -> CryptoProvider {
        use aws_lc_rs::kx_group::{
            SECP256R1, SECP256R1MLKEM768, SECP384R1, X25519, X25519MLKEM768,
        };
        CryptoProvider {
            kx_groups: vec![
                X25519MLKEM768,
                SECP256R1MLKEM768,
                X25519,
                SECP256R1,
                SECP384R1,
            ],
            ..aws_lc_rs::default_provider()
        }
    }

    /// Returns a configuration of a server with one certificate and 0-RTT data.
    pub(crate) fn server(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<QuicServerConfig, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(crypto()))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.max_early_data_size = u32::MAX;
        QuicServerConfig::try_from(config).map_err(|error| rustls::Error::General(error.problem))
    }
}
