//! Server sessions over rustls.

use std::sync::Arc;
use std::time::Instant;

use ::rustls::crypto::CryptoProvider;
use ::rustls::quic::{ServerConnection, Version};
use ::rustls::server::danger::ClientCertVerifier;
use ::rustls::server::{NoServerSessionStorage, ProducesTickets};
use ::rustls::{ServerConfig, version};

use super::session::Running;
use crate::admission::{self, ByServerName};
use crate::messages::flight::Answer;
use crate::options::{DEFAULT_SUITES, Key};
use crate::providers::rustls::certificates::identities::Identities;
use crate::providers::rustls::crypto::compress::Compression;
use crate::providers::rustls::locals::capture::{self, Capture};
use crate::providers::rustls::resumption::tickets::{self, Kept, Sealed};
use crate::providers::rustls::{
    NAME,
    certificates::verify,
    crypto::{groups, suites},
    unsupported, wrong_side,
};
use crate::session::accepting::{Accepting, Answer as Answering};
use crate::tickets::sessions::{Audience, Sessions};
use crate::{
    Alert, ChainChoice, ClientHello, ConfigError, EarlyDataPolicy, EarlyDataStatus, Error, Group,
    KeyExchange, Profile, Provider, ServerFlight, ServerOptions, ServerStart, Session, Side,
    SignatureScheme, Start, Suite,
};

/// A provider of server sessions over rustls.
pub struct Server {
    pub(super) shared: Arc<Shared>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

/// Everything that sessions need before they have seen a ClientHello.
pub(super) struct Shared {
    pub(super) profile: Profile,
    pub(super) policies: ByServerName<Policy>,
    pub(super) alpn: Vec<Vec<u8>>,
    /// `None` if the certificates are not known here.
    pub(super) identities: Option<Arc<Identities>>,
    pub(super) suites: Vec<Suite>,
    /// Bytes of the CertificateRequest; 0 if there is none.
    pub(super) request: usize,
    /// Schemes with which the identities sign; `None` if other certificates may be presented.
    pub(super) schemes: Option<Vec<SignatureScheme>>,
    /// Sessions of the tickets, if 0-RTT data is accepted.
    pub(super) sessions: Option<Arc<Sessions>>,
}

pub(super) struct Policy {
    pub(super) key_exchange: KeyExchange,
    pub(super) groups: Vec<Group>,
    /// Configurations for each of `groups`, in their order.
    pub(super) configs: Vec<Arc<ServerConfig>>,
}

impl Server {
    /// Builds the configurations, which all sessions share.
    ///
    /// # Errors
    /// The error names the option that cannot be used.
    pub fn new(options: &ServerOptions) -> Result<Self, ConfigError> {
        Self::over(options, |crypto| crypto)
    }

    /// Builds the configurations over crypto that `wrap` returns, for example to time or to count
    /// its operations. Needs the feature `unstable-rustls`: the types of rustls may change in any
    /// release.
    ///
    /// `wrap` receives the crypto that the options ask for: once for the certificates, and once for
    /// each group of each policy, which is then the only group in it.
    ///
    /// # Errors
    /// The error names the option that cannot be used.
    ///
    /// # Security
    /// Nothing checks what `wrap` returns: it can accept groups that the policy excludes. A
    /// transport that enforces the policy still refuses them once they are negotiated.
    #[cfg(feature = "unstable-rustls")]
    pub fn with_crypto(
        options: &ServerOptions,
        wrap: impl Fn(CryptoProvider) -> CryptoProvider,
    ) -> Result<Self, ConfigError> {
        Self::over(options, wrap)
    }

    fn over(
        options: &ServerOptions,
        wrap: impl Fn(CryptoProvider) -> CryptoProvider,
    ) -> Result<Self, ConfigError> {
        let options = &*options.under_profile()?;
        let parts = Parts::new(options, &options.shared.alpn, &wrap)?;
        let policies = ByServerName::build(
            &options.shared.key_exchange,
            &options.key_exchange_for,
            |key_exchange| {
                let groups = groups::of_policy(key_exchange)?;
                let configs = groups
                    .iter()
                    .map(|group| {
                        let crypto = suites::crypto(options.shared.suites.as_deref(), &[*group])?;
                        parts.config(options, key_exchange, wrap(crypto))
                    })
                    .collect::<Result<_, _>>()?;
                Ok(Policy {
                    key_exchange: key_exchange.clone(),
                    groups,
                    configs,
                })
            },
        )?;
        let alpn = options.shared.alpn.clone();
        Ok(Self {
            shared: Arc::new(Shared {
                profile: options.shared.profile,
                policies,
                alpn,
                suites: options
                    .shared
                    .suites
                    .clone()
                    .unwrap_or(DEFAULT_SUITES.to_vec()),
                request: parts.request_len(),
                schemes: schemes(options),
                identities: Some(parts.resolver),
                sessions: parts.tickets.into_sessions(),
            }),
        })
    }
}

fn schemes(options: &ServerOptions) -> Option<Vec<SignatureScheme>> {
    if options.change_rustls.is_some() {
        return None;
    }
    admission::schemes_of(&options.identities, |identity| match identity.key() {
        Key::Signer(signer) => Some(signer.schemes().to_vec()),
        Key::Der(_) => None,
    })
}

/// Parts that all configurations of one server share.
pub(in crate::providers::rustls) struct Parts {
    pub(in crate::providers::rustls) resolver: Arc<Identities>,
    pub(in crate::providers::rustls) clients: Arc<dyn ClientCertVerifier>,
    pub(in crate::providers::rustls) compression: Compression,
    tickets: Tickets,
    pub(in crate::providers::rustls) audience: Audience,
    key_log: Arc<Capture>,
}

/// How a server makes tickets.
pub(super) enum Tickets {
    None,
    Sealed(Arc<dyn ProducesTickets>),
    Kept(Arc<Sessions>),
}

/// Number of tickets without 0-RTT: a resumed client gets a new one each time.
const SEALED_TICKETS: usize = 1;
/// Number of tickets with 0-RTT, for early data on two connections at once.
const KEPT_TICKETS: usize = 2;
/// Value required by QUIC (RFC 9001 §4.6.1), whose own flow control limits the data.
const MAX_EARLY_DATA_SIZE: u32 = u32::MAX;

impl Parts {
    pub(in crate::providers::rustls) fn new(
        options: &ServerOptions,
        alpn: &[Vec<u8>],
        wrap: impl Fn(CryptoProvider) -> CryptoProvider,
    ) -> Result<Self, ConfigError> {
        let crypto = Arc::new(wrap(suites::crypto(options.shared.suites.as_deref(), &[])?));
        // Chains with and without their intermediates, and their OCSP responses.
        let compression =
            Compression::new(&options.shared.compression, 4 * options.identities.len())?;
        let shared = options.tickets.clone().unwrap_or_default();
        let tickets = if options.no_tickets {
            Tickets::None
        } else {
            Tickets::of(&shared, options.early_data)?
        };
        Ok(Self {
            resolver: Arc::new(Identities::new(options, alpn, &crypto, &compression)?),
            clients: verify::of_clients(&options.client_auth, &crypto)?,
            compression,
            tickets,
            audience: tickets::audience(&options.client_auth, options.shared.profile)?,
            key_log: Arc::new(Capture::and(options.shared.key_log.open()?)),
        })
    }

    /// Returns the bytes of the CertificateRequest; 0 if there is none.
    fn request_len(&self) -> usize {
        if !self.clients.offer_client_auth() {
            return 0;
        }
        let schemes = self.clients.supported_verify_schemes().len();
        let authorities = match self.clients.root_hint_subjects() {
            [] => 0,
            names => {
                4 + 2
                    + names
                        .iter()
                        .map(|name| 2 + name.as_ref().len())
                        .sum::<usize>()
            }
        };
        let compression = match self.compression.algorithms() {
            0 => 0,
            algorithms => 4 + 1 + 2 * algorithms,
        };
        4 + 1 + 2 + (4 + 2 + 2 * schemes) + authorities + compression
    }

    fn config(
        &self,
        options: &ServerOptions,
        policy: &KeyExchange,
        crypto: CryptoProvider,
    ) -> Result<Arc<ServerConfig>, ConfigError> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(crypto))
            .with_protocol_versions(&[&version::TLS13])
            .map_err(|error| unsupported(error.to_string()))?
            .with_client_cert_verifier(self.clients.clone())
            .with_cert_resolver(self.resolver.clone());
        self.compression.apply_to_server(&mut config);
        if let Some(change) = &options.change_rustls {
            (change.0)(&mut config);
        }
        // The transport relies on everything set below.
        config.alpn_protocols.clone_from(&options.shared.alpn);
        config.key_log = self.key_log.clone();
        self.tickets.apply_to(&mut config, policy, self.audience);
        Ok(Arc::new(config))
    }
}

impl Tickets {
    /// Returns tickets of a set, which carry their sessions unless they allow 0-RTT data.
    pub(super) fn of(
        set: &crate::Tickets,
        early_data: EarlyDataPolicy,
    ) -> Result<Self, ConfigError> {
        Ok(match early_data {
            EarlyDataPolicy::Off => Self::Sealed(set.rustls().ticketer()?),
            EarlyDataPolicy::On => Self::Kept(set.rustls().sessions().clone()),
        })
    }

    /// Returns the sessions of the tickets, if 0-RTT data is accepted.
    pub(super) fn into_sessions(self) -> Option<Arc<Sessions>> {
        match self {
            Self::Kept(sessions) => Some(sessions),
            Self::None | Self::Sealed(_) => None,
        }
    }

    /// Lets a configuration make these tickets, and no others.
    pub(super) fn apply_to(
        &self,
        config: &mut ServerConfig,
        policy: &KeyExchange,
        audience: Audience,
    ) {
        config.ticketer = Arc::new(NoTickets);
        config.max_early_data_size = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        let policy = policy.clone();
        match self {
            Tickets::None => config.send_tls13_tickets = 0,
            Tickets::Sealed(inner) => {
                let inner = inner.clone();
                config.send_tls13_tickets = SEALED_TICKETS;
                config.ticketer = Arc::new(Sealed {
                    inner,
                    policy,
                    audience,
                });
            }
            Tickets::Kept(sessions) => {
                let sessions = sessions.clone();
                config.send_tls13_tickets = KEPT_TICKETS;
                config.max_early_data_size = MAX_EARLY_DATA_SIZE;
                config.session_storage = Arc::new(Kept {
                    sessions,
                    policy,
                    audience,
                });
            }
        }
    }
}

impl Provider for Server {
    fn name(&self) -> &'static str {
        NAME
    }

    fn supports_early_data(&self) -> bool {
        self.shared.sessions.is_some()
    }

    fn profile(&self) -> Profile {
        self.shared.profile
    }

    fn is_fips(&self) -> bool {
        let mut policies = self.shared.policies.iter();
        crate::is_fips() && policies.all(|policy| policy.configs.iter().all(|it| it.fips()))
    }

    fn key_exchange(&self) -> &KeyExchange {
        &self.shared.policies.default().key_exchange
    }

    fn key_exchange_for(&self, server_name: Option<&str>) -> &KeyExchange {
        &self.shared.policies.get(server_name).key_exchange
    }

    fn server_flights(&self, hello: &ClientHello, params: usize) -> Vec<ServerFlight> {
        self.shared.flights(hello, params).unwrap_or_default()
    }

    fn chooses_by_round_trips(&self) -> bool {
        let identities = self.shared.identities.as_ref();
        identities.is_some_and(|it| it.choice() == ChainChoice::FewestRoundTrips)
    }

    fn session(&self, start: Start<'_>) -> Result<Box<dyn Session>, ConfigError> {
        let Start::Server(start) = start else {
            return Err(wrong_side(Side::Client));
        };
        Ok(Box::new(Accepting::new(self.shared.clone(), start)))
    }
}

impl Answering for Shared {
    fn answer(
        &self,
        hello: &ClientHello,
        start: ServerStart<'_>,
    ) -> Result<Box<dyn Session>, Error> {
        admission::check(hello, &self.alpn)?;
        let policy = self.policies.get(hello.server_name());
        let group = admission::choose_group(&policy.groups, hello)?;
        let config = policy
            .groups
            .iter()
            .zip(&policy.configs)
            .find_map(|(candidate, config)| (*candidate == group).then(|| config.clone()))
            .ok_or_else(|| Error::new(Alert::INTERNAL_ERROR, "a group without configuration"))?;
        let suites = config.crypto_provider().cipher_suites.iter();
        let suites = suites.map(|suite| suite.suite().into());
        admission::check_suites(hello, suites, self.profile)?;
        admission::check_signatures(hello, self.schemes.as_deref())?;
        capture::take();
        let mut tls = ServerConnection::new(config, Version::V1, start.params.to_vec())
            .map_err(|error| Error::new(Alert::INTERNAL_ERROR, error.to_string()))?;
        let mut early_data = EarlyDataStatus::None;
        if hello.wants_early_data() {
            early_data = EarlyDataStatus::Offered;
            if !self.may_be_early(hello, start) {
                tls.reject_early_data();
            }
        }
        Ok(Box::new(Running::server(tls, early_data, start)))
    }
}

impl Shared {
    fn flights(&self, hello: &ClientHello, params: usize) -> Option<Vec<ServerFlight>> {
        admission::check(hello, &self.alpn).ok()?;
        let policy = self.policies.get(hello.server_name());
        let group = admission::choose_group(&policy.groups, hello).ok()?;
        // rustls follows the client's first choice.
        let offered = hello.cipher_suites().iter();
        let mut suites = offered.filter_map(|suite| Suite::from_iana(*suite));
        let suite = suites.find(|suite| self.suites.contains(suite))?;
        Some(self.identities.as_ref()?.flights(&Answer {
            hello,
            group,
            suite,
            alpn: &self.alpn,
            params,
            request: self.request,
        }))
    }

    /// Returns true if the session of the ticket has the current limits and scope, on which 0-RTT
    /// data relies. rustls checks the rest: the first ticket, the same name, cipher suite and
    /// application protocol, the age of the ticket, and no HelloRetryRequest.
    fn may_be_early(&self, hello: &ClientHello, start: ServerStart<'_>) -> bool {
        let (Some(sessions), Some(ticket)) = (&self.sessions, hello.ticket()) else {
            return false;
        };
        start.early_data.is_on()
            && sessions.peek(ticket, Instant::now(), |session| {
                *session.context == *start.early_context
                    && *session.scope == *start.resumption_context
            }) == Some(true)
    }
}

/// A ticketer that issues and opens nothing.
#[derive(Debug)]
struct NoTickets;

impl ProducesTickets for NoTickets {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}
