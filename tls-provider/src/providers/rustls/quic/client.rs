//! Client sessions over rustls.

use std::sync::Arc;
use std::time::Instant;

use ::rustls::ClientConfig;
use ::rustls::client::Resumption;
use ::rustls::crypto::CryptoProvider;
use ::rustls::quic::{ClientConnection, Version};
use ::rustls::sign::SingleCertAndKey;
use ::rustls::version;
use rustls_pki_types::ServerName;

use super::second_share;
use super::session::Running;
use crate::providers::rustls::crypto::compress::Compression;
use crate::providers::rustls::locals::capture::{Capture, NotedKey};
use crate::providers::rustls::locals::key_shares::Shares;
use crate::providers::rustls::locals::ticket_facts::{self, Issue};
use crate::providers::rustls::resumption::remembered::{Memory, Remembered, Use};
use crate::providers::rustls::{
    NAME,
    certificates::verify,
    crypto::{groups, keys, suites},
    unsupported, wrong_side,
};
use crate::{
    ClientOptions, ConfigError, EarlyDataPolicy, Group, Intermediates, KeyExchange, Profile,
    Provider, Session, Side, Start,
};

/// A provider of client sessions over rustls.
pub struct Client {
    key_exchange: KeyExchange,
    profile: Profile,
    resuming: Arc<ClientConfig>,
    /// Configuration that resumes, and offers 0-RTT data if the ticket allows it.
    early: Arc<ClientConfig>,
    /// Configuration that remembers tickets but uses none.
    fresh: Arc<ClientConfig>,
    /// Tickets that the configurations share.
    memory: Arc<Memory>,
    /// Key pairs that are made ahead of time.
    shares: Option<Shares>,
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
        Self::over(options, |crypto| crypto)
    }

    /// Builds the configuration over crypto that `wrap` returns, for example to time or to count its
    /// operations. Needs the feature `unstable-rustls`: the types of rustls may change in any release.
    ///
    /// `wrap` receives the crypto that the options ask for. The client offers the groups that
    /// `wrap` leaves, in its order.
    ///
    /// # Errors
    /// The error names the option that cannot be used.
    ///
    /// # Security
    /// Nothing checks what `wrap` returns: it can offer groups that the policy excludes. A transport
    /// that enforces the policy still refuses them once they are negotiated.
    #[cfg(feature = "unstable-rustls")]
    pub fn with_crypto(
        options: &ClientOptions,
        wrap: impl Fn(CryptoProvider) -> CryptoProvider,
    ) -> Result<Self, ConfigError> {
        Self::over(options, wrap)
    }

    fn over(
        options: &ClientOptions,
        wrap: impl Fn(CryptoProvider) -> CryptoProvider,
    ) -> Result<Self, ConfigError> {
        refuse_store(options)?;
        let options = &*options.under_profile()?;
        let groups = groups::of_policy(&options.shared.key_exchange)?;
        let mut crypto = suites::crypto(options.shared.suites.as_deref(), &groups)?;
        let shares = Shares::over(&mut crypto, options.key_shares_ahead);
        for group in &mut crypto.kx_groups {
            *group = second_share::of_client(*group);
        }
        let crypto = Arc::new(wrap(crypto));
        let mut config = config(options, &crypto)?;
        // The transport relies on everything set below.
        config.check_selected_alpn = true;
        config.enable_early_data = false;
        config.alpn_protocols.clone_from(&options.shared.alpn);
        config.key_log = Arc::new(Capture::and(options.shared.key_log.open()?));
        let use_of_tickets = if options.no_resumption {
            (Use::Ignore, Use::Ignore)
        } else {
            (Use::Resume, Use::Store)
        };
        let key_exchange = options.shared.key_exchange.clone();
        let profile = options.shared.profile;
        Ok(Self::remembering(
            config,
            key_exchange,
            profile,
            use_of_tickets,
            shares,
        ))
    }

    /// Gives a configuration a memory of tickets. `use_of_tickets` is how sessions that may resume and
    /// those that may not use it.
    pub(super) fn remembering(
        mut config: ClientConfig,
        key_exchange: KeyExchange,
        profile: Profile,
        use_of_tickets: (Use, Use),
        shares: Option<Shares>,
    ) -> Self {
        let memory: Arc<Memory> = Arc::default();
        let store = |tickets| {
            Resumption::store(Arc::new(Remembered {
                memory: memory.clone(),
                policy: key_exchange.clone(),
                tickets,
            }))
        };
        let mut fresh = config.clone();
        config.resumption = store(use_of_tickets.0);
        fresh.resumption = store(use_of_tickets.1);
        let mut early = config.clone();
        early.enable_early_data = profile.allows_early_data();
        Self {
            resuming: Arc::new(config),
            early: Arc::new(early),
            fresh: Arc::new(fresh),
            key_exchange,
            profile,
            memory,
            shares,
        }
    }

    /// Returns true if there is a ticket of this server that allows 0-RTT data.
    pub fn has_early_ticket(&self, server_name: &str) -> bool {
        ServerName::try_from(server_name)
            .is_ok_and(|name| self.memory.has_early(&name, &self.key_exchange))
    }
}

/// Returns a configuration with the trust and the certificate of the options, over TLS 1.3.
pub(in crate::providers::rustls) fn config(
    options: &ClientOptions,
    crypto: &Arc<CryptoProvider>,
) -> Result<ClientConfig, ConfigError> {
    let builder = ClientConfig::builder_with_provider(crypto.clone())
        .with_protocol_versions(&[&version::TLS13])
        .map_err(|error| unsupported(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verify::of_servers(&options.trust, crypto)?);
    let mut config = match &options.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let mut certified = keys::load(identity, crypto)?;
            if options.shared.intermediates != Intermediates::Sent {
                certified.cert.truncate(1);
            }
            certified.key = Arc::new(NotedKey {
                signer: Side::Client,
                key: certified.key,
            });
            let resolver = SingleCertAndKey::from(certified);
            builder.with_client_cert_resolver(Arc::new(resolver))
        }
    };
    Compression::new(&options.shared.compression, 1)?.apply_to_client(&mut config);
    if let Some(change) = &options.change_rustls {
        (change.0)(&mut config);
    }
    Ok(config)
}

/// Refuses a session store, because rustls could not put anything into it.
pub(in crate::providers::rustls) fn refuse_store(
    options: &ClientOptions,
) -> Result<(), ConfigError> {
    match options.session_store {
        None => Ok(()),
        Some(_) => Err(unsupported(
            "rustls 0.23 cannot turn a session into bytes, so that no store can keep it; leave \
             session_store out, or use s2n-tls",
        )),
    }
}

impl Provider for Client {
    fn name(&self) -> &'static str {
        NAME
    }

    fn supports_early_data(&self) -> bool {
        self.profile.allows_early_data()
    }

    fn profile(&self) -> Profile {
        self.profile
    }

    fn is_fips(&self) -> bool {
        self.resuming.fips() && crate::is_fips()
    }

    fn key_exchange(&self) -> &KeyExchange {
        &self.key_exchange
    }

    fn may_prepare(&self) -> bool {
        let shares = self.shares.as_ref();
        shares.is_some_and(|shares| shares.is_short(Instant::now()))
    }

    fn prepare(&self) {
        if let Some(shares) = &self.shares {
            shares.make_one(Instant::now());
        }
    }

    fn can_predict(&self, group: Group) -> bool {
        self.key_exchange.has(group)
    }

    fn session(&self, start: Start<'_>) -> Result<Box<dyn Session>, ConfigError> {
        let Start::Client(start) = start else {
            return Err(wrong_side(Side::Server));
        };
        let name = start.server_name;
        let verified = ServerName::try_from(name.to_owned()).map_err(|_| {
            unsupported(format!("`{name}` is neither a DNS name nor an IP address"))
        })?;
        let sent = matches!(verified, ServerName::DnsName(_)).then(|| name.to_owned());
        let config = match (start.resume, start.early_data) {
            (false, _) => &self.fresh,
            (true, EarlyDataPolicy::Off) => &self.resuming,
            (true, EarlyDataPolicy::On) => &self.early,
        };
        let params = start.params.to_vec();
        crate::providers::rustls::locals::capture::take();
        ticket_facts::begin(Issue {
            scope: start.resumption_context.into(),
            resumes: start.lineage,
            shares: self.key_exchange.first_shares(start.group_hint),
            ..Issue::default()
        });
        let connect = || ClientConnection::new(config.clone(), Version::V1, verified, params);
        let tls = match &self.shares {
            Some(shares) => shares.lend(Instant::now(), connect),
            None => connect(),
        };
        let tls = tls.map_err(|error| unsupported(error.to_string()))?;
        Ok(Box::new(Running::client(
            tls,
            sent,
            start.resumption_context,
        )))
    }
}
