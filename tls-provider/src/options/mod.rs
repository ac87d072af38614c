//! Options of clients and servers.

pub(crate) mod verifier;

use std::{fmt, sync::Arc};

use crate::{
    CertificateAlgorithms, CertificateCompression, ConfigError, EarlyDataPolicy, KeyExchange,
    Profile, SessionStore, Suite, Tickets,
};

mod identity;
mod key_log;
mod settings;
mod trust;

pub use identity::{ChainChoice, Identity, Intermediates};
pub use key_log::KeyLog;
pub use trust::Trust;

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

/// Options that clients and servers share.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Shared {
    pub alpn: Vec<Vec<u8>>,
    pub key_exchange: KeyExchange,
    pub suites: Option<Vec<Suite>>,
    pub key_log: KeyLog,
    pub profile: Profile,
    pub compression: Vec<CertificateCompression>,
    pub intermediates: Intermediates,
}

/// Options of a client's TLS.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    #[doc(hidden)]
    pub shared: Shared,
    #[doc(hidden)]
    pub trust: Trust,
    #[doc(hidden)]
    pub identity: Option<Identity>,
    #[doc(hidden)]
    pub no_resumption: bool,
    #[doc(hidden)]
    pub key_shares_ahead: usize,
    pub(crate) session_store: Option<Opaque<dyn SessionStore>>,
    #[cfg(feature = "rustls")]
    pub(crate) change_rustls: Option<Change<::rustls::ClientConfig>>,
}

impl ClientOptions {
    /// Creates options with post-quantum groups first, the system's roots, no ALPN, and session
    /// resumption.
    pub fn new() -> Self {
        Self::default()
    }

    crate::client_setters!();

    /// Stores sessions in this store. Default: in memory, for 256 servers.
    ///
    /// rustls 0.23 cannot turn a session into bytes and refuses a store; its sessions live as long
    /// as the provider. s2n-tls uses a session until it expires or a newer one arrives.
    #[must_use]
    pub fn session_store(self, store: Arc<dyn SessionStore>) -> Self {
        self.change(|options| options.session_store = Some(Opaque(store)))
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
        self,
        change: impl Fn(&mut ::rustls::ClientConfig) + Send + Sync + 'static,
    ) -> Self {
        self.change(|options| options.change_rustls = Some(Opaque(Arc::new(change))))
    }

    fn change(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// A key exchange policy for clients that ask for one server name.
///
/// Exhaustive: a name and what holds for it.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct NamedPolicy {
    pub server_name: String,
    pub policy: KeyExchange,
}

/// Options of a server's TLS.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    #[doc(hidden)]
    pub shared: Shared,
    #[doc(hidden)]
    pub identities: Vec<Identity>,
    #[doc(hidden)]
    pub client_auth: ClientAuth,
    #[doc(hidden)]
    pub key_exchange_for: Vec<NamedPolicy>,
    #[doc(hidden)]
    pub chain_choice: ChainChoice,
    #[doc(hidden)]
    pub no_tickets: bool,
    #[doc(hidden)]
    pub tickets: Option<Tickets>,
    #[doc(hidden)]
    pub early_data: EarlyDataPolicy,
    #[cfg(feature = "rustls")]
    pub(crate) change_rustls: Option<Change<::rustls::ServerConfig>>,
}

impl ServerOptions {
    /// Creates options with post-quantum groups first, session tickets, no ALPN, and no client
    /// certificates.
    pub fn new(identity: Identity) -> Self {
        Self {
            identities: vec![identity],
            ..Self::without_identity()
        }
    }

    /// Creates options for a custom provider, which has its own certificates.
    #[doc(hidden)]
    pub fn without_identity() -> Self {
        Self {
            shared: Shared::default(),
            identities: Vec::new(),
            client_auth: ClientAuth::default(),
            key_exchange_for: Vec::new(),
            chain_choice: ChainChoice::default(),
            no_tickets: false,
            tickets: None,
            early_data: EarlyDataPolicy::Off,
            #[cfg(feature = "rustls")]
            change_rustls: None,
        }
    }

    crate::server_setters!();

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
        self,
        change: impl Fn(&mut ::rustls::ServerConfig) + Send + Sync + 'static,
    ) -> Self {
        self.change(|options| options.change_rustls = Some(Opaque(Arc::new(change))))
    }

    fn change(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// Returns the names of application protocols as the options hold them.
#[doc(hidden)]
pub fn protocol_list(protocols: impl IntoIterator<Item: AsRef<[u8]>>) -> Vec<Vec<u8>> {
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
