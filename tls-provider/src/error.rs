//! Errors of handshakes and of configurations.

use std::{fmt, path::PathBuf};

use crate::{Alert, GroupMismatch, Profile, UnknownProfile};

/// A handshake that this end aborted.
///
/// Its text names the alert, the problem and the remedy. It is for this end: the peer, which may be
/// anybody, receives the alert and [`reason_for_peer`](Self::reason_for_peer).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Alert sent to the peer.
    pub alert: Alert,
    /// Reason for the local application and log.
    pub detail: String,
    /// True if the peer also receives the detail.
    told: bool,
    protocol_violation: bool,
    groups: Option<Box<GroupMismatch>>,
}

impl Error {
    /// Reason that the peer receives instead of a detail that it must not see.
    pub const PRIVATE: &str =
        "the details are in the log of the endpoint that closed the connection";

    /// Creates an error from an alert and a sentence for this end's application and log. The peer
    /// receives only the alert.
    ///
    /// # Security
    /// Use this for everything that reveals something about this machine: paths, system errors, and
    /// errors of a key store or database.
    pub fn new(alert: Alert, detail: impl Into<String>) -> Self {
        Self {
            alert,
            detail: detail.into(),
            told: false,
            protocol_violation: false,
            groups: None,
        }
    }

    /// Creates an error whose detail the peer receives with the alert: what the peer did wrong, or
    /// how to be accepted.
    ///
    /// # Security
    /// Anybody may read the detail, before any authentication.
    pub fn told(alert: Alert, detail: impl Into<String>) -> Self {
        Self {
            told: true,
            ..Self::new(alert, detail)
        }
    }

    /// Returns the reason that the peer receives with the alert: the detail if it is
    /// [told](Self::told), otherwise [`PRIVATE`](Self::PRIVATE).
    pub fn reason_for_peer(&self) -> &str {
        if self.is_told() {
            &self.detail
        } else {
            Self::PRIVATE
        }
    }

    /// Returns true if the peer receives the detail. An internal failure of this end is never told.
    pub fn is_told(&self) -> bool {
        self.told && self.alert != Alert::INTERNAL_ERROR
    }

    /// Creates the error of two ends without a common key-exchange group.
    pub fn no_common_group(groups: GroupMismatch) -> Self {
        let detail = format!("no key-exchange group in common: {groups}");
        Self {
            groups: Some(Box::new(groups)),
            ..Self::told(Alert::HANDSHAKE_FAILURE, detail)
        }
    }

    /// Returns the groups of both ends if they have none in common.
    pub fn groups(&self) -> Option<&GroupMismatch> {
        self.groups.as_deref()
    }

    /// Makes an error that RFC 9001 calls a `PROTOCOL_VIOLATION` rather than an alert.
    pub(crate) fn protocol_violation(detail: impl Into<String>) -> Self {
        Self {
            protocol_violation: true,
            ..Self::told(Alert::ILLEGAL_PARAMETER, detail)
        }
    }

    /// Returns the transport error code that closes the connection (RFC 9000 §20.1).
    pub fn code(&self) -> u64 {
        if self.protocol_violation {
            0x0a
        } else {
            0x0100 + u64::from(self.alert.0)
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.protocol_violation {
            return write!(f, "PROTOCOL_VIOLATION: {}", self.detail);
        }
        write!(f, "{}: {}", self.alert, self.detail)?;
        match self.alert.remedy() {
            // Some reasons already say what to do.
            Some(remedy) if !self.detail.contains(';') => write!(f, "; {remedy}"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

/// Text for a key that does not belong to the certificate, the same for both libraries.
#[cfg(any(feature = "rustls", feature = "s2n-tls"))]
pub(crate) const KEY_MISMATCH: &str =
    "the key is not the one the certificate was issued for; give the two that belong together";

/// A TLS configuration that cannot be used. Each error says how to fix it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file could not be read.
    #[error("cannot read {path}: {cause}; check the path and its permissions")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        cause: std::io::Error,
    },
    /// A file could not be opened for writing.
    #[error("cannot write {path}: {cause}; check the directory and its permissions")]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        cause: std::io::Error,
    },
    /// A PEM file contains no usable certificate or key.
    #[error("{path} holds no {wanted}; expected PEM (-----BEGIN {label}-----)")]
    Pem {
        /// Path of the file.
        path: PathBuf,
        /// Kind of item that was expected.
        wanted: &'static str,
        /// PEM label that would have been accepted.
        label: &'static str,
    },
    /// The certificate and the private key cannot be used.
    #[error("the certificate or its private key is unusable: {0}")]
    Identity(String),
    /// A certificate is expired or not valid yet.
    #[error("certificate {certificate} {problem}; renew it, or set the clock right")]
    Validity {
        /// Position of the identity in the order in which they were added, from 0.
        certificate: usize,
        /// The problem, with the time in seconds since 1970.
        problem: String,
    },
    /// The trusted roots cannot be used.
    #[error("the trusted root certificates are unusable: {0}")]
    Roots(String),
    /// The name does not belong to a TLS library known here.
    #[error("there is no TLS library `{0}`; use `rustls` or `s2n-tls`")]
    UnknownBackend(String),
    /// The name does not belong to a [`Profile`].
    #[error(transparent)]
    UnknownProfile(#[from] UnknownProfile),
    /// The profile forbids a requested option.
    #[error("profile `{profile}` ({}): {problem}", profile.source())]
    Profile {
        /// The profile.
        profile: Profile,
        /// The rule that is broken, and what to do.
        problem: String,
    },
    /// The provider does not support this key-exchange policy.
    #[error("{provider} cannot do {wanted}: {hint}")]
    KeyExchange {
        /// Name of the provider.
        provider: &'static str,
        /// Requested policy.
        wanted: String,
        /// Policies that work, and other remedies.
        hint: String,
    },
    /// The provider does not support another requested option.
    #[error("{provider}: {detail}")]
    Unsupported {
        /// Name of the provider.
        provider: &'static str,
        /// The limitation, and what to do instead.
        detail: String,
    },
}

impl ConfigError {
    /// Creates the error for an option that a provider does not support.
    #[cfg(any(feature = "rustls", feature = "s2n-tls"))]
    pub(crate) fn unsupported(provider: &'static str, detail: impl Into<String>) -> Self {
        Self::Unsupported {
            provider,
            detail: detail.into(),
        }
    }
}

/// All problems of a configuration, at least one.
///
/// Its text says how to fix each of them.
#[derive(Debug)]
pub struct ConfigErrors {
    first: ConfigError,
    others: Vec<ConfigError>,
}

impl ConfigErrors {
    /// Collects errors; `None` if there are none.
    pub(crate) fn new(errors: Vec<ConfigError>) -> Option<Self> {
        let mut errors = errors.into_iter();
        Some(Self {
            first: errors.next()?,
            others: errors.collect(),
        })
    }

    /// Returns the first problem.
    pub const fn first(&self) -> &ConfigError {
        &self.first
    }

    /// Returns all problems, in the order in which they were found.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self {
            first: error,
            others: Vec::new(),
        }
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.others.is_empty() {
            return self.first.fmt(f);
        }
        write!(f, "{} problems:", 1 + self.others.len())?;
        for (index, error) in self.iter().enumerate() {
            write!(f, "\n{}. {error}", index + 1)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
