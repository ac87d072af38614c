//! Client sessions over s2n-tls.

use std::{net::IpAddr, sync::Arc, time::SystemTime};

use aws_lc_rs::digest;
use rustls_pki_types::ServerName;
use s2n_tls::callbacks::VerifyHostNameCallback;
use s2n_tls::config::Config;
use s2n_tls::connection::Connection;
use s2n_tls::enums::{ClientAuthType, Mode};
use s2n_tls::error::Error as S2nError;

use super::{
    NAME,
    config::{self, Roots},
    keys_elsewhere, policy, reason,
    session::{self, Common, Peer, Running},
    tickets::{Tickets, Wanted},
    unsupported,
};
use crate::{
    ClientOptions, ConfigError, Intermediates, KeyExchange, MemorySessions, Profile, Provider,
    Session, SessionStore, Start,
};

/// A provider of client sessions over s2n-tls.
pub struct Client {
    key_exchange: KeyExchange,
    profile: Profile,
    is_fips: bool,
    config: Config,
    common: Common,
    tickets: Option<Tickets>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("key_exchange", &self.key_exchange)
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Builds the configuration, which all sessions share.
    ///
    /// # Errors
    /// The error names the option that cannot be used.
    pub fn new(options: &ClientOptions) -> Result<Self, ConfigError> {
        #[cfg(feature = "rustls")]
        config::refuse_change(options.change_rustls.as_ref().map(drop))?;
        config::refuse_shares_ahead(options.key_shares_ahead)?;
        config::refuse_compression(&options.shared.compression)?;
        let options = &*options.under_profile()?;
        super::check_module(options.shared.profile)?;
        let policy = policy::under(
            options.shared.profile,
            &options.shared.key_exchange,
            options.shared.suites.as_deref(),
        )?;
        let mut builder = config::builder(policy, &options.shared.alpn)?;
        let roots = Roots::new(&options.trust)?;
        roots.apply(&mut builder)?;
        if let Some(identity) = &options.identity {
            let chain = if options.shared.intermediates == Intermediates::Sent {
                config::chain(identity)?
            } else {
                config::chain(&identity.without_intermediates())?
            };
            config::add_chain(&mut builder, &chain, policy)?;
            keys_elsewhere::install(&mut builder, std::slice::from_ref(identity))?;
        }
        // A client without a certificate answers a server's request with an empty list.
        builder
            .set_client_auth_type(ClientAuthType::Optional)
            .and_then(|builder| builder.enable_session_tickets(!options.no_resumption))
            .map_err(|error| unsupported(reason(&error)))?;
        let config = builder
            .build()
            .map_err(|error| unsupported(reason(&error)))?;
        Ok(Self {
            key_exchange: options.shared.key_exchange.clone(),
            profile: options.shared.profile,
            is_fips: policy.is_fips(),
            config,
            common: Common {
                profile: options.shared.profile,
                alpn: options.shared.alpn.clone().into(),
                key_log: options.shared.key_log.open()?,
                verifier: options.trust.custom().map(|custom| custom.verifier.clone()),
                leaf: options
                    .identity
                    .as_ref()
                    .and_then(|identity| identity.certificates().first().cloned()),
            },
            tickets: (!options.no_resumption).then(|| {
                Tickets::new(store(options), session_policy(options, policy.name, &roots))
            }),
        })
    }

    fn connect(&self, name: &ServerName<'_>, params: &[u8]) -> Result<Connection, S2nError> {
        let mut connection = session::connection(Mode::Client, self.config.clone(), params)?;
        match name {
            ServerName::DnsName(name) => drop(connection.set_server_name(name.as_ref())?),
            // RFC 6066 §3: an address is not a server name.
            ServerName::IpAddress(address) => {
                connection.set_verify_host_callback(Address(IpAddr::from(*address)))?;
            }
            _ => {}
        }
        Ok(connection)
    }
}

impl Provider for Client {
    fn name(&self) -> &'static str {
        NAME
    }

    fn supports_early_data(&self) -> bool {
        false
    }

    fn profile(&self) -> Profile {
        self.profile
    }

    fn is_fips(&self) -> bool {
        self.is_fips
    }

    fn key_exchange(&self) -> &KeyExchange {
        &self.key_exchange
    }

    fn session_context(&self, server_name: &str) -> Option<Vec<u8>> {
        let tickets = self.tickets.as_ref()?;
        let state = tickets.peek(server_name, SystemTime::now())?;
        Some(state.scope.to_vec())
    }

    fn session(&self, start: Start<'_>) -> Result<Box<dyn Session>, ConfigError> {
        let Start::Client(start) = start else {
            return Err(unsupported(
                "built from ClientOptions; a server session needs ServerOptions",
            ));
        };
        let name = start.server_name;
        let server = ServerName::try_from(name).map_err(|_| {
            unsupported(format!("`{name}` is neither a DNS name nor an IP address"))
        })?;
        let connect = || {
            self.connect(&server, start.params)
                .map_err(|error| unsupported(reason(&error)))
        };
        let mut connection = connect()?;
        let tickets = self.tickets.as_ref().filter(|_| start.resume);
        let wanted = Wanted {
            policy: &self.key_exchange,
            scope: start.resumption_context,
        };
        let ticket = tickets
            .and_then(|tickets| tickets.get(name, wanted, SystemTime::now()))
            .filter(|ticket| start.lineage.is_none_or(|wanted| wanted == ticket.lineage));
        let mut lineage = None;
        if let Some(ticket) = ticket {
            if connection.set_session_ticket(&ticket.bytes).is_ok() {
                lineage = Some(ticket.lineage);
            } else {
                // The ticket may have been applied halfway.
                connection = connect()?;
            }
        }
        let peer = Peer {
            name: name.to_owned(),
            is_sent: matches!(server, ServerName::DnsName(_)),
            tickets: self.tickets.clone(),
            lineage,
            scope: start.resumption_context.into(),
        };
        Ok(Box::new(Running::client(
            connection,
            self.common.clone(),
            peer,
        )))
    }
}

fn store(options: &ClientOptions) -> Arc<dyn SessionStore> {
    match &options.session_store {
        Some(store) => store.0.clone(),
        None => Arc::new(MemorySessions::new()),
    }
}

/// Returns a digest of all that decides which sessions a client may begin: each part behind its length.
fn session_policy(options: &ClientOptions, policy: &str, roots: &Roots) -> [u8; 16] {
    let mut context = digest::Context::new(&digest::SHA256);
    let mut add = |part: &[u8]| {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    };
    add(options.shared.profile.name().as_bytes());
    add(policy.as_bytes());
    add(&options.shared.alpn.join(&0));
    add(&[
        u8::from(options.trust.custom().is_some()),
        u8::from(options.shared.key_exchange.requires_post_quantum()),
    ]);
    let groups = options.shared.key_exchange.groups();
    let groups: Vec<u8> = groups.iter().flat_map(|it| it.0.to_be_bytes()).collect();
    add(&groups);
    let identity = options.identity.as_ref();
    let leaf = identity.and_then(|identity| identity.certificates().first());
    add(leaf.map_or(&[][..], |leaf| leaf));
    match roots {
        Roots::Anyone => add(&[]),
        Roots::Pem(roots) => roots.iter().for_each(|root| add(root.as_bytes())),
    }
    let digest = context.finish();
    digest.as_ref().first_chunk().copied().unwrap_or_default()
}

/// Verifier that accepts a certificate for an address.
struct Address(IpAddr);

impl VerifyHostNameCallback for Address {
    fn verify_host_name(&self, name: &str) -> bool {
        name.parse() == Ok(self.0)
    }
}
