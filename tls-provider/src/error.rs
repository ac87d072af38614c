use std::{fmt, path::PathBuf};

/// A TLS alert description (RFC 8446 §6). On the wire of QUIC it is `CRYPTO_ERROR`, `0x0100 + alert`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Alert(pub u8);

impl Alert {
    /// `unexpected_message`.
    pub const UNEXPECTED_MESSAGE: Self = Self(10);
    /// `handshake_failure`: no common parameters, for one no common group.
    pub const HANDSHAKE_FAILURE: Self = Self(40);
    /// `bad_certificate`: also a certificate for another name.
    pub const BAD_CERTIFICATE: Self = Self(42);
    /// `certificate_unknown`.
    pub const CERTIFICATE_UNKNOWN: Self = Self(46);
    /// `illegal_parameter`.
    pub const ILLEGAL_PARAMETER: Self = Self(47);
    /// `unknown_ca`.
    pub const UNKNOWN_CA: Self = Self(48);
    /// `decode_error`.
    pub const DECODE_ERROR: Self = Self(50);
    /// `internal_error`: only ever our own fault.
    pub const INTERNAL_ERROR: Self = Self(80);
    /// `missing_extension`: for one, no transport parameters.
    pub const MISSING_EXTENSION: Self = Self(109);
    /// `no_application_protocol`.
    pub const NO_APPLICATION_PROTOCOL: Self = Self(120);
}

/// Why a handshake failed here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What the peer is told.
    pub alert: Alert,
    /// What the log is told.
    pub detail: String,
    protocol_violation: bool,
}

impl Error {
    /// An error with its alert and a sentence for the log.
    pub fn new(alert: Alert, detail: impl Into<String>) -> Self {
        Self {
            alert,
            detail: detail.into(),
            protocol_violation: false,
        }
    }

    /// What RFC 9001 calls a `PROTOCOL_VIOLATION` rather than an alert.
    pub(crate) fn protocol_violation(detail: impl Into<String>) -> Self {
        Self {
            protocol_violation: true,
            ..Self::new(Alert::ILLEGAL_PARAMETER, detail)
        }
    }

    /// The transport error code of the connection's end (RFC 9000 §20.1).
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
        write!(f, "{} (TLS alert {})", self.detail, self.alert.0)
    }
}

impl std::error::Error for Error {}

/// What both libraries call a mismatch of keys.
#[cfg(any(feature = "rustls", feature = "s2n-tls"))]
pub(crate) const KEY_MISMATCH: &str =
    "the key is not the one the certificate was issued for; give the two that belong together";

/// Why a TLS configuration cannot be used. Each says how to mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file could not be read.
    #[error("cannot read {path}: {source}; check the path and its permissions")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file could not be opened for writing.
    #[error("cannot write {path}: {source}; check the directory and its permissions")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A PEM file holds no usable certificate or key.
    #[error("{path} holds no {wanted}; expected PEM (-----BEGIN {label}-----)")]
    Pem {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        wanted: &'static str,
        /// The PEM label that would have been accepted.
        label: &'static str,
    },
    /// The certificate and the private key cannot be used.
    #[error("the certificate or its private key is unusable: {0}")]
    Identity(String),
    /// The trusted roots cannot be used.
    #[error("the trusted root certificates are unusable: {0}")]
    Roots(String),
    /// A name that is no TLS library known here.
    #[error("there is no TLS library `{0}`; use `rustls` or `s2n-tls`")]
    UnknownBackend(String),
    /// The provider cannot do this key-exchange policy.
    #[error("{provider} cannot do {wanted}: {hint}")]
    KeyExchange {
        /// The provider's name.
        provider: &'static str,
        /// The policy asked for.
        wanted: String,
        /// What it can do.
        hint: String,
    },
    /// The provider cannot do something else that was asked for.
    #[error("{provider}: {detail}")]
    Unsupported {
        /// The provider's name.
        provider: &'static str,
        /// What, and what to do instead.
        detail: String,
    },
}
