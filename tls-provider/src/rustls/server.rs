use std::sync::Arc;

use ::rustls::client::verify_server_name;
use ::rustls::crypto::CryptoProvider;
use ::rustls::quic::{Connection, ServerConnection, Version};
use ::rustls::server::danger::ClientCertVerifier;
use ::rustls::server::{
    ClientHello as OfferedHello, NoServerSessionStorage, ParsedCertificate, ProducesTickets,
    ResolvesServerCert,
};
use ::rustls::sign::CertifiedKey;
use ::rustls::{ServerConfig, version};
use rustls_pki_types::ServerName;

use super::capture::{self, Capture, NotedKey};
use super::session::Running;
use super::{NAME, groups, suites, unsupported, unusable, verify, wrong_side};
use crate::accepting::{Accepting, Answer};
use crate::admission::{self, ByServerName};
use crate::{
    Alert, ClientHello, ConfigError, Error, Group, Identity, KeyExchange, Provider, ServerOptions,
    Session, Side, Start,
};

/// A server's side of rustls.
pub struct Server {
    shared: Arc<Shared>,
}

/// What sessions need that have seen no ClientHello yet.
struct Shared {
    policies: ByServerName<Policy>,
    alpn: Vec<Vec<u8>>,
}

struct Policy {
    key_exchange: KeyExchange,
    groups: Vec<Group>,
    /// One configuration for each of `groups`, in their order.
    configs: Vec<Arc<ServerConfig>>,
}

impl Server {
    /// Builds the configurations once; sessions share them.
    ///
    /// # Errors
    /// Says which option cannot be used.
    pub fn new(options: &ServerOptions) -> Result<Self, ConfigError> {
        let parts = Parts::new(options)?;
        let policies = ByServerName::build(
            &options.key_exchange,
            &options.key_exchange_for,
            |key_exchange| {
                let groups = groups::of_policy(key_exchange)?;
                let configs = groups
                    .iter()
                    .map(|group| parts.config(options, *group))
                    .collect::<Result<_, _>>()?;
                Ok(Policy {
                    key_exchange: key_exchange.clone(),
                    groups,
                    configs,
                })
            },
        )?;
        let alpn = options.alpn.clone();
        Ok(Self {
            shared: Arc::new(Shared { policies, alpn }),
        })
    }
}

/// What all configurations of one server have in common.
struct Parts {
    resolver: Arc<Identities>,
    clients: Arc<dyn ClientCertVerifier>,
    ticketer: Option<Arc<dyn ProducesTickets>>,
    key_log: Arc<Capture>,
}

impl Parts {
    fn new(options: &ServerOptions) -> Result<Self, ConfigError> {
        let crypto = Arc::new(suites::crypto(options.suites.as_deref(), &[])?);
        let ticketer = if options.no_tickets {
            None
        } else {
            let ticketer = ::rustls::crypto::aws_lc_rs::Ticketer::new();
            Some(ticketer.map_err(|error| unsupported(error.to_string()))?)
        };
        Ok(Self {
            resolver: Arc::new(Identities::new(&options.identities, &crypto)?),
            clients: verify::of_clients(&options.client_auth, &crypto)?,
            ticketer,
            key_log: Arc::new(Capture {
                user: options.key_log.open()?,
            }),
        })
    }

    fn config(
        &self,
        options: &ServerOptions,
        group: Group,
    ) -> Result<Arc<ServerConfig>, ConfigError> {
        let crypto = suites::crypto(options.suites.as_deref(), &[group])?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(crypto))
            .with_protocol_versions(&[&version::TLS13])
            .map_err(|error| unsupported(error.to_string()))?
            .with_client_cert_verifier(self.clients.clone())
            .with_cert_resolver(self.resolver.clone());
        config.alpn_protocols.clone_from(&options.alpn);
        config.key_log = self.key_log.clone();
        config.session_storage = Arc::new(NoServerSessionStorage {});
        // A resumed client gets a new ticket each time, so one is enough.
        config.send_tls13_tickets = usize::from(self.ticketer.is_some());
        if let Some(ticketer) = &self.ticketer {
            config.ticketer = ticketer.clone();
        }
        Ok(Arc::new(config))
    }
}

impl Provider for Server {
    fn name(&self) -> &'static str {
        NAME
    }

    fn supports_early_data(&self) -> bool {
        true
    }

    fn key_exchange(&self) -> &KeyExchange {
        &self.shared.policies.default().key_exchange
    }

    fn key_exchange_for(&self, server_name: Option<&str>) -> &KeyExchange {
        &self.shared.policies.get(server_name).key_exchange
    }

    fn session(&self, side: Side, start: Start<'_>) -> Result<Box<dyn Session>, ConfigError> {
        if side.is_client() {
            return Err(wrong_side(side));
        }
        Ok(Box::new(Accepting::new(self.shared.clone(), start)))
    }
}

impl Answer for Shared {
    fn answer(&self, hello: &ClientHello, params: &[u8]) -> Result<Box<dyn Session>, Error> {
        admission::check(hello, &self.alpn)?;
        let policy = self.policies.get(hello.server_name());
        let group = admission::choose_group(&policy.groups, hello)?;
        let config = policy
            .groups
            .iter()
            .zip(&policy.configs)
            .find_map(|(candidate, config)| (*candidate == group).then(|| config.clone()))
            .ok_or_else(|| Error::new(Alert::INTERNAL_ERROR, "a group without configuration"))?;
        capture::take();
        let tls = ServerConnection::new(config, Version::V1, params.to_vec())
            .map_err(|error| Error::new(Alert::INTERNAL_ERROR, error.to_string()))?;
        Ok(Box::new(Running::new(
            Connection::Server(tls),
            Side::Server,
            None,
        )))
    }
}

/// Chooses among certificates by the server name.
#[derive(Debug)]
struct Identities(Vec<Arc<CertifiedKey>>);

impl Identities {
    fn new(identities: &[Identity], crypto: &CryptoProvider) -> Result<Self, ConfigError> {
        let keys = identities
            .iter()
            .map(|identity| {
                let mut certified = CertifiedKey::from_der(
                    identity.certificates().to_vec(),
                    identity.private_key().clone_key(),
                    crypto,
                )?;
                certified.key = Arc::new(NotedKey(certified.key));
                Ok(Arc::new(certified))
            })
            .collect::<Result<_, ::rustls::Error>>()
            .map_err(|error| unusable(&error))?;
        Ok(Self(keys))
    }
}

impl ResolvesServerCert for Identities {
    fn resolve(&self, hello: OfferedHello<'_>) -> Option<Arc<CertifiedKey>> {
        let default = self.0.first()?;
        if self.0.len() == 1 {
            return Some(default.clone());
        }
        let can_sign =
            |key: &CertifiedKey| key.key.choose_scheme(hello.signature_schemes()).is_some();
        let name = hello
            .server_name()
            .and_then(|name| ServerName::try_from(name).ok());
        let matches = |key: &CertifiedKey| {
            let Some(name) = &name else { return false };
            let certificate = key.end_entity_cert().ok();
            let parsed = certificate.and_then(|der| ParsedCertificate::try_from(der).ok());
            parsed.is_some_and(|parsed| verify_server_name(&parsed, name).is_ok())
        };
        let mut named = self.0.iter().filter(|key| matches(key));
        let chosen = named.find(|key| can_sign(key)).unwrap_or(default);
        Some(chosen.clone())
    }
}
