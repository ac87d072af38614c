use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::{ConfigError, EarlyDataPolicy, KeyExchange, Provider, Suite};

mod identity;
mod key_log;
mod tickets;
mod trust;

pub use identity::Identity;
pub use key_log::KeyLog;
pub use tickets::Tickets;
pub use trust::Trust;

pub(crate) use key_log::KeyLogSink;
pub(crate) use trust::Anchors;

#[cfg(test)]
mod tests;

/// AES-128-GCM costs 24 µs less per handshake and side than AES-256-GCM with its SHA-384.
pub(crate) const DEFAULT_SUITES: [Suite; 3] = [
    Suite::Aes128GcmSha256,
    Suite::Aes256GcmSha384,
    Suite::ChaCha20Poly1305Sha256,
];

/// Whether a server asks clients for a certificate.
#[derive(Clone, Debug, Default)]
pub enum ClientAuth {
    /// It does not ask.
    #[default]
    None,
    /// It asks, and believes what these roots signed; a client without a certificate connects.
    Optional(Trust),
    /// It refuses a client without a certificate that these roots signed.
    Required(Trust),
}

/// What a client's TLS is made from.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    pub(crate) alpn: Vec<Vec<u8>>,
    pub(crate) trust: Trust,
    pub(crate) identity: Option<Identity>,
    pub(crate) key_exchange: KeyExchange,
    pub(crate) suites: Option<Vec<Suite>>,
    pub(crate) key_log: KeyLog,
    pub(crate) no_resumption: bool,
}

impl ClientOptions {
    /// Post-quantum first, the system's roots, no ALPN, session resumption.
    pub fn new() -> Self {
        Self::default()
    }

    /// The application protocols to offer, first choice first. A server that takes none of them
    /// is refused with alert 120 (RFC 9001 §8.1).
    #[must_use]
    pub fn alpn(mut self, protocols: impl IntoIterator<Item: AsRef<[u8]>>) -> Self {
        self.alpn = protocol_list(protocols);
        self
    }

    /// Whom to believe. Default: [`Trust::system`].
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// The certificate to show a server that asks for one.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// The groups to offer. Default: [`KeyExchange::PreferPostQuantum`].
    #[must_use]
    pub fn key_exchange(mut self, policy: KeyExchange) -> Self {
        self.key_exchange = policy;
        self
    }

    /// The cipher suites to offer, first choice first. Default: AES-128-GCM, AES-256-GCM,
    /// ChaCha20-Poly1305. s2n-tls has fixed lists and refuses others.
    #[must_use]
    pub fn suites(mut self, suites: Vec<Suite>) -> Self {
        self.suites = Some(suites);
        self
    }

    /// Where the session's secrets are logged. Default: [`KeyLog::Off`].
    #[must_use]
    pub fn key_log(mut self, key_log: KeyLog) -> Self {
        self.key_log = key_log;
        self
    }

    /// Remembers no session tickets, so every handshake is a full one.
    #[must_use]
    pub fn without_resumption(mut self) -> Self {
        self.no_resumption = true;
        self
    }
}

/// What a server's TLS is made from.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub(crate) identities: Vec<Identity>,
    pub(crate) alpn: Vec<Vec<u8>>,
    pub(crate) client_auth: ClientAuth,
    pub(crate) key_exchange: KeyExchange,
    pub(crate) key_exchange_for: Vec<(String, KeyExchange)>,
    pub(crate) suites: Option<Vec<Suite>>,
    pub(crate) key_log: KeyLog,
    pub(crate) no_tickets: bool,
    pub(crate) early_data: EarlyDataPolicy,
    pub(crate) tickets: Option<Tickets>,
}

impl ServerOptions {
    /// Post-quantum first, session tickets, no ALPN, no client certificates.
    pub fn new(identity: Identity) -> Self {
        Self {
            identities: vec![identity],
            alpn: Vec::new(),
            client_auth: ClientAuth::default(),
            key_exchange: KeyExchange::default(),
            key_exchange_for: Vec::new(),
            suites: None,
            key_log: KeyLog::default(),
            no_tickets: false,
            early_data: EarlyDataPolicy::Off,
            tickets: None,
        }
    }

    /// One more certificate. The server name of the client selects among them by the names in the
    /// certificates; the first identity answers where none matches.
    #[must_use]
    pub fn add_identity(mut self, identity: Identity) -> Self {
        self.identities.push(identity);
        self
    }

    /// The application protocols to accept, first choice first. A client that offers none of them
    /// is refused with alert 120 (RFC 9001 §8.1).
    #[must_use]
    pub fn alpn(mut self, protocols: impl IntoIterator<Item: AsRef<[u8]>>) -> Self {
        self.alpn = protocol_list(protocols);
        self
    }

    /// Whether clients show a certificate. Default: [`ClientAuth::None`].
    #[must_use]
    pub fn client_auth(mut self, client_auth: ClientAuth) -> Self {
        self.client_auth = client_auth;
        self
    }

    /// The groups to accept. Default: [`KeyExchange::PreferPostQuantum`].
    #[must_use]
    pub fn key_exchange(mut self, policy: KeyExchange) -> Self {
        self.key_exchange = policy;
        self
    }

    /// The groups to accept from clients that ask for this server name, whatever its case.
    #[must_use]
    pub fn key_exchange_for(mut self, server_name: impl Into<String>, policy: KeyExchange) -> Self {
        self.key_exchange_for.push((server_name.into(), policy));
        self
    }

    /// The cipher suites to accept. Default: AES-128-GCM, AES-256-GCM, ChaCha20-Poly1305. s2n-tls
    /// has fixed lists and refuses others.
    #[must_use]
    pub fn suites(mut self, suites: Vec<Suite>) -> Self {
        self.suites = Some(suites);
        self
    }

    /// Where the sessions' secrets are logged. Default: [`KeyLog::Off`].
    #[must_use]
    pub fn key_log(mut self, key_log: KeyLog) -> Self {
        self.key_log = key_log;
        self
    }

    /// Whether 0-RTT data is accepted. Default: [`EarlyDataPolicy::Off`]. s2n-tls has none in QUIC and
    /// refuses [`EarlyDataPolicy::On`].
    ///
    /// With it, rustls keeps the session behind each ticket until the ticket is first used, which
    /// is what stops replays. At most 16,384 are kept, 400 bytes each (16 MiB with long client
    /// certificates); where there is no room the oldest goes, and its client does a full handshake.
    /// Another process knows none of them.
    #[must_use]
    pub fn early_data(mut self, early_data: EarlyDataPolicy) -> Self {
        self.early_data = early_data;
        self
    }

    /// Recognises the tickets of every server that has a clone of this. Default: its own alone.
    #[must_use]
    pub fn tickets(mut self, tickets: Tickets) -> Self {
        self.tickets = Some(tickets);
        self
    }

    /// Issues no session tickets, so every handshake is a full one.
    #[must_use]
    pub fn without_tickets(mut self) -> Self {
        self.no_tickets = true;
        self
    }
}

fn protocol_list(protocols: impl IntoIterator<Item: AsRef<[u8]>>) -> Vec<Vec<u8>> {
    protocols
        .into_iter()
        .map(|protocol| protocol.as_ref().to_vec())
        .collect()
}

/// Checks what neither library says clearly.
pub(crate) fn check_alpn(provider: &'static str, protocols: &[Vec<u8>]) -> Result<(), ConfigError> {
    if protocols
        .iter()
        .all(|protocol| (1..=255).contains(&protocol.len()))
    {
        return Ok(());
    }
    Err(ConfigError::Unsupported {
        provider,
        detail: "an ALPN protocol name has 1 to 255 bytes; give other names".to_owned(),
    })
}

/// Which TLS library does the handshakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Backend {
    /// rustls: exact group lists, 0-RTT, a third of the memory. The default.
    #[default]
    Rustls,
    /// s2n-tls (unix only).
    S2nTls,
}

impl Backend {
    /// Both, the default first.
    pub const ALL: [Self; 2] = [Self::Rustls, Self::S2nTls];

    /// The name, as [`FromStr`] reads it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rustls => "rustls",
            Self::S2nTls => "s2n-tls",
        }
    }

    /// Makes a client's provider.
    ///
    /// # Errors
    /// Says what of the options cannot be used, and how to mend it.
    pub fn client(self, options: &ClientOptions) -> Result<Arc<dyn Provider>, ConfigError> {
        check_alpn(self.name(), &options.alpn)?;
        match self {
            #[cfg(feature = "rustls")]
            Self::Rustls => Ok(Arc::new(crate::rustls::Client::new(options)?)),
            #[cfg(all(unix, feature = "s2n-tls"))]
            Self::S2nTls => Ok(Arc::new(crate::s2n::Client::new(options)?)),
            #[cfg(not(all(unix, feature = "rustls", feature = "s2n-tls")))]
            _ => Err(self.not_built()),
        }
    }

    /// Makes a server's provider.
    ///
    /// # Errors
    /// Says what of the options cannot be used, and how to mend it.
    pub fn server(self, options: &ServerOptions) -> Result<Arc<dyn Provider>, ConfigError> {
        check_alpn(self.name(), &options.alpn)?;
        match self {
            #[cfg(feature = "rustls")]
            Self::Rustls => Ok(Arc::new(crate::rustls::Server::new(options)?)),
            #[cfg(all(unix, feature = "s2n-tls"))]
            Self::S2nTls => Ok(Arc::new(crate::s2n::Server::new(options)?)),
            #[cfg(not(all(unix, feature = "rustls", feature = "s2n-tls")))]
            _ => Err(self.not_built()),
        }
    }

    #[cfg(not(all(unix, feature = "rustls", feature = "s2n-tls")))]
    fn not_built(self) -> ConfigError {
        let detail = if self == Self::S2nTls && cfg!(not(unix)) {
            "only built on unix; use rustls here".to_owned()
        } else {
            format!("not built in; enable the feature `{self}` of hybriq-tls")
        };
        ConfigError::Unsupported {
            provider: self.name(),
            detail,
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = ConfigError;

    fn from_str(name: &str) -> Result<Self, ConfigError> {
        Self::ALL
            .into_iter()
            .find(|backend| backend.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| ConfigError::UnknownBackend(name.to_owned()))
    }
}
