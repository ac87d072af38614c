//! Server sessions over s2n-tls.

mod named;
mod parts;

use std::{sync::Arc, time::SystemTime};

use s2n_tls::enums::Mode;

use self::{named::Named, parts::Parts};
use super::{
    NAME, config, policy,
    session::{self, Client, Common, Running, failure},
    unsupported,
};
use crate::{
    Alert, CertificateAlgorithms, ChainChoice, ClientAuth, ClientHello, ConfigError, Error, Group,
    KeyAlgorithm, KeyExchange, Profile, Provider, ServerFlight, ServerOptions, ServerStart,
    Session, Start, Suite,
    admission::{self, ByServerName},
    messages::flight,
    options::Intermediates,
    session::accepting::{Accepting, Answer},
};

#[cfg(test)]
pub(super) mod tests;

/// A provider of server sessions over s2n-tls.
pub struct Server {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

struct Shared {
    policies: ByServerName<Named>,
    common: Common,
}

impl Server {
    /// Builds the configurations, which all sessions share.
    ///
    /// # Errors
    /// The error names the option that cannot be used.
    pub fn new(options: &ServerOptions) -> Result<Self, ConfigError> {
        refuse_early_data(options)?;
        refuse_choices(options)?;
        config::refuse_compression(&options.shared.compression)?;
        #[cfg(feature = "rustls")]
        config::refuse_change(options.change_rustls.as_ref().map(drop))?;
        let options = &*options.under_profile()?;
        super::check_module(options.shared.profile)?;
        let parts = Arc::new(Parts::new(options)?);
        let policies = ByServerName::build(
            &options.shared.key_exchange,
            &options.key_exchange_for,
            |key_exchange| {
                let policy = policy::under(
                    options.shared.profile,
                    key_exchange,
                    options.shared.suites.as_deref(),
                )?;
                let policy = policy::of_server(policy);
                Named::new(key_exchange, &parts, policy)
            },
        )?;
        let shared = Shared {
            policies,
            common: Common {
                profile: options.shared.profile,
                alpn: parts.alpn.clone(),
                key_log: options.shared.key_log.open()?,
                verifier: match &options.client_auth {
                    ClientAuth::None => None,
                    ClientAuth::Optional(trust) | ClientAuth::Required(trust) => {
                        trust.custom().map(|custom| custom.verifier.clone())
                    }
                },
                leaf: None,
            },
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }
}

/// Refuses options that ask for 0-RTT.
pub(super) fn refuse_early_data(options: &ServerOptions) -> Result<(), ConfigError> {
    if options.early_data.is_on() {
        return Err(unsupported(
            "it has no 0-RTT in QUIC; leave early_data off, or use rustls",
        ));
    }
    Ok(())
}

/// Refuses chain choices that s2n-tls does not support.
pub(super) fn refuse_choices(options: &ServerOptions) -> Result<(), ConfigError> {
    if options.chain_choice != ChainChoice::First {
        return Err(unsupported(
            "it chooses among certificates itself; leave chain_choice out, or use rustls",
        ));
    }
    match options.shared.intermediates {
        Intermediates::LeftOutFor(_) => Err(unsupported(
            "it knows no application protocol when it chooses a chain; use \
             leave_out_intermediates, with a configuration for these clients alone, or rustls",
        )),
        Intermediates::Sent | Intermediates::LeftOut => Ok(()),
    }
}

impl Provider for Server {
    fn name(&self) -> &'static str {
        NAME
    }

    fn supports_early_data(&self) -> bool {
        false
    }

    fn profile(&self) -> Profile {
        self.shared.common.profile
    }

    fn is_fips(&self) -> bool {
        let mut policies = self.shared.policies.iter();
        policies.all(|named| named.policy.is_fips())
    }

    fn key_exchange(&self) -> &KeyExchange {
        &self.shared.policies.default().key_exchange
    }

    fn key_exchange_for(&self, server_name: Option<&str>) -> &KeyExchange {
        &self.shared.policies.get(server_name).key_exchange
    }

    fn server_flights(&self, hello: &ClientHello, params: usize) -> Vec<ServerFlight> {
        let flight = self.shared.flight(hello, params);
        flight.into_iter().collect()
    }

    fn session(&self, start: Start<'_>) -> Result<Box<dyn Session>, ConfigError> {
        let Start::Server(start) = start else {
            return Err(unsupported(
                "built from ServerOptions; a client session needs ClientOptions",
            ));
        };
        Ok(Box::new(Accepting::new(self.shared.clone(), start)))
    }
}

impl Shared {
    /// Returns the sizes of the answer to a client, if they are known. They are unknown if there
    /// are several certificates, because s2n-tls chooses among them, and if clients are asked for
    /// theirs.
    fn flight(&self, hello: &ClientHello, params: usize) -> Option<ServerFlight> {
        admission::check(hello, &self.common.alpn).ok()?;
        let (named, group) = self.choose(hello).ok()?;
        let [identity] = &*named.parts.identities else {
            return None;
        };
        let leaf = CertificateAlgorithms::of(identity.certificates().first()?)?;
        // s2n-tls loads Ed25519 keys but makes no signatures with them.
        if named.parts.clients.is_some() || leaf.key == KeyAlgorithm::Ed25519 {
            return None;
        }
        if !admission::verifies_any(hello, named.schemes.as_ref()?) {
            return None;
        }
        let offered = |suite: &&Suite| hello.cipher_suites().contains(&(**suite as u16));
        let answer = flight::Answer {
            hello,
            group,
            suite: *named.policy.suites.iter().find(offered)?,
            alpn: &self.common.alpn,
            params,
            request: 0,
        };
        let chain = flight::Chain {
            certificates: identity.certificates(),
            ocsp: identity.ocsp(),
        };
        answer.with(0, chain, None)
    }

    /// Returns the configurations and the group for a client.
    fn choose(&self, hello: &ClientHello) -> Result<(&Named, Group), Error> {
        let mut named = self.policies.get(hello.server_name());
        // s2n-tls makes its own choice, and prefers post-quantum groups as this code does.
        let mut choice = admission::choose_group(named.policy.groups, hello);
        if !choice.as_ref().is_ok_and(|group| group.is_post_quantum()) {
            // The client may have pure ML-KEM alone.
            if let Some(pure) = named.pure_for(hello) {
                choice = admission::choose_group(pure.policy.groups, hello);
                named = pure;
            } else if let Ok(full) = policy::find(&named.key_exchange, None) {
                // The error of a server that requires post-quantum names the pure group too.
                choice = choice.or_else(|_| admission::choose_group(full.groups, hello));
            }
        }
        let group = choice?;
        let suites = named.policy.suites.iter().map(|suite| *suite as u16);
        admission::check_suites(hello, suites, self.common.profile)?;
        Ok((named, group))
    }
}

impl Answer for Shared {
    fn answer(
        &self,
        hello: &ClientHello,
        start: ServerStart<'_>,
    ) -> Result<Box<dyn Session>, Error> {
        admission::check(hello, &self.common.alpn)?;
        let (named, group) = self.choose(hello)?;
        if named.schemes.as_deref() == Some(&[]) && !hello.has_ticket() {
            return Err(named.policy.signs_nothing());
        }
        admission::check_signatures(hello, named.schemes.as_deref())?;
        let (lineages, config) = named
            .config(
                group,
                hello.ticket(),
                start.resumption_context,
                SystemTime::now(),
            )
            .ok_or_else(|| Error::new(Alert::INTERNAL_ERROR, "a group without configuration"))?;
        let connection = session::connection(Mode::Server, config, start.params)
            .map_err(|error| failure::of(&error))?;
        let client = Client {
            hello,
            lineages,
            group,
        };
        Ok(Box::new(Running::server(
            connection,
            self.common.clone(),
            &client,
        )))
    }
}
