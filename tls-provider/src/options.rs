//! Stand-ins until the providers arrive.

use std::{path::{Path, PathBuf}, sync::Arc};

use crate::{CertificateDer, ConfigError, KeyExchange, PrivateKeyDer, Provider, Suite};

/// A certificate chain and its private key.
#[derive(Clone, Debug)]
pub struct Identity;

impl Identity {
    /// Reads PEM files.
    pub fn from_pem_files(_: impl AsRef<Path>, _: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Ok(Self)
    }

    /// Reads PEM text.
    pub fn from_pem(_: &[u8], _: &[u8]) -> Result<Self, ConfigError> {
        Ok(Self)
    }

    /// Takes the parts.
    pub fn from_der(_: Vec<CertificateDer<'static>>, _: PrivateKeyDer<'static>) -> Self {
        Self
    }
}

/// Who is believed.
#[derive(Clone, Debug, Default)]
pub struct Trust;

impl Trust {
    /// The system's roots.
    pub fn system() -> Self {
        Self
    }

    /// The certificates of a PEM file.
    pub fn roots_pem_file(_: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Ok(Self)
    }

    /// These certificates.
    pub fn roots_der(_: impl IntoIterator<Item = CertificateDer<'static>>) -> Self {
        Self
    }

    /// Anybody.
    pub fn dangerously_accept_any_certificate() -> Self {
        Self
    }
}

/// Where secrets are logged.
#[derive(Clone, Default)]
pub enum KeyLog {
    /// Nowhere.
    #[default]
    Off,
    /// `SSLKEYLOGFILE`.
    Environment,
    /// A file.
    File(PathBuf),
    /// A function.
    Callback(Arc<dyn Fn(&str) + Send + Sync>),
}

impl std::fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyLog")
    }
}

/// Whether a server asks clients for a certificate.
#[derive(Clone, Debug, Default)]
pub enum ClientAuth {
    /// No.
    #[default]
    None,
    /// If it has one.
    Optional(Trust),
    /// Yes.
    Required(Trust),
}

/// What a client's TLS is made from.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions;

/// What a server's TLS is made from.
#[derive(Clone, Debug)]
pub struct ServerOptions;

macro_rules! setters {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => {
        $(
            /// A setter.
            #[must_use]
            pub fn $name(self $(, $arg: $ty)*) -> Self {
                $(let _ = $arg;)*
                self
            }
        )*
    };
}

impl ClientOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self
    }
    setters! {
        alpn(protocols: impl IntoIterator<Item: AsRef<[u8]>>);
        trust(trust: Trust);
        identity(identity: Identity);
        key_exchange(policy: KeyExchange);
        suites(suites: Vec<Suite>);
        key_log(key_log: KeyLog);
        without_resumption();
    }
}

impl ServerOptions {
    /// The defaults.
    pub fn new(_: Identity) -> Self {
        Self
    }
    setters! {
        add_identity(identity: Identity);
        alpn(protocols: impl IntoIterator<Item: AsRef<[u8]>>);
        client_auth(client_auth: ClientAuth);
        key_exchange(policy: KeyExchange);
        key_exchange_for(server_name: impl Into<String>, policy: KeyExchange);
        suites(suites: Vec<Suite>);
        key_log(key_log: KeyLog);
        without_tickets();
    }
}

/// Which TLS library does the handshakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Backend {
    /// rustls.
    #[default]
    Rustls,
    /// s2n-tls.
    S2nTls,
}

impl Backend {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Rustls, Self::S2nTls];

    /// Makes a client's provider.
    pub fn client(self, _: &ClientOptions) -> Result<Arc<dyn Provider>, ConfigError> {
        todo!()
    }

    /// Makes a server's provider.
    pub fn server(self, _: &ServerOptions) -> Result<Arc<dyn Provider>, ConfigError> {
        todo!()
    }
}
