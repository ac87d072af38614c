//! The configuration of clients.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant, SystemTime},
};

use hybriq_proto::config::TransportConfig;
use hybriq_proto::endpoint::Setup;
use hybriq_proto::remembered::origin::{Continuity, Origins, Prediction};
use hybriq_proto::remembered::server::{Epoch, ServerStore, Servers};
use hybriq_tls::{
    Backend, ClientOptions, ConfigError, ConfigErrors, EarlyDataPolicy, Group, Provider,
    SessionMemory, Side, SupportedGroups,
};

use super::{
    ServerMemory,
    memory::servers::Sessions,
    settings::{check_profile, check_provider, config_setters},
};

/// Configuration of a client. Start from [`ClientConfig::new`].
///
/// Clones share the TLS provider and its session tickets, and the memory of servers. The provider is
/// built from the options at first use.
///
/// # Examples
/// ```no_run
/// use hybriq::{ClientConfig, KeyExchange, Trust};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = ClientConfig::new()
///     .alpn(["echo"])
///     .trust(Trust::roots_pem_file("ca.pem")?)
///     .key_exchange(KeyExchange::RequirePostQuantum);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ClientConfig {
    tls: ClientOptions,
    backend: Backend,
    provider: Option<Arc<dyn Provider>>,
    transport: TransportConfig,
    early_data: EarlyDataPolicy,
    servers: Arc<dyn ServerStore>,
    origins: Origins,
    /// Groups of [`ClientConfig::group_hint`], which the provider must be able to follow.
    hinted: Vec<Group>,
    built: Arc<OnceLock<Setup>>,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl ClientConfig {
    /// Creates a configuration that prefers post-quantum groups, uses the default provider, trusts
    /// the system's roots and offers no ALPN.
    pub fn new() -> Self {
        Self {
            tls: ClientOptions::new(),
            backend: Backend::default(),
            provider: None,
            transport: TransportConfig::new(),
            early_data: EarlyDataPolicy::Off,
            servers: Arc::new(ServerMemory::new()),
            origins: Origins::default(),
            hinted: Vec::new(),
            built: Arc::default(),
        }
    }

    hybriq_tls::client_setters!();
    config_setters!(ClientOptions);

    /// Offers 0-RTT data if a ticket of the server allows it;
    /// [`Connecting::early`](crate::Connecting::early) sends it. Default: off. Has no effect with
    /// s2n-tls, which has no 0-RTT in QUIC.
    ///
    /// # Examples
    /// See [`EarlyConnection`](crate::EarlyConnection).
    #[must_use]
    pub fn offer_early_data(mut self) -> Self {
        self.early_data = EarlyDataPolicy::On;
        self.built = Arc::default();
        self
    }

    /// Returns the memory of servers, for protocols that remember more of them: see
    /// [`ServerRecord::put_alternatives`](crate::memory::ServerRecord::put_alternatives) and
    /// [`put_settings`](crate::memory::ServerRecord::put_settings).
    pub fn servers(&self) -> Arc<dyn ServerStore> {
        self.servers.clone()
    }

    /// Sets the memory of servers: tokens that make a Retry unnecessary (RFC 9000 §8.1.3), versions, TLS
    /// sessions where [`session_memory`](Self::session_memory) says so, key-exchange groups, downgrade
    /// alarms, what paths carried, and what a client of `hybriq-http` learnt: alternative services (`alt-svc`) and
    /// settings of HTTP/3. Default: one that the clones of this configuration share.
    ///
    /// # Examples
    /// [`ServerMemory`] shows how to keep it in a file.
    /// ```
    /// use hybriq::{ClientConfig, memory::ServerMemory};
    ///
    /// // For connections that must not be linked with those of the original.
    /// fn private(config: &ClientConfig) -> ClientConfig {
    ///     config.clone().server_memory(ServerMemory::new())
    /// }
    /// ```
    #[must_use]
    pub fn server_memory(self, memory: ServerMemory) -> Self {
        self.server_store(Arc::new(memory))
    }

    /// Sets a store of the application for what is remembered of servers. Default: a
    /// [`ServerMemory`].
    #[must_use]
    pub fn server_store(mut self, store: Arc<dyn ServerStore>) -> Self {
        self.servers = store;
        self.built = Arc::default();
        self
    }

    /// Returns where the TLS sessions of this configuration are: in the memory of servers, so that
    /// a later process resumes them, or only in this process, and why.
    ///
    /// # Examples
    /// ```
    /// use hybriq::{Backend, ClientConfig, memory::SessionMemory};
    ///
    /// let config = ClientConfig::new();
    /// assert_eq!(config.session_memory(), SessionMemory::Library); // rustls 0.23
    /// let config = config.tls(Backend::S2nTls);
    /// assert_eq!(config.session_memory(), SessionMemory::Stored);
    /// ```
    pub fn session_memory(&self) -> SessionMemory {
        match self.provider {
            Some(_) => SessionMemory::Application,
            None => self.backend.session_memory(&self.tls),
        }
    }

    /// Sets what happens if a server that was post-quantum no longer is, in its key exchange or in
    /// its certificates: the downgrade alarm (draft-sheffer-tls-pqc-continuity). Default:
    /// [`Continuity::Off`].
    ///
    /// A server is remembered after its first handshake; the alarm says nothing about that one. See
    /// the chapter "Downgrade alarm" of [post-quantum.md].
    ///
    /// [post-quantum.md]: https://github.com/hybriq/hybriq/blob/main/quic/docs/post-quantum.md
    ///
    /// # Examples
    /// ```
    /// use hybriq::{ClientConfig, memory::Continuity};
    ///
    /// let config = ClientConfig::new().continuity(Continuity::Refuse);
    /// ```
    #[must_use]
    pub fn continuity(self, continuity: Continuity) -> Self {
        self.with_origins(|origins| origins.set_continuity(continuity))
    }

    /// Sets how long a server must stay post-quantum after it was last seen to be post-quantum, unless it commits
    /// itself to a longer time. Default: 30 days, at most a year.
    #[must_use]
    pub fn continuity_lifetime(self, lifetime: Duration) -> Self {
        self.with_origins(|origins| origins.set_lifetime(lifetime))
    }

    /// Sets the group that a server will choose, so that the first connection begins with its key
    /// share and needs no HelloRetryRequest. A group that the server chose earlier takes precedence. Default: no
    /// hint.
    ///
    /// The offered groups and their order stay those of the policy, and a classical group never
    /// replaces a post-quantum share. [`ClientConfig::check`] names a group that is not in the
    /// policy, or that the TLS library cannot begin with: s2n-tls can begin only with the first
    /// group of its policy.
    ///
    /// # Examples
    /// For one connection; the clone shares its TLS sessions with the original:
    /// ```
    /// use hybriq::{ClientConfig, Group};
    ///
    /// fn to_the_vault(config: &ClientConfig) -> ClientConfig {
    ///     config.clone().group_hint("vault.example", Group::SECP384R1MLKEM1024)
    /// }
    /// ```
    #[must_use]
    pub fn group_hint(mut self, server_name: impl AsRef<str>, group: Group) -> Self {
        self.hinted.push(group);
        self.with_origins(|origins| origins.set_hint(server_name.as_ref(), vec![group]))
    }

    /// Sets the groups that a server announces in the DNS, in the parameter `tls-supported-groups`
    /// of its HTTPS or SVCB record. The first of them that is in the policy is used like that of
    /// [`group_hint`](Self::group_hint). A value with no such group, or whose group the TLS library
    /// cannot follow, has no effect. Default: no hint.
    ///
    /// # Examples
    /// ```
    /// use hybriq::{ClientConfig, tls::SupportedGroups};
    ///
    /// fn with_hint(config: &ClientConfig, name: &str, svc_param: &[u8]) -> ClientConfig {
    ///     match SupportedGroups::from_wire(svc_param) {
    ///         Ok(groups) => config.clone().dns_groups(name, &groups),
    ///         Err(_) => config.clone(),
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn dns_groups(self, server_name: impl AsRef<str>, groups: &SupportedGroups) -> Self {
        let groups = groups.groups().to_vec();
        self.with_origins(|origins| origins.set_hint(server_name.as_ref(), groups))
    }

    /// Begins every connection with the first group of the policy, regardless of what the server chose before.
    ///
    /// An unusual key share reveals to an observer that this client has been to the server before, or
    /// has a hint; so does a resumed session.
    #[must_use]
    pub fn without_group_prediction(self) -> Self {
        self.with_origins(|origins| origins.set_prediction(Prediction::Off))
    }

    /// Changes options of the transport that was set, for programs that pass a configuration on.
    /// Default: no change.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// fn kept_alive(config: hybriq::ClientConfig) -> hybriq::ClientConfig {
    ///     config.transport_options(|transport| transport.keep_alive(Duration::from_secs(10)))
    /// }
    /// ```
    #[must_use]
    pub fn transport_options(
        mut self,
        change: impl FnOnce(TransportConfig) -> TransportConfig,
    ) -> Self {
        self.transport = change(self.transport);
        self.built = Arc::default();
        self
    }

    /// Changes the use of the memory of servers. A provider that was built stays, with its sessions.
    fn with_origins(mut self, change: impl FnOnce(&mut Origins)) -> Self {
        change(&mut self.origins);
        let provider = self.built.get().map(|setup| setup.provider.clone());
        let setup = provider.and_then(|provider| self.over(provider).ok());
        self.built = Arc::new(setup.map_or_else(OnceLock::new, OnceLock::from));
        self
    }

    /// Returns a configuration of rustls for TLS over TCP, with this configuration's trust,
    /// certificate and key exchange policy, for clients that use HTTP/1.1 and HTTP/2 alongside
    /// HTTP/3. `alpn` lists the application protocols over TCP, first choice first.
    ///
    /// # Errors
    /// The error names the option that cannot be used.
    #[cfg(feature = "rustls")]
    pub fn tcp(
        &self,
        alpn: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<hybriq_tls::rustls::TcpClient, ConfigError> {
        hybriq_tls::rustls::TcpClient::new(&self.tls, alpn)
    }

    /// Checks the configuration without connecting: the TLS library knows the groups and suites,
    /// the roots and the key log can be used, and an [identity](Self::identity) has the key of its
    /// certificate, which is valid now. A custom [provider](Self::provider) must be able to start a
    /// client session.
    ///
    /// # Errors
    /// The error names every option that cannot be used and says how to fix it.
    #[expect(
        clippy::disallowed_methods,
        reason = "certificates are valid by the wall clock"
    )]
    pub fn check(&self) -> Result<(), ConfigErrors> {
        match &self.provider {
            Some(provider) => check_provider(&**provider, Side::Client, self.tls.shared.profile)?,
            None => self
                .allowed()?
                .backend
                .check_client(&self.tls, SystemTime::now())?,
        }
        if !self.hinted.is_empty() {
            self.setup()?;
        }
        Ok(())
    }

    /// Returns the configuration, unless it offers 0-RTT data where the profile forbids that.
    fn allowed(&self) -> Result<&Self, ConfigError> {
        let profile = self.tls.shared.profile;
        if self.early_data.is_on() && !profile.allows_early_data() {
            let problem = "0-RTT data is not allowed; leave `offer_early_data` out".to_owned();
            return Err(ConfigError::Profile { profile, problem });
        }
        Ok(self)
    }

    /// Returns the configuration for the protocol core. Builds the TLS provider at the first call.
    #[doc(hidden)]
    pub fn setup(&self) -> Result<Setup, ConfigError> {
        if let Some(setup) = self.built.get() {
            return Ok(setup.clone());
        }
        let provider = match &self.provider {
            Some(provider) => {
                check_profile(self.tls.shared.profile, &**provider)?;
                provider.clone()
            }
            None => self.allowed()?.backend.client(&self.tls_with_sessions())?,
        };
        let setup = self.over(provider)?;
        Ok(self.built.get_or_init(|| setup).clone())
    }

    /// Returns the options of TLS, with the sessions in the memory of servers where they can be.
    fn tls_with_sessions(&self) -> ClientOptions {
        let tls = self.tls.clone();
        match self.session_memory() {
            SessionMemory::Stored => tls.session_store(Arc::new(Sessions(self.servers.clone()))),
            _ => tls,
        }
    }

    /// Returns the configuration over a provider.
    #[expect(
        clippy::disallowed_methods,
        reason = "what is remembered of servers ends by the wall clock"
    )]
    fn over(&self, provider: Arc<dyn Provider>) -> Result<Setup, ConfigError> {
        if let Some(group) = self.hinted.iter().find(|it| !provider.can_predict(**it)) {
            return Err(cannot_predict(&*provider, *group));
        }
        let epoch = Epoch {
            instant: Instant::now(),
            time: SystemTime::now(),
        };
        let servers = Servers::new(self.servers.clone(), self.origins.clone(), epoch);
        let transport = self.transport.clone().early_data(self.early_data);
        let transport = transport.remember_servers(servers);
        Ok(Setup {
            provider,
            transport: Arc::new(transport),
        })
    }
}

fn cannot_predict(provider: &dyn Provider, group: Group) -> ConfigError {
    let policy = provider.key_exchange();
    let profile = provider.profile();
    let forbidden = profile
        .groups()
        .is_some_and(|allowed| !allowed.contains(&group));
    let detail = if forbidden {
        "the profile forbids it; give one that it allows"
    } else if policy.has(group) {
        "it always begins with the first group of its policy; use rustls"
    } else {
        "the policy does not have it; add it to `key_exchange`"
    };
    ConfigError::Unsupported {
        provider: provider.name(),
        detail: format!("cannot begin with {group}: {detail}, or leave the `group_hint` out"),
    }
}

impl std::fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientConfig")
            .field("tls", &self.tls)
            .field("backend", &self.backend)
            .field(
                "provider",
                &self.provider.as_ref().map(|provider| provider.name()),
            )
            .field("transport", &self.transport)
            .field("origins", &self.origins)
            .finish_non_exhaustive()
    }
}
