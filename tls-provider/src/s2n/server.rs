use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use aws_lc_rs::rand;
use s2n_tls::cert_chain::CertificateChain;
use s2n_tls::config::{Builder, Config};
use s2n_tls::enums::{ClientAuthType, Mode};
use s2n_tls::error::Error as S2nError;
use zeroize::Zeroizing;

use super::config::{self, AnyName, Roots};
use super::policy::{self, Policy};
use super::session::{self, Running};
use super::{NAME, failure, reason, unsupported};
use crate::accepting::{Accepting, Answer};
use crate::admission::{self, ByServerName};
use crate::options::KeyLogSink;
use crate::{
    ClientAuth, ClientHello, ConfigError, Error, KeyExchange, Provider, ServerOptions, Session,
    Side, Start,
};

#[cfg(test)]
pub(super) mod tests;

/// A new ticket key is made this often; the one before it still opens its tickets.
const KEY_ROTATION: Duration = Duration::from_hours(12);
/// How long a key may encrypt, so that there is always one that does.
const KEY_LIFETIME: Duration = Duration::from_hours(24);

/// A server's side of s2n-tls.
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    policies: ByServerName<Named>,
    alpn: Arc<[Vec<u8>]>,
    key_log: Option<Arc<KeyLogSink>>,
}

impl Server {
    /// Builds the configurations once; sessions share them.
    ///
    /// # Errors
    /// Says which option cannot be used.
    pub fn new(options: &ServerOptions) -> Result<Self, ConfigError> {
        if options.early_data.is_on() {
            return Err(unsupported(
                "it has no 0-RTT in QUIC; leave early_data off, or use rustls",
            ));
        }
        let parts = Arc::new(Parts::new(options)?);
        let policies = ByServerName::build(
            &options.key_exchange,
            &options.key_exchange_for,
            |key_exchange| {
                let policy = policy::find(key_exchange, options.suites.as_deref())?;
                let live = parts.make(policy, None, SystemTime::now())?;
                Ok(Named {
                    key_exchange: key_exchange.clone(),
                    policy,
                    parts: parts.clone(),
                    live: RwLock::new(live),
                })
            },
        )?;
        let shared = Shared {
            policies,
            alpn: parts.alpn.clone(),
            key_log: options.key_log.open()?,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }
}

impl Provider for Server {
    fn name(&self) -> &'static str {
        NAME
    }

    fn supports_early_data(&self) -> bool {
        false
    }

    fn key_exchange(&self) -> &KeyExchange {
        &self.shared.policies.default().key_exchange
    }

    fn key_exchange_for(&self, server_name: Option<&str>) -> &KeyExchange {
        &self.shared.policies.get(server_name).key_exchange
    }

    fn session(&self, side: Side, start: Start<'_>) -> Result<Box<dyn Session>, ConfigError> {
        if side.is_client() {
            return Err(unsupported(
                "built from ServerOptions; a client session needs ClientOptions",
            ));
        }
        Ok(Box::new(Accepting::new(self.shared.clone(), start)))
    }
}

impl Answer for Shared {
    fn answer(&self, hello: &ClientHello, start: Start<'_>) -> Result<Box<dyn Session>, Error> {
        admission::check(hello, &self.alpn)?;
        let named = self.policies.get(hello.server_name());
        // s2n-tls makes the same choice by itself, where there is one.
        admission::choose_group(named.policy.groups, hello)?;
        let config = named.config(SystemTime::now());
        let connection = session::connection(Mode::Server, config, start.params)
            .map_err(|error| failure::of(&error))?;
        let (alpn, key_log) = (self.alpn.clone(), self.key_log.clone());
        Ok(Box::new(Running::server(connection, alpn, key_log, hello)))
    }
}

/// One key-exchange policy of the server and the configuration in use for it.
struct Named {
    key_exchange: KeyExchange,
    policy: &'static Policy,
    parts: Arc<Parts>,
    live: RwLock<Live>,
}

/// A configuration and the ticket key it encrypts with.
struct Live {
    config: Config,
    key: Option<Arc<TicketKey>>,
}

struct TicketKey {
    name: [u8; 16],
    secret: Zeroizing<[u8; 32]>,
    made: SystemTime,
}

impl TicketKey {
    fn random(now: SystemTime) -> Result<Arc<Self>, ConfigError> {
        let mut key = Self {
            name: [0; 16],
            secret: Zeroizing::new([0; 32]),
            made: now,
        };
        rand::fill(&mut key.name)
            .and_then(|()| rand::fill(&mut *key.secret))
            .map_err(|_| unsupported("the system gives no random bytes for ticket keys"))?;
        Ok(Arc::new(key))
    }

    fn is_due(&self, now: SystemTime) -> bool {
        now.duration_since(self.made)
            .is_ok_and(|age| age >= KEY_ROTATION)
    }
}

impl Named {
    /// The configuration, with a new ticket key if the time for one has come. s2n-tls takes keys
    /// only while a configuration is built.
    fn config(&self, now: SystemTime) -> Config {
        let due = |live: &Live| live.key.as_ref().is_some_and(|key| key.is_due(now));
        {
            let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
            if !due(&live) {
                return live.config.clone();
            }
        }
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        if due(&live) {
            let previous = live.key.clone();
            // Without a new configuration the old one still does full handshakes.
            if let Ok(next) = self.parts.make(self.policy, previous.as_deref(), now) {
                *live = next;
            }
        }
        live.config.clone()
    }
}

/// What all configurations of one server have in common.
struct Parts {
    chains: Vec<CertificateChain<'static>>,
    clients: Option<(ClientAuthType, Roots)>,
    alpn: Arc<[Vec<u8>]>,
    tickets: bool,
}

impl Parts {
    fn new(options: &ServerOptions) -> Result<Self, ConfigError> {
        let clients = match &options.client_auth {
            ClientAuth::None => None,
            ClientAuth::Optional(trust) => Some((ClientAuthType::Optional, trust)),
            ClientAuth::Required(trust) => Some((ClientAuthType::Required, trust)),
        };
        let clients = match clients {
            None => None,
            Some((auth, trust)) => Some((auth, Roots::new(trust.anchors()?))),
        };
        Ok(Self {
            chains: options
                .identities
                .iter()
                .map(config::chain)
                .collect::<Result<_, _>>()?,
            clients,
            alpn: options.alpn.clone().into(),
            tickets: !options.no_tickets,
        })
    }

    fn make(
        &self,
        policy: &Policy,
        previous: Option<&TicketKey>,
        now: SystemTime,
    ) -> Result<Live, ConfigError> {
        let mut builder = config::builder(policy, &self.alpn)?;
        for chain in &self.chains {
            config::add_chain(&mut builder, chain, policy)?;
        }
        if let Some((auth, roots)) = &self.clients {
            roots.apply(&mut builder)?;
            builder
                .set_client_auth_type(*auth)
                .and_then(|builder| builder.set_verify_host_callback(AnyName))
                .map_err(|error| unsupported(reason(&error)))?;
        }
        let key = if self.tickets {
            Some(TicketKey::random(now)?)
        } else {
            None
        };
        let config = add_keys(builder, [previous, key.as_deref()])
            .map_err(|error| unsupported(reason(&error)))?;
        Ok(Live { config, key })
    }
}

fn add_keys(mut builder: Builder, keys: [Option<&TicketKey>; 2]) -> Result<Config, S2nError> {
    builder.set_ticket_key_encrypt_decrypt_lifetime(KEY_LIFETIME)?;
    builder.set_ticket_key_decrypt_lifetime(KEY_LIFETIME)?;
    for key in keys.into_iter().flatten() {
        builder.add_session_ticket_key(&key.name, &*key.secret, key.made)?;
    }
    builder.build()
}
