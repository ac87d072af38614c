//! The choice of a TLS library.

use std::{fmt, str::FromStr, sync::Arc, time::SystemTime};

use crate::{
    ClientOptions, ConfigError, ConfigErrors, Profile, Provider, ServerOptions, SessionMemory,
    admission::algorithms::Problems, options::check_alpn,
};

#[cfg(test)]
mod tests;

/// The TLS library that does the handshakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// rustls, the default: exact group lists, and 0-RTT.
    #[default]
    Rustls,
    /// s2n-tls (unix only).
    S2nTls,
}

impl Backend {
    /// Both libraries, the default first.
    pub const ALL: [Self; 2] = [Self::Rustls, Self::S2nTls];

    /// Returns the name, in the form that [`FromStr`] reads.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rustls => "rustls",
            Self::S2nTls => "s2n-tls",
        }
    }

    /// Returns where the sessions of a client with these options are kept, assuming that it is
    /// given a [`SessionStore`](crate::SessionStore) if it can use one.
    pub fn session_memory(self, options: &ClientOptions) -> SessionMemory {
        if options.no_resumption {
            SessionMemory::Off
        } else if options.session_store.is_some() {
            SessionMemory::Application
        } else if self == Self::Rustls {
            SessionMemory::Library
        } else if options.shared.profile != Profile::Default {
            SessionMemory::Profile
        } else if options.trust.custom().is_some() {
            SessionMemory::Verifier
        } else {
            SessionMemory::Stored
        }
    }

    /// Creates a client's provider.
    ///
    /// # Errors
    /// The error names the option that cannot be used and says how to fix it.
    pub fn client(self, options: &ClientOptions) -> Result<Arc<dyn Provider>, ConfigError> {
        check_alpn(self.name(), &options.shared.alpn)?;
        match self {
            #[cfg(feature = "rustls")]
            Self::Rustls => Ok(Arc::new(super::rustls::Client::new(options)?)),
            #[cfg(all(unix, feature = "s2n-tls"))]
            Self::S2nTls => Ok(Arc::new(super::s2n::Client::new(options)?)),
            #[cfg(not(all(unix, feature = "rustls", feature = "s2n-tls")))]
            _ => Err(self.not_built()),
        }
    }

    /// Creates a server's provider.
    ///
    /// # Errors
    /// The error names the option that cannot be used and says how to fix it.
    pub fn server(self, options: &ServerOptions) -> Result<Arc<dyn Provider>, ConfigError> {
        check_alpn(self.name(), &options.shared.alpn)?;
        match self {
            #[cfg(feature = "rustls")]
            Self::Rustls => Ok(Arc::new(super::rustls::Server::new(options)?)),
            #[cfg(all(unix, feature = "s2n-tls"))]
            Self::S2nTls => Ok(Arc::new(super::s2n::Server::new(options)?)),
            #[cfg(not(all(unix, feature = "rustls", feature = "s2n-tls")))]
            _ => Err(self.not_built()),
        }
    }

    /// Checks the options of a client without connecting.
    ///
    /// Checks that this library knows the groups and suites, that the key belongs to its
    /// certificate, which is valid at `now`, and that roots, revocation lists and the key log can
    /// be used.
    ///
    /// # Errors
    /// The error names every option that cannot be used and says how to fix it.
    pub fn check_client(
        self,
        options: &ClientOptions,
        now: SystemTime,
    ) -> Result<(), ConfigErrors> {
        let mut problems = Problems::default();
        problems.note(check_alpn(self.name(), &options.shared.alpn));
        match self {
            #[cfg(feature = "rustls")]
            Self::Rustls => super::rustls::check::client(options, &mut problems),
            #[cfg(all(unix, feature = "s2n-tls"))]
            Self::S2nTls => super::s2n::check::client(options, &mut problems),
            #[cfg(not(all(unix, feature = "rustls", feature = "s2n-tls")))]
            _ => {}
        }
        if let Some(identity) = &options.identity {
            problems.note_validity(std::slice::from_ref(identity), now);
        }
        if problems.is_empty() {
            problems.note(self.client(options));
        }
        problems.into_result()
    }

    /// Checks the options of a server without serving anybody.
    ///
    /// Checks that this library knows the groups and suites, that each key belongs to its
    /// certificate, which is valid at `now`, and that roots, revocation lists and the key log can
    /// be used.
    ///
    /// # Errors
    /// The error names every option that cannot be used and says how to fix it;
    /// [`ConfigError::Validity`] for a certificate that is expired or not valid yet.
    ///
    /// # Examples
    /// ```no_run
    /// use std::time::SystemTime;
    /// use hybriq_tls::{Backend, Identity, ServerOptions};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let options = ServerOptions::new(Identity::from_pem_files("chain.pem", "key.pem")?);
    /// if let Err(problems) = Backend::Rustls.check_server(&options, SystemTime::now()) {
    ///     for problem in problems.iter() {
    ///         eprintln!("{problem}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn check_server(
        self,
        options: &ServerOptions,
        now: SystemTime,
    ) -> Result<(), ConfigErrors> {
        let mut problems = Problems::default();
        problems.note(check_alpn(self.name(), &options.shared.alpn));
        match self {
            #[cfg(feature = "rustls")]
            Self::Rustls => super::rustls::check::server(options, &mut problems),
            #[cfg(all(unix, feature = "s2n-tls"))]
            Self::S2nTls => super::s2n::check::server(options, &mut problems),
            #[cfg(not(all(unix, feature = "rustls", feature = "s2n-tls")))]
            _ => {}
        }
        problems.note_validity(&options.identities, now);
        if problems.is_empty() {
            // Finds problems that appear only when options are combined.
            problems.note(self.server(options));
        }
        problems.into_result()
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
