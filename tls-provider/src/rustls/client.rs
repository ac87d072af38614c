use std::sync::Arc;

use ::rustls::ClientConfig;
use ::rustls::client::Resumption;
use ::rustls::crypto::CryptoProvider;
use ::rustls::quic::{ClientConnection, Version};
use ::rustls::sign::CertifiedKey;
use ::rustls::version;
use rustls_pki_types::ServerName;

use super::capture::Capture;
use super::chain::{self, Issue};
use super::remembered::{Memory, Remembered};
use super::session::Running;
use super::{NAME, groups, suites, unsupported, unusable, verify, wrong_side};
use crate::{
    ClientOptions, ConfigError, EarlyDataPolicy, KeyExchange, Provider, Session, Side, Start,
};

/// A client's side of rustls.
pub struct Client {
    key_exchange: KeyExchange,
    resuming: Arc<ClientConfig>,
    /// Resumes, and offers 0-RTT data where the ticket allows it.
    early: Arc<ClientConfig>,
    /// Remembers tickets as well, and uses none.
    fresh: Arc<ClientConfig>,
}

impl Client {
    /// Builds the configuration once; sessions share it.
    ///
    /// # Errors
    /// Says which option cannot be used.
    pub fn new(options: &ClientOptions) -> Result<Self, ConfigError> {
        Self::with_crypto(options, |crypto| crypto)
    }

    /// The same over the crypto that `wrap` makes of what the options ask for, for example to time
    /// or to count its operations. Offered are the groups that `wrap` leaves, in its order.
    ///
    /// # Errors
    /// Says which option cannot be used.
    ///
    /// # Security
    /// Nothing checks what `wrap` returns: it can offer what the policy of the options excludes.
    /// A transport that enforces the policy still refuses what was negotiated against it.
    pub fn with_crypto(
        options: &ClientOptions,
        wrap: impl Fn(CryptoProvider) -> CryptoProvider,
    ) -> Result<Self, ConfigError> {
        let groups = groups::of_policy(&options.key_exchange)?;
        let crypto = Arc::new(wrap(suites::crypto(options.suites.as_deref(), &groups)?));
        let builder = ClientConfig::builder_with_provider(crypto.clone())
            .with_protocol_versions(&[&version::TLS13])
            .map_err(|error| unsupported(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verify::of_servers(&options.trust, &crypto)?);
        let mut config = match &options.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let key = CertifiedKey::from_der(
                    identity.certificates().to_vec(),
                    identity.private_key().clone_key(),
                    &crypto,
                )
                .map_err(|error| unusable(&error))?;
                let resolver = ::rustls::sign::SingleCertAndKey::from(key);
                builder.with_client_cert_resolver(Arc::new(resolver))
            }
        };
        config.alpn_protocols.clone_from(&options.alpn);
        config.key_log = Arc::new(Capture {
            user: options.key_log.open()?,
        });

        let mut fresh = config.clone();
        if options.no_resumption {
            config.resumption = Resumption::disabled();
            fresh.resumption = Resumption::disabled();
        } else {
            let memory: Arc<Memory> = Arc::default();
            let store = |resumes| {
                Resumption::store(Arc::new(Remembered {
                    memory: memory.clone(),
                    policy: options.key_exchange.clone(),
                    resumes,
                }))
            };
            config.resumption = store(true);
            fresh.resumption = store(false);
        }
        let mut early = config.clone();
        early.enable_early_data = true;
        Ok(Self {
            key_exchange: options.key_exchange.clone(),
            resuming: Arc::new(config),
            early: Arc::new(early),
            fresh: Arc::new(fresh),
        })
    }
}

impl Provider for Client {
    fn name(&self) -> &'static str {
        NAME
    }

    fn supports_early_data(&self) -> bool {
        true
    }

    fn key_exchange(&self) -> &KeyExchange {
        &self.key_exchange
    }

    fn session(&self, side: Side, start: Start<'_>) -> Result<Box<dyn Session>, ConfigError> {
        if side.is_server() {
            return Err(wrong_side(side));
        }
        let name = start
            .server_name
            .ok_or_else(|| unsupported("a client session needs the name of the server"))?;
        let verified = ServerName::try_from(name.to_owned())
            .map_err(|_| unsupported(format!("`{name}` is no DNS name and no IP address")))?;
        let sent = matches!(verified, ServerName::DnsName(_)).then(|| name.to_owned());
        let config = match (start.resume, start.early_data) {
            (false, _) => &self.fresh,
            (true, EarlyDataPolicy::Off) => &self.resuming,
            (true, EarlyDataPolicy::On) => &self.early,
        };
        let params = start.params.to_vec();
        super::capture::take();
        chain::begin(Issue {
            scope: start.resumption_context.into(),
            ..Issue::default()
        });
        let tls = ClientConnection::new(config.clone(), Version::V1, verified, params)
            .map_err(|error| unsupported(error.to_string()))?;
        Ok(Box::new(Running::client(
            tls,
            sent,
            start.resumption_context,
        )))
    }
}
