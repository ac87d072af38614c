//! A client's connection, in terms that all implementations share.

use std::{fmt, future::Future, pin::Pin};

use hybriq::{By, tls::Group};
use tokio::io::{AsyncRead, AsyncWrite};

/// Future that an object-safe async method returns.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// The sending half of a stream, whichever implementation it comes from.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;
/// The receiving half of a stream, whichever implementation it comes from.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// A client's connection. Dropping it closes it.
pub trait Connection: Send + Sync {
    /// Returns what the implementation tells of its handshake.
    fn handshake(&self) -> Handshake;

    /// Opens a bidirectional stream, waiting for the server's permission where it takes any.
    fn open(&self) -> Answer<'_, Result<(Writer, Reader), Failure>>;

    /// Starts a key update.
    fn update_keys(&self) {}

    /// Returns the number of key updates, where it can tell.
    fn key_updates(&self) -> Option<u64> {
        None
    }

    /// Sends a datagram and waits for the next that comes.
    fn datagram(&self, bytes: Vec<u8>) -> Answer<'_, Result<Vec<u8>, Failure>> {
        let _ = bytes;
        Box::pin(async { Err(Failure::Other("it sends no datagrams".into())) })
    }

    /// Moves to another port.
    fn migrate(&self) -> Answer<'_, Result<(), Failure>> {
        Box::pin(async { Err(Failure::Other("it cannot move".into())) })
    }

    /// Closes with code 0.
    fn close(&self);
}

/// Facts that an implementation tells of a handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    /// The group, where it can tell.
    pub group: Option<Group>,
    /// Whether there was a HelloRetryRequest, where it can tell.
    pub hello_retry: Option<bool>,
    /// Whether a session was resumed, where it can tell.
    pub resumed: Option<bool>,
}

/// Why there is no connection, in words all implementations share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The implementation has an error of its own for a refused key exchange, and gave it.
    KeyExchangeRefused {
        /// Which end refused.
        by: By,
        /// Reason that the closing end gave.
        reason: String,
    },
    /// A transport error or a TLS alert.
    Transport {
        /// Which end closed.
        by: By,
        /// The code of the `CONNECTION_CLOSE`.
        code: u64,
        /// Reason that the closing end gave.
        reason: String,
    },
    /// The configuration was not taken.
    SetUp(String),
    /// Anything else.
    Other(String),
}

/// `CRYPTO_ERROR` with the alert `handshake_failure` (RFC 9001 §4.8, RFC 8446 §6.2).
pub const HANDSHAKE_FAILURE: u64 = 0x128;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyExchangeRefused { by, reason } => {
                write!(f, "key exchange refused, {by:?}: {reason}")
            }
            Self::Transport { by, code, reason } => {
                write!(f, "closed with {code:#x}, {by:?}: {reason}")
            }
            Self::SetUp(reason) => write!(f, "set-up: {reason}"),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// For errors that need no closer look.
    pub fn other(error: impl fmt::Display) -> Self {
        Self::Other(error.to_string())
    }

    /// For errors of a configuration.
    pub fn set_up(error: impl fmt::Display) -> Self {
        Self::SetUp(error.to_string())
    }
}
