//! Cipher suites and the secrets negotiated for them.

use std::fmt;

use arrayvec::ArrayVec;
use zeroize::Zeroize;

use crate::{Level, Side};

/// A TLS 1.3 cipher suite that QUIC can use (RFC 9001 §5.3), by its IANA value.
///
/// Exhaustive: packet protection must know each suite (RFC 9001 §5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Suite {
    /// `TLS_AES_128_GCM_SHA256`.
    Aes128GcmSha256 = 0x1301,
    /// `TLS_AES_256_GCM_SHA384`.
    Aes256GcmSha384 = 0x1302,
    /// `TLS_CHACHA20_POLY1305_SHA256`.
    ChaCha20Poly1305Sha256 = 0x1303,
}

impl Suite {
    /// Returns the suite of an IANA value, if QUIC can use it.
    pub const fn from_iana(value: u16) -> Option<Self> {
        match value {
            0x1301 => Some(Self::Aes128GcmSha256),
            0x1302 => Some(Self::Aes256GcmSha384),
            0x1303 => Some(Self::ChaCha20Poly1305Sha256),
            _ => None,
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aes128GcmSha256 => "TLS_AES_128_GCM_SHA256",
            Self::Aes256GcmSha384 => "TLS_AES_256_GCM_SHA384",
            Self::ChaCha20Poly1305Sha256 => "TLS_CHACHA20_POLY1305_SHA256",
        })
    }
}

/// A traffic or exporter secret. Wiped on drop; `Debug` never shows the bytes.
#[derive(Clone)]
pub struct Secret {
    level: Level,
    writer: Side,
    suite: Suite,
    bytes: ArrayVec<u8, 48>,
}

impl Secret {
    /// Copies a secret of at most 48 bytes; returns `None` if it is longer.
    pub fn new(level: Level, writer: Side, suite: Suite, bytes: &[u8]) -> Option<Self> {
        Some(Self {
            level,
            writer,
            suite,
            bytes: bytes.try_into().ok()?,
        })
    }

    /// Returns the level whose packets it protects.
    pub const fn level(&self) -> Level {
        self.level
    }

    /// Returns the end that encrypts with keys derived from it.
    pub const fn writer(&self) -> Side {
        self.writer
    }

    /// Returns the suite it was negotiated for.
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// Returns the secret itself.
    ///
    /// # Security
    /// Whoever has these bytes can read the connection.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.bytes.as_mut_slice().zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("level", &self.level)
            .field("writer", &self.writer)
            .field("suite", &self.suite)
            .finish_non_exhaustive()
    }
}
