//! Providers over configurations of rustls that the application made itself.

use std::sync::Arc;

use ::rustls::crypto::CryptoProvider;
use ::rustls::quic::{ClientConnection, ServerConnection, Version};
use ::rustls::{ClientConfig, ServerConfig};
use rustls_pki_types::ServerName;

use super::client::Client;
use super::server::{Policy, Server, Shared, Tickets};
use crate::admission::ByServerName;
use crate::options;
use crate::providers::rustls::locals::capture::Capture;
use crate::providers::rustls::resumption::remembered::Use;
use crate::providers::rustls::{NAME, unsupported};
use crate::tickets::sessions::Audience;
use crate::{ConfigError, EarlyDataPolicy, Group, KeyExchange, Profile};

/// What to do about a configuration that has no TLS 1.3.
const NO_TLS13: &str = "build the configuration with rustls::version::TLS13 and a provider that has \
     TLS13_AES_128_GCM_SHA256";

impl Client {
    /// Creates a provider over a configuration of rustls: with its crypto, verifier, certificates, key
    /// log and application protocols. Needs the feature `unstable-rustls`: the types of rustls may
    /// change in any release.
    ///
    /// The groups are those of the configuration's crypto, of which `policy` can require some. Tickets
    /// are kept in a memory of this provider instead of the configuration's `resumption`, together with
    /// the group with which their session began. Whether 0-RTT data is offered is the transport's
    /// choice, not that of `enable_early_data`.
    ///
    /// # Errors
    /// The configuration cannot be used with QUIC, has a group that is not known here, or has none that
    /// the policy allows.
    pub fn of_config(
        mut config: ClientConfig,
        policy: Option<KeyExchange>,
    ) -> Result<Self, ConfigError> {
        let key_exchange = policy_of(config.crypto_provider(), policy)?;
        options::check_alpn(NAME, &config.alpn_protocols)?;
        let name =
            ServerName::try_from("localhost").map_err(|error| unsupported(error.to_string()))?;
        ClientConnection::new(Arc::new(config.clone()), Version::V1, name, Vec::new())
            .map_err(|error| unsupported(format!("{error}; {NO_TLS13}")))?;
        // The transport relies on everything set below.
        config.check_selected_alpn = true;
        config.enable_early_data = false;
        config.key_log = Arc::new(Capture {
            user: Some(config.key_log.clone()),
        });
        Ok(Self::remembering(
            config,
            key_exchange,
            Profile::Default,
            (Use::Resume, Use::Store),
            None,
        ))
    }
}

impl Server {
    /// Creates a provider over a configuration of rustls: with its crypto, certificate resolver, client
    /// authentication, key log and application protocols. Needs the feature `unstable-rustls`: the types
    /// of rustls may change in any release.
    ///
    /// The groups are those of the configuration's crypto, among which rustls takes the client's first
    /// choice; so `policy` must allow all of them. 0-RTT data is accepted if `max_early_data_size` is
    /// not 0. An enabled `ticketer` is used unless 0-RTT data is accepted, and there are no tickets if
    /// neither that nor `session_storage` can keep a session.
    ///
    /// # Errors
    /// The configuration cannot be used with QUIC, or has a group that is not known here or that the
    /// policy does not allow.
    pub fn of_config(
        mut config: ServerConfig,
        policy: Option<KeyExchange>,
    ) -> Result<Self, ConfigError> {
        let key_exchange = policy_of(config.crypto_provider(), policy)?;
        check_choices(config.crypto_provider(), &key_exchange)?;
        options::check_alpn(NAME, &config.alpn_protocols)?;
        let early = match config.max_early_data_size {
            0 => EarlyDataPolicy::Off,
            _ => EarlyDataPolicy::On,
        };
        let keeps = config.ticketer.enabled() || config.session_storage.can_cache();
        let tickets = match early {
            _ if config.send_tls13_tickets == 0 || !keeps => Tickets::None,
            EarlyDataPolicy::Off if config.ticketer.enabled() => {
                Tickets::Sealed(config.ticketer.clone())
            }
            _ => Tickets::of(&crate::Tickets::new(), early)?,
        };
        // The transport relies on everything set below.
        config.key_log = Arc::new(Capture {
            user: Some(config.key_log.clone()),
        });
        tickets.apply_to(&mut config, &key_exchange, Audience::default());
        let config = Arc::new(config);
        ServerConnection::new(config.clone(), Version::V1, Vec::new())
            .map_err(|error| unsupported(format!("{error}; {NO_TLS13}")))?;
        let policies = ByServerName::build(&key_exchange, &[], |key_exchange| {
            let groups = groups(config.crypto_provider())?;
            Ok(Policy {
                key_exchange: key_exchange.clone(),
                configs: vec![config.clone(); groups.len()],
                groups,
            })
        })?;
        Ok(Self {
            shared: Arc::new(Shared {
                profile: Profile::Default,
                policies,
                alpn: config.alpn_protocols.clone(),
                identities: None,
                suites: Vec::new(),
                request: 0,
                schemes: None,
                sessions: tickets.into_sessions(),
            }),
        })
    }
}

/// Returns the groups of a provider in its order.
fn groups(crypto: &CryptoProvider) -> Result<Vec<Group>, ConfigError> {
    let mut groups = Vec::new();
    for group in crypto.kx_groups.iter().map(|it| Group(it.name().into())) {
        if !Group::ALL.contains(&group) {
            return Err(unsupported(format!(
                "the configuration has the group {group}, which is not known here; leave it out of \
                 kx_groups, where {:?} can be",
                Group::ALL
            )));
        }
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    Ok(groups)
}

/// Returns the policy of a provider's groups, or the given one if it allows some of them.
fn policy_of(
    crypto: &CryptoProvider,
    policy: Option<KeyExchange>,
) -> Result<KeyExchange, ConfigError> {
    let groups = groups(crypto)?;
    match policy {
        _ if groups.is_empty() => Err(unsupported(
            "the configuration has no group; give its crypto provider kx_groups of TLS 1.3",
        )),
        None => Ok(KeyExchange::Exactly(groups)),
        Some(policy) if groups.iter().any(|group| policy.has(*group)) => Ok(policy),
        Some(policy) => Err(ConfigError::KeyExchange {
            provider: NAME,
            wanted: format!("{policy:?}"),
            hint: format!(
                "the configuration has only {groups:?}; give its crypto provider a group of the \
                 policy, as rustls::crypto::aws_lc_rs has, or change the policy"
            ),
        }),
    }
}

/// Refuses a server whose rustls may choose a group that the policy does not allow, although the client
/// has one that it allows.
fn check_choices(crypto: &CryptoProvider, policy: &KeyExchange) -> Result<(), ConfigError> {
    let mut excluded = groups(crypto)?;
    excluded.retain(|group| !policy.has(*group));
    if excluded.is_empty() {
        return Ok(());
    }
    Err(ConfigError::KeyExchange {
        provider: NAME,
        wanted: format!("{policy:?}"),
        hint: format!(
            "the configuration also has {excluded:?}, which rustls takes if a client lists it first; \
             leave it out of kx_groups"
        ),
    })
}
