//! Options of clients and servers.

pub(crate) mod verifier;

use std::{fmt, sync::Arc};

use crate::{
    CertificateAlgorithms, CertificateCompression, ConfigError, EarlyDataPolicy, KeyExchange,
    Profile, SessionStore, Suite, Tickets,
};

mod chains;
mod identity;
mod key_log;
mod pem;
mod trust;

pub use chains::ChainChoice;
pub use identity::Identity;
pub use key_log::KeyLog;
pub use trust::Trust;

pub(crate) use chains::Intermediates;
pub(crate) use identity::Key;
pub(crate) use key_log::KeyLogSink;
pub(crate) use trust::Anchors;
#[cfg(feature = "rustls")]
pub(crate) use trust::Custom;

#[cfg(test)]
mod tests;

/// Default cipher suites. AES-128-GCM costs 24 µs less per handshake and side than AES-256-GCM with
/// its SHA-384.
pub(crate) const DEFAULT_SUITES: [Suite; 3] = [
    Suite::Aes128GcmSha256,
    Suite::Aes256GcmSha384,
    Suite::ChaCha20Poly1305Sha256,
];

/// A value supplied by the application that has no `Debug`.
pub(crate) struct Opaque<T: ?Sized>(pub(crate) Arc<T>);

impl<T: ?Sized> Clone for Opaque<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: ?Sized> fmt::Debug for Opaque<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// A function that changes a rustls configuration.
#[cfg(feature = "rustls")]
pub(crate) type Change<T> = Opaque<dyn Fn(&mut T) + Send + Sync>;

/// Which client certificates a server asks for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ClientAuth {
    /// The server does not ask.
    #[default]
    None,
    /// The server asks and refuses an untrusted certificate; a client without one connects.
    Optional(Trust),
    /// The server refuses a client without a trusted certificate.
    Required(Trust),
}

/// Options of a client's TLS.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    pub(crate) alpn: Vec<Vec<u8>>,
    pub(crate) trust: Trust,
    pub(crate) identity: Option<Identity>,
    pub(crate) key_exchange: KeyExchange,
    pub(crate) suites: Option<Vec<Suite>>,
    pub(crate) key_log: KeyLog,
    pub(crate) no_resumption: bool,
    pub(crate) profile: Profile,
    pub(crate) compression: Vec<CertificateCompression>,
    pub(crate) leaves_out_intermediates: bool,
    pub(crate) session_store: Option<Opaque<dyn SessionStore>>,
    pub(crate) key_shares_ahead: usize,
    #[cfg(feature = "rustls")]
    pub(crate) change_rustls: Option<Change<::rustls::ClientConfig>>,
}

impl ClientOptions {
    /// Creates options with post-quantum groups first, the system's roots, no ALPN, and session
    /// resumption.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the application protocols to offer, first choice first.
    ///
    /// A server that supports none of them is refused with `no_application_protocol` (RFC 9001 §8.1).
    #[must_use]
    pub fn alpn(mut self, protocols: impl IntoIterator<Item: AsRef<[u8]>>) -> Self {
        self.alpn = protocol_list(protocols);
        self
    }

    /// Sets which servers are trusted. Default: [`Trust::system`].
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Sets the certificate for servers that ask for one.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Sets the groups to offer. Default: [`KeyExchange::PreferPostQuantum`].
    #[must_use]
    pub fn key_exchange(mut self, policy: KeyExchange) -> Self {
        self.key_exchange = policy;
        self
    }

    /// Sets the cipher suites to offer, first choice first. Default: AES-128-GCM, AES-256-GCM,
    /// ChaCha20-Poly1305. s2n-tls has fixed lists and refuses others.
    #[must_use]
    pub fn suites(mut self, suites: Vec<Suite>) -> Self {
        self.suites = Some(suites);
        self
    }

    /// Sets where secrets are logged. Default: [`KeyLog::Off`].
    #[must_use]
    pub fn key_log(mut self, key_log: KeyLog) -> Self {
        self.key_log = key_log;
        self
    }

    /// Sets the rules of an authority, which bind this client and the servers it connects to. Default:
    /// [`Profile::Default`].
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Returns the profile that was set.
    #[doc(hidden)]
    pub const fn chosen_profile(&self) -> Profile {
        self.profile
    }

    /// Remembers no session tickets, so that every handshake is a full one.
    #[must_use]
    pub fn without_resumption(mut self) -> Self {
        self.no_resumption = true;
        self
    }

    /// Makes up to this many key pairs ahead of time for the first group, 1 to 64, while the
    /// transport is idle. Default: 0, none. s2n-tls makes its own key pairs and refuses this
    /// option.
    ///
    /// A pair is used for one ClientHello, by the process that made it, within ten minutes.
    ///
    /// # Security
    /// The private keys stay in memory until they are used; they are wiped when they are dropped. A
    /// copy of the whole machine, such as a snapshot that is started twice, uses the same pairs: do
    /// not use this option there.
    #[must_use]
    pub fn key_shares_ahead(mut self, pairs: usize) -> Self {
        self.key_shares_ahead = pairs;
        self
    }

    /// Stores sessions in this store. Default: in memory, for 256 servers.
    ///
    /// rustls 0.23 cannot turn a session into bytes and refuses a store; its sessions live as long
    /// as the provider. s2n-tls uses a session until it expires or a newer one arrives.
    #[must_use]
    pub fn session_store(mut self, store: Arc<dyn SessionStore>) -> Self {
        self.session_store = Some(Opaque(store));
        self
    }

    /// Sets the algorithms of certificate compression (RFC 8879), first choice first: for this end's
    /// certificates, and for those that the peer may send. Default: none.
    ///
    /// Each needs the cargo feature of its name. A compressed chain that is longer than 64 KiB is
    /// refused before anything is decompressed. s2n-tls has none and refuses the option.
    #[must_use]
    pub fn certificate_compression(
        mut self,
        algorithms: impl IntoIterator<Item = CertificateCompression>,
    ) -> Self {
        self.compression = algorithms.into_iter().collect();
        self
    }

    /// Changes the rustls configuration that results from these options. s2n-tls refuses this
    /// option. Needs the feature `unstable-rustls`: the types of rustls may change in any release.
    ///
    /// The function runs last, when the provider is built. Afterwards the provider sets again what
    /// the other options promise: application protocols, key log, session store, 0-RTT and the
    /// check of the chosen protocol. A certificate verifier that it sets replaces all of [`Trust`];
    /// then [`Negotiated::signature_scheme`] is `None`.
    ///
    /// # Security
    /// Nothing checks the rest: the function can offer groups that the policy excludes, or trust
    /// any server.
    ///
    /// [`Negotiated::signature_scheme`]: crate::Negotiated::signature_scheme
    #[cfg(feature = "unstable-rustls")]
    #[must_use]
    pub fn change_rustls(
        mut self,
        change: impl Fn(&mut ::rustls::ClientConfig) + Send + Sync + 'static,
    ) -> Self {
        self.change_rustls = Some(Opaque(Arc::new(change)));
        self
    }
}

/// Options of a server's TLS.
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
    pub(crate) profile: Profile,
    pub(crate) compression: Vec<CertificateCompression>,
    pub(crate) chain_choice: ChainChoice,
    pub(crate) intermediates: Intermediates,
    #[cfg(feature = "rustls")]
    pub(crate) change_rustls: Option<Change<::rustls::ServerConfig>>,
}

impl ServerOptions {
    /// Creates options with post-quantum groups first, session tickets, no ALPN, and no client
    /// certificates.
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
            profile: Profile::default(),
            compression: Vec::new(),
            chain_choice: ChainChoice::default(),
            intermediates: Intermediates::default(),
            #[cfg(feature = "rustls")]
            change_rustls: None,
        }
    }

    /// Checks that every certificate of every chain is post-quantum: its key and its signature.
    ///
    /// # Errors
    /// The error names the first certificate that is not.
    #[doc(hidden)]
    pub fn check_post_quantum(&self) -> Result<(), ConfigError> {
        for (at, identity) in self.identities.iter().enumerate() {
            for certificate in identity.certificates() {
                let found = CertificateAlgorithms::of(certificate);
                if found.is_some_and(|found| found.is_post_quantum()) {
                    continue;
                }
                let found = found.map_or("one that cannot be read".to_owned(), |it| it.to_string());
                return Err(ConfigError::Identity(format!(
                    "the server commits itself to post-quantum certificates, and the chain of \
                     certificate {at} has {found}; use ML-DSA in the whole chain, or leave the \
                     commitment out"
                )));
            }
        }
        Ok(())
    }

    /// Adds a certificate.
    ///
    /// A certificate that matches the client's server name is used; if none matches, the first one.
    #[must_use]
    pub fn add_identity(mut self, identity: Identity) -> Self {
        self.identities.push(identity);
        self
    }

    /// Sets the application protocols to accept, first choice first.
    ///
    /// A client that offers none of them is refused with `no_application_protocol` (RFC 9001
    /// §8.1).
    #[must_use]
    pub fn alpn(mut self, protocols: impl IntoIterator<Item: AsRef<[u8]>>) -> Self {
        self.alpn = protocol_list(protocols);
        self
    }

    /// Sets which client certificates are asked for. Default: [`ClientAuth::None`].
    #[must_use]
    pub fn client_auth(mut self, client_auth: ClientAuth) -> Self {
        self.client_auth = client_auth;
        self
    }

    /// Sets the groups to accept. Default: [`KeyExchange::PreferPostQuantum`].
    #[must_use]
    pub fn key_exchange(mut self, policy: KeyExchange) -> Self {
        self.key_exchange = policy;
        self
    }

    /// Sets the groups to accept from clients that ask for this server name, whatever its case.
    #[must_use]
    pub fn key_exchange_for(mut self, server_name: impl Into<String>, policy: KeyExchange) -> Self {
        self.key_exchange_for.push((server_name.into(), policy));
        self
    }

    /// Sets the cipher suites to accept. Default: AES-128-GCM, AES-256-GCM, ChaCha20-Poly1305. s2n-tls
    /// has fixed lists and refuses others.
    #[must_use]
    pub fn suites(mut self, suites: Vec<Suite>) -> Self {
        self.suites = Some(suites);
        self
    }

    /// Sets where secrets are logged. Default: [`KeyLog::Off`].
    #[must_use]
    pub fn key_log(mut self, key_log: KeyLog) -> Self {
        self.key_log = key_log;
        self
    }

    /// Accepts or refuses 0-RTT data. Default: [`EarlyDataPolicy::Off`]. s2n-tls has no 0-RTT in
    /// QUIC and refuses [`EarlyDataPolicy::On`].
    ///
    /// With 0-RTT, rustls keeps the session of each ticket until the ticket is first used, which
    /// prevents replays. It keeps at most 16,384 sessions of 400 bytes each (16 MiB with long
    /// client certificates); a new one replaces the oldest, whose client then does a full
    /// handshake. Other processes do not know these sessions.
    #[must_use]
    pub fn early_data(mut self, early_data: EarlyDataPolicy) -> Self {
        self.early_data = early_data;
        self
    }

    /// Recognises the tickets of every server that has a clone of this value. Default: only its
    /// own.
    #[must_use]
    pub fn tickets(mut self, tickets: Tickets) -> Self {
        self.tickets = Some(tickets);
        self
    }

    /// Sets the rules of an authority, which bind this server and its clients. Default:
    /// [`Profile::Default`].
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Returns the profile that was set.
    #[doc(hidden)]
    pub const fn chosen_profile(&self) -> Profile {
        self.profile
    }

    /// Issues no session tickets, so that every handshake is a full one.
    #[must_use]
    pub fn without_tickets(mut self) -> Self {
        self.no_tickets = true;
        self
    }

    /// Sets the algorithms of certificate compression (RFC 8879), first choice first: for this end's
    /// certificates, and for those that the peer may send. Default: none.
    ///
    /// Each needs the cargo feature of its name. A compressed chain that is longer than 64 KiB is
    /// refused before anything is decompressed. s2n-tls has none and refuses the option.
    #[must_use]
    pub fn certificate_compression(
        mut self,
        algorithms: impl IntoIterator<Item = CertificateCompression>,
    ) -> Self {
        self.compression = algorithms.into_iter().collect();
        self
    }

    /// Changes the rustls configurations that result from these options, one for each group.
    /// s2n-tls refuses this option. Needs the feature `unstable-rustls`: the types of rustls may
    /// change in any release.
    ///
    /// The function runs last, when the provider is built. Afterwards the provider sets again what
    /// the other options promise: application protocols, key log, tickets and 0-RTT. If the
    /// function sets a certificate resolver, [`Negotiated::signature_scheme`] is `None`.
    ///
    /// # Security
    /// Nothing checks the rest: the function can accept groups that the policy excludes.
    ///
    /// [`Negotiated::signature_scheme`]: crate::Negotiated::signature_scheme
    #[cfg(feature = "unstable-rustls")]
    #[must_use]
    pub fn change_rustls(
        mut self,
        change: impl Fn(&mut ::rustls::ServerConfig) + Send + Sync + 'static,
    ) -> Self {
        self.change_rustls = Some(Opaque(Arc::new(change)));
        self
    }
}

fn protocol_list(protocols: impl IntoIterator<Item: AsRef<[u8]>>) -> Vec<Vec<u8>> {
    protocols
        .into_iter()
        .map(|protocol| protocol.as_ref().to_vec())
        .collect()
}

/// Refuses protocol names of invalid length, for which neither library has a clear error.
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
