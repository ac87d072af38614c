//! Server sessions over s2n-tls.

use std::{
    borrow::Cow,
    collections::VecDeque,
    sync::{Arc, OnceLock, PoisonError, RwLock},
    time::SystemTime,
};

use s2n_tls::cert_chain::CertificateChain;
use s2n_tls::config::Config;
use s2n_tls::enums::{ClientAuthType, Mode};

use super::{
    NAME,
    config::{self, AnyName, Roots},
    keys_elsewhere,
    policy::{self, Policy},
    reason,
    session::{self, Client, Common, Lineages, Running, failure},
    unsupported,
};
use crate::{
    Alert, CertificateAlgorithms, ChainChoice, ClientAuth, ClientHello, ConfigError, Error, Group,
    Identity, KeyAlgorithm, KeyExchange, Lineage, Profile, Provider, ServerFlight, ServerOptions,
    ServerStart, Session, SignatureScheme, Start, Suite, Tickets,
    admission::{self, ByServerName},
    messages::flight,
    options::Intermediates,
    session::accepting::{Accepting, Answer},
    tickets::s2n::Generation,
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
        answer.with(0, identity.certificates(), None)
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

/// One key-exchange policy of the server and the configurations in use for it.
struct Named {
    key_exchange: KeyExchange,
    policy: &'static Policy,
    parts: Arc<Parts>,
    /// Schemes of the identities that the policy also has.
    schemes: Option<Vec<SignatureScheme>>,
    live: RwLock<Live>,
    /// The same for clients that have pure ML-KEM alone, which the policy for all others lacks.
    pure: OnceLock<Option<Box<Self>>>,
}

/// Configurations in use, and the source of their ticket keys.
struct Live {
    keys: Option<Arc<Generation>>,
    /// Configurations of each context that tickets are bound to, newest last. Without tickets one
    /// entry serves all.
    scopes: VecDeque<(Box<[u8]>, Arc<Scope>)>,
}

/// Maximum number of contexts with configurations. A transport binds tickets to its version, and
/// has few of these.
const SCOPES: usize = 8;

/// Configurations for each choice that a ClientHello can lead to, with their ticket keys. Without
/// tickets there is only one.
struct Scope {
    configs: Vec<(Lineages, Config)>,
    keys: Option<Generation>,
}

impl Live {
    fn find(&self, scope: &[u8]) -> Option<Arc<Scope>> {
        let mut scopes = self.scopes.iter();
        let found = scopes.find(|(name, _)| **name == *scope || self.keys.is_none());
        found.map(|(_, found)| found.clone())
    }

    fn has_keys(&self, keys: Option<&Arc<Generation>>) -> bool {
        match (&self.keys, keys) {
            (Some(ours), Some(keys)) => Arc::ptr_eq(ours, keys),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    fn add(&mut self, name: &[u8], scope: Arc<Scope>) {
        if self.scopes.len() >= SCOPES {
            self.scopes.pop_front();
        }
        self.scopes.push_back((name.into(), scope));
    }
}

impl Named {
    fn new(
        key_exchange: &KeyExchange,
        parts: &Arc<Parts>,
        policy: &'static Policy,
    ) -> Result<Self, ConfigError> {
        let now = SystemTime::now();
        let keys = parts.keys(now)?;
        let scope = parts.make(key_exchange, policy, keys.as_deref(), &[], now)?;
        let scopes = VecDeque::from([(Box::default(), Arc::new(scope))]);
        Ok(Self {
            key_exchange: key_exchange.clone(),
            policy,
            parts: parts.clone(),
            schemes: parts.schemes.clone().map(|mut schemes| {
                let of_policy = policy.schemes();
                schemes.retain(|scheme| of_policy.contains(scheme));
                schemes
            }),
            live: RwLock::new(Live { keys, scopes }),
            pure: OnceLock::new(),
        })
    }

    /// Returns the configurations for a client that has no post-quantum group of this policy, but
    /// one that only another policy of s2n-tls has. They are built for the first such client.
    fn pure_for(&self, hello: &ClientHello) -> Option<&Self> {
        let strict = policy::strict_twin(&self.key_exchange, self.policy)?;
        let mut groups = strict.groups.iter();
        if !groups.any(|group| hello.groups().contains(group)) {
            return None;
        }
        let build = || {
            let named = Self::new(&self.key_exchange, &self.parts, strict).ok()?;
            Some(Box::new(named))
        };
        self.pure.get_or_init(build).as_deref()
    }

    /// Returns the configuration for a handshake with a group, with new ticket keys when they are
    /// due. s2n-tls takes keys only while a configuration is built.
    ///
    /// A ticket whose lineage the policy refuses, whose scope is another one, or whose key has
    /// expired gets a configuration that cannot open it, so that the handshake is a full one.
    fn config(
        &self,
        group: Group,
        ticket: Option<&[u8]>,
        scope: &[u8],
        now: SystemTime,
    ) -> Option<(Lineages, Config)> {
        let scope = self.scope(scope, now)?;
        let issued = Lineage::of(group);
        let accepted = match (&scope.keys, ticket) {
            (Some(keys), Some(ticket)) => keys.lineage_of(ticket),
            _ => None,
        };
        let accepted = accepted
            .filter(|lineage| lineage.may_resume(&self.key_exchange))
            .unwrap_or(Lineage::PostQuantum);
        let wanted = Lineages { issued, accepted };
        let mut configs = scope.configs.iter();
        configs
            .find(|(lineages, _)| *lineages == wanted || scope.keys.is_none())
            .map(|(_, config)| (wanted, config.clone()))
    }

    /// Returns the configurations for a scope.
    fn scope(&self, name: &[u8], now: SystemTime) -> Option<Arc<Scope>> {
        let keys = self.parts.keys(now).ok()?;
        let current = |live: &Live| {
            let found = live.has_keys(keys.as_ref()).then(|| live.find(name));
            found.flatten()
        };
        if let Some(scope) = current(&self.live.read().unwrap_or_else(PoisonError::into_inner)) {
            return Some(scope);
        }
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(scope) = current(&live) {
            return Some(scope);
        }
        let (key_exchange, policy) = (&self.key_exchange, self.policy);
        let Ok(scope) = self
            .parts
            .make(key_exchange, policy, keys.as_deref(), name, now)
        else {
            // Without new configurations the old ones can still do full handshakes.
            return live.find(name);
        };
        if !live.has_keys(keys.as_ref()) {
            live.scopes.clear();
            live.keys = keys;
        }
        let scope = Arc::new(scope);
        live.add(name, scope.clone());
        Some(scope)
    }
}

/// Parts that all configurations of one server share.
struct Parts {
    identities: Vec<Identity>,
    /// Schemes with which the identities sign, if they are known.
    schemes: Option<Vec<SignatureScheme>>,
    chains: Vec<CertificateChain<'static>>,
    clients: Option<(ClientAuthType, Roots)>,
    alpn: Arc<[Vec<u8>]>,
    tickets: Option<Tickets>,
    profile: Profile,
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
            Some((auth, trust)) => Some((auth, Roots::new(trust)?)),
        };
        // A resumed session shows no certificates that a verifier could refuse.
        let no_tickets = options.no_tickets
            || match &options.client_auth {
                ClientAuth::None => false,
                ClientAuth::Optional(trust) | ClientAuth::Required(trust) => {
                    trust.custom().is_some()
                }
            };
        let identities: Vec<Identity> = if options.shared.intermediates == Intermediates::Sent {
            options.identities.clone()
        } else {
            let whole = options.identities.iter();
            whole.map(Identity::without_intermediates).collect()
        };
        Ok(Self {
            chains: identities
                .iter()
                .map(config::chain)
                .collect::<Result<_, _>>()?,
            schemes: admission::schemes_of(&identities, |_| None),
            identities,
            clients,
            alpn: options.shared.alpn.clone().into(),
            tickets: (!no_tickets).then(|| options.tickets.clone().unwrap_or_default()),
            profile: options.shared.profile,
        })
    }

    /// Returns the source of the ticket keys if tickets are issued.
    fn keys(&self, now: SystemTime) -> Result<Option<Arc<Generation>>, ConfigError> {
        let tickets = self.tickets.as_ref();
        tickets.map(|tickets| tickets.s2n().at(now)).transpose()
    }

    fn make(
        &self,
        key_exchange: &KeyExchange,
        policy: &Policy,
        keys: Option<&Generation>,
        scope: &[u8],
        now: SystemTime,
    ) -> Result<Scope, ConfigError> {
        // A session that began under other rules is not resumed.
        let bound = match self.profile {
            Profile::Default => Cow::Borrowed(scope),
            profile => Cow::Owned([b"profile ", profile.name().as_bytes(), b" ", scope].concat()),
        };
        let keys = keys.map(|keys| keys.bound_to(&bound));
        let mut configs = Vec::new();
        for issued in LINEAGES {
            if !policy.groups.iter().any(|it| Lineage::of(*it) == issued) {
                continue;
            }
            for accepted in LINEAGES {
                if !accepted.may_resume(key_exchange) || (keys.is_none() && !configs.is_empty()) {
                    continue;
                }
                let lineages = Lineages { issued, accepted };
                configs.push((lineages, self.build(policy, keys.as_ref(), lineages, now)?));
            }
        }
        Ok(Scope { configs, keys })
    }

    fn build(
        &self,
        policy: &Policy,
        keys: Option<&Generation>,
        Lineages { issued, accepted }: Lineages,
        now: SystemTime,
    ) -> Result<Config, ConfigError> {
        let mut builder = config::builder(policy, &self.alpn)?;
        for chain in &self.chains {
            config::add_chain(&mut builder, chain, policy)?;
        }
        keys_elsewhere::install(&mut builder, &self.identities)?;
        if let Some((auth, roots)) = &self.clients {
            roots.apply(&mut builder)?;
            builder
                .set_client_auth_type(*auth)
                .and_then(|builder| builder.set_verify_host_callback(AnyName))
                .map_err(|error| unsupported(reason(&error)))?;
        }
        let keyed = match keys {
            Some(keys) => keys.add_to(&mut builder, issued, accepted, now),
            None => Ok(()),
        };
        keyed
            .and_then(|()| builder.build())
            .map_err(|error| unsupported(reason(&error)))
    }
}

const LINEAGES: [Lineage; 2] = [Lineage::PostQuantum, Lineage::Classical];
