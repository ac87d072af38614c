//! Configurations for TLS over TCP, with the certificates and policies of QUIC.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use ::rustls::client::Resumption;
use ::rustls::crypto::CryptoProvider;
use ::rustls::server::{ClientHello as OfferedHello, ProducesTickets};
use ::rustls::{ClientConfig, KeyLog, NoKeyLog, ServerConfig, version};
use zeroize::Zeroizing;

use super::certificates::hosts::{Coverage, Hosts};
use super::locals::ticket_facts::TICKETS;
use super::quic::client;
use super::quic::server::Parts;
use super::{
    crypto::{groups, suites},
    unsupported,
};
use crate::admission::ByServerName;
use crate::options::KeyLogSink;
use crate::{ClientOptions, ConfigError, Group, KeyExchange, ServerOptions};

/// Configurations of rustls for a server that offers TLS over TCP alongside QUIC: the same
/// certificates, key exchange policies, cipher suites and client authentication, with TLS 1.3 only.
///
/// Tickets are separate from those of QUIC. They are of the same [`Tickets`](crate::Tickets) if the options have some:
/// then clients can resume with another configuration of these tickets that has the same key exchange policy and asks for
/// certificates in the same way.
pub struct TcpServer {
    configs: ByServerName<Vec<(Group, Arc<ServerConfig>)>>,
    policies: ByServerName<KeyExchange>,
    hosts: Hosts,
}

impl std::fmt::Debug for TcpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TcpServer").finish_non_exhaustive()
    }
}

impl TcpServer {
    /// Builds the configurations, for these application protocols, first choice first.
    ///
    /// # Errors
    /// The error names the option that cannot be used.
    pub fn new(
        options: &ServerOptions,
        alpn: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<Self, ConfigError> {
        let options = &*options.under_profile()?;
        let shared = Shared::new(options, alpn)?;
        let of_policy = |policy: &KeyExchange| {
            let groups = groups::of_policy(policy)?;
            let tickets = shared.tickets_under(&groups);
            let configs = groups.into_iter().map(|group| {
                let crypto = suites::crypto_over_tcp(options.shared.suites.as_deref(), &[group])?;
                Ok((group, shared.config(options, crypto, &tickets)?))
            });
            configs.collect::<Result<Vec<_>, _>>()
        };
        let (default, names) = (&options.shared.key_exchange, &options.key_exchange_for);
        Ok(Self {
            configs: ByServerName::build(default, names, of_policy)?,
            policies: ByServerName::build(default, names, |policy| Ok(policy.clone()))?,
            hosts: Hosts::new(&options.identities),
        })
    }

    /// Returns the configuration for one connection of a client. Its only group is the first group
    /// of the policy that the client supports. If they have none in common, the handshake with this
    /// configuration fails with the right alert. `None` if the policy has no groups. A part of the
    /// feature `unstable-rustls`: the types of rustls may change in any release.
    ///
    /// # Security
    /// Do not use it for another connection: it looks at no more than four tickets. Clients offer
    /// one or two; a ClientHello has room for hundreds, each of which costs a decryption before
    /// anything is known about the client.
    // hybriq-http needs it without the feature.
    #[cfg_attr(not(feature = "unstable-rustls"), doc(hidden))]
    pub fn config(&self, hello: &OfferedHello<'_>) -> Option<Arc<ServerConfig>> {
        let configs = self.configs.get(hello.server_name());
        let offered = hello.named_groups().unwrap_or_default();
        let supports = |group: Group| offered.iter().any(|offered| u16::from(*offered) == group.0);
        let mutual = configs.iter().find(|(group, _)| supports(*group));
        let (_, config) = mutual.or(configs.first())?;
        if !config.ticketer.enabled() {
            return Some(config.clone());
        }
        let mut config = ServerConfig::clone(config);
        config.ticketer = Arc::new(OfOneClient {
            inner: config.ticketer,
            looked_at: AtomicU32::new(0),
        });
        Some(Arc::new(config))
    }
}

impl TcpServer {
    /// Returns true if the server has several certificates or key exchange policies, so that a
    /// connection for one host may be unsuitable for another.
    pub fn tells_hosts_apart(&self) -> bool {
        !self.hosts.has_one() || self.policies.iter().nth(1).is_some()
    }

    /// Returns how a host relates to the certificate that clients are shown for a server name. If
    /// several suit the name, one that covers the host is enough.
    pub fn coverage(&self, server_name: Option<&str>, host: &str) -> Coverage {
        self.hosts.coverage(server_name, host)
    }

    /// Returns the key exchange policy of a host, or of clients without a server name.
    pub fn key_exchange(&self, host: Option<&str>) -> &KeyExchange {
        let host = host.map(|host| host.strip_suffix('.').unwrap_or(host));
        self.policies.get(host)
    }
}

/// Tickets of sessions under one policy: a session that began under another one is not resumed.
#[derive(Debug)]
struct Scoped {
    inner: Arc<dyn ProducesTickets>,
    /// How clients are asked for certificates, and the groups of the policy.
    scope: Vec<u8>,
}

impl ProducesTickets for Scoped {
    fn enabled(&self) -> bool {
        self.inner.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.inner.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let len = self.scope.len().saturating_add(plain.len());
        let mut scoped = Zeroizing::new(Vec::with_capacity(len));
        scoped.extend_from_slice(&self.scope);
        scoped.extend_from_slice(plain);
        self.inner.encrypt(&scoped)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let scoped = Zeroizing::new(self.inner.decrypt(cipher)?);
        scoped.strip_prefix(&*self.scope).map(<[u8]>::to_vec)
    }
}

/// Tickets for one client, which can have only a few of them looked at.
#[derive(Debug)]
struct OfOneClient {
    inner: Arc<dyn ProducesTickets>,
    looked_at: AtomicU32,
}

impl ProducesTickets for OfOneClient {
    fn enabled(&self) -> bool {
        self.inner.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.inner.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.inner.encrypt(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let before = self.looked_at.load(Ordering::Relaxed);
        if before >= TICKETS {
            return None;
        }
        // Only one handshake at a time asks.
        self.looked_at.store(before + 1, Ordering::Relaxed);
        self.inner.decrypt(cipher)
    }
}

/// A configuration of rustls for a client that uses TLS over TCP alongside QUIC: the same trust,
/// certificate, key exchange policy and cipher suites, with TLS 1.3 only.
///
/// Sessions are separate from those of QUIC, and nothing is sent early.
pub struct TcpClient(Arc<ClientConfig>);

impl std::fmt::Debug for TcpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TcpClient").finish_non_exhaustive()
    }
}

impl TcpClient {
    /// Builds the configuration, for these application protocols, first choice first.
    ///
    /// # Errors
    /// The error names the option that cannot be used.
    pub fn new(
        options: &ClientOptions,
        alpn: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<Self, ConfigError> {
        let options = &*options.under_profile()?;
        let groups = groups::of_policy(&options.shared.key_exchange)?;
        let crypto = suites::crypto_over_tcp(options.shared.suites.as_deref(), &groups)?;
        let mut config = client::config(options, &Arc::new(crypto))?;
        config.enable_early_data = false;
        config.alpn_protocols = names(alpn);
        config.key_log = key_log(&options.shared.key_log)?;
        if options.no_resumption {
            config.resumption = Resumption::disabled();
        }
        Ok(Self(Arc::new(config)))
    }

    /// Returns the configuration. A part of the feature `unstable-rustls`: the types of rustls may
    /// change in any release.
    // hybriq-http needs it without the feature.
    #[cfg_attr(not(feature = "unstable-rustls"), doc(hidden))]
    pub fn config(&self) -> Arc<ClientConfig> {
        self.0.clone()
    }
}

/// Parts that all configurations of a server share.
struct Shared {
    parts: Parts,
    alpn: Vec<Vec<u8>>,
    ticketer: Arc<dyn ProducesTickets>,
    key_log: Arc<dyn KeyLog>,
}

impl Shared {
    fn new(
        options: &ServerOptions,
        alpn: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<Self, ConfigError> {
        let alpn = names(alpn);
        Ok(Self {
            parts: Parts::new(options, &alpn, |crypto| crypto)?,
            alpn,
            ticketer: options
                .tickets
                .clone()
                .unwrap_or_default()
                .rustls()
                .ticketer_of_tcp()?,
            key_log: key_log(&options.shared.key_log)?,
        })
    }

    fn tickets_under(&self, groups: &[Group]) -> Arc<dyn ProducesTickets> {
        // The number of groups ends the prefix, so that no policy begins with another.
        let mut scope = self.parts.audience.to_vec();
        scope.extend_from_slice(&groups.len().to_be_bytes());
        scope.extend(groups.iter().flat_map(|group| group.0.to_be_bytes()));
        Arc::new(Scoped {
            inner: self.ticketer.clone(),
            scope,
        })
    }

    fn config(
        &self,
        options: &ServerOptions,
        crypto: CryptoProvider,
        tickets: &Arc<dyn ProducesTickets>,
    ) -> Result<Arc<ServerConfig>, ConfigError> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(crypto))
            .with_protocol_versions(&[&version::TLS13])
            .map_err(|error| unsupported(error.to_string()))?
            .with_client_cert_verifier(self.parts.clients.clone())
            .with_cert_resolver(self.parts.resolver.clone());
        self.parts.compression.apply_to_server(&mut config);
        if let Some(change) = &options.change_rustls {
            (change.0)(&mut config);
        }
        config.alpn_protocols.clone_from(&self.alpn);
        config.key_log = self.key_log.clone();
        config.max_early_data_size = 0;
        if options.no_tickets {
            config.send_tls13_tickets = 0;
        } else {
            config.ticketer = tickets.clone();
        }
        Ok(Arc::new(config))
    }
}

fn names(protocols: impl IntoIterator<Item: AsRef<[u8]>>) -> Vec<Vec<u8>> {
    let protocols = protocols.into_iter();
    protocols.map(|name| name.as_ref().to_vec()).collect()
}

fn key_log(wanted: &crate::KeyLog) -> Result<Arc<dyn KeyLog>, ConfigError> {
    Ok(match wanted.open()? {
        Some(sink) => Arc::new(Log(sink)),
        None => Arc::new(NoKeyLog),
    })
}

/// A key log in the terms of rustls.
#[derive(Debug)]
struct Log(Arc<KeyLogSink>);

impl KeyLog for Log {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        self.0.log(label, client_random, secret);
    }
}
