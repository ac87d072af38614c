//! The choice of a TLS library.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::SystemTime;

use crate::certificate::Validity;
use crate::options::check_alpn;
use crate::{ClientOptions, ConfigError, Provider, ServerOptions};

#[cfg(test)]
mod tests;

/// The TLS library that does the handshakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Backend {
    /// rustls, the default: exact group lists, 0-RTT, a third of the memory.
    #[default]
    Rustls,
    /// s2n-tls (unix only).
    S2nTls,
}

impl Backend {
    /// Both libraries, the default first.
    pub const ALL: [Self; 2] = [Self::Rustls, Self::S2nTls];

    /// Returns the name, as [`FromStr`] reads it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rustls => "rustls",
            Self::S2nTls => "s2n-tls",
        }
    }

    /// Makes a client's provider.
    ///
    /// # Errors
    /// Names the option that cannot be used, and how to mend it.
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
    /// Names the option that cannot be used, and how to mend it.
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

    /// Checks the options of a server without serving anybody.
    ///
    /// Builds the provider, and with it checks that this library knows the groups and suites, that
    /// each key belongs to its certificate, and that roots, revocation lists and the key log can be
    /// read and written. Then checks that no certificate is expired or not valid yet at `now`.
    ///
    /// # Errors
    /// Names the option that cannot be used, and how to mend it; [`ConfigError::Validity`] for a
    /// certificate at the wrong time.
    ///
    /// # Examples
    /// ```no_run
    /// use std::time::SystemTime;
    /// use hybriq_tls::{Backend, Identity, ServerOptions};
    ///
    /// let options = ServerOptions::new(Identity::from_pem_files("chain.pem", "key.pem")?);
    /// Backend::Rustls.check_server(&options, SystemTime::now())?;
    /// # Ok::<_, hybriq_tls::ConfigError>(())
    /// ```
    pub fn check_server(self, options: &ServerOptions, now: SystemTime) -> Result<(), ConfigError> {
        self.server(options)?;
        for (position, identity) in options.identities.iter().enumerate() {
            let leaf = identity.certificates().first();
            let validity = leaf.and_then(|leaf| Validity::of(leaf)).ok_or_else(|| {
                ConfigError::Identity(format!(
                    "certificate {position} has no readable time of validity; have it reissued"
                ))
            })?;
            if let Some(problem) = validity.problem(now) {
                return Err(ConfigError::Validity {
                    certificate: position,
                    problem,
                });
            }
        }
        Ok(())
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
