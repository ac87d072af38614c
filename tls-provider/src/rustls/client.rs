use std::sync::Arc;

use ::rustls::ClientConfig;
use ::rustls::client::{ClientSessionMemoryCache, ClientSessionStore, Resumption};
use ::rustls::client::{Tls12ClientSessionValue, Tls13ClientSessionValue};
use ::rustls::quic::{ClientConnection, Connection, Version};
use ::rustls::sign::CertifiedKey;
use ::rustls::{NamedGroup, version};
use rustls_pki_types::ServerName;

use super::capture::Capture;
use super::session::Running;
use super::{NAME, groups, suites, unsupported, unusable, verify, wrong_side};
use crate::{ClientOptions, ConfigError, Group, KeyExchange, Provider, Session, Side, Start};

/// Server names whose tickets are remembered.
const REMEMBERED_SERVERS: usize = 256;

/// A client's side of rustls.
pub struct Client {
    key_exchange: KeyExchange,
    resuming: Arc<ClientConfig>,
    /// Remembers tickets as well, and uses none.
    fresh: Arc<ClientConfig>,
}

impl Client {
    /// Builds the configuration once; sessions share it.
    ///
    /// # Errors
    /// Says which option cannot be used.
    pub fn new(options: &ClientOptions) -> Result<Self, ConfigError> {
        let groups = groups::of_policy(&options.key_exchange)?;
        let crypto = Arc::new(suites::crypto(options.suites.as_deref(), &groups)?);
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
            let cache = Arc::new(ClientSessionMemoryCache::new(REMEMBERED_SERVERS));
            let first_is_post_quantum = groups.first().is_some_and(|group| group.is_post_quantum());
            let store = |resumes| {
                Resumption::store(Arc::new(Remembered {
                    cache: cache.clone(),
                    first_is_post_quantum,
                    resumes,
                }))
            };
            config.resumption = store(true);
            fresh.resumption = store(false);
        }
        Ok(Self {
            key_exchange: options.key_exchange.clone(),
            resuming: Arc::new(config),
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
        let config = if start.resume {
            &self.resuming
        } else {
            &self.fresh
        };
        let params = start.params.to_vec();
        super::capture::take();
        let tls = ClientConnection::new(config.clone(), Version::V1, verified, params)
            .map_err(|error| unsupported(error.to_string()))?;
        Ok(Box::new(Running::new(Connection::Client(tls), side, sent)))
    }
}

/// What is remembered of servers between connections.
#[derive(Debug)]
struct Remembered {
    cache: Arc<ClientSessionMemoryCache>,
    first_is_post_quantum: bool,
    /// Whether sessions take tickets out. All put them in.
    resumes: bool,
}

impl ClientSessionStore for Remembered {
    fn set_kx_hint(&self, server_name: ServerName<'static>, group: NamedGroup) {
        self.cache.set_kx_hint(server_name, group);
    }

    /// The group a server asked for last time. Such a wish is not authenticated when it is noted,
    /// so it may save a round trip but never turns a post-quantum first flight into a classical
    /// one.
    fn kx_hint(&self, server_name: &ServerName<'_>) -> Option<NamedGroup> {
        let hint = self.cache.kx_hint(server_name)?;
        let post_quantum = Group(hint.into()).is_post_quantum();
        (post_quantum || !self.first_is_post_quantum).then_some(hint)
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, name: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.cache.insert_tls13_ticket(name, value);
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        if self.resumes {
            self.cache.take_tls13_ticket(name)
        } else {
            None
        }
    }
}
