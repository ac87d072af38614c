//! A client's connection, in terms common to all implementations.

use std::{fmt, future::Future, pin::Pin};

use hybriq::{Group, error::By};
use hybriq_netbench::stacks::Close;
use tokio::io::{AsyncRead, AsyncWrite};

/// Future that an object-safe async method returns.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// Sending half of a stream of any implementation.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;
/// Receiving half of a stream of any implementation.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// A client's connection. Dropping it closes it.
pub trait Connection: Send + Sync {
    /// Returns what the implementation tells about its handshake.
    fn handshake(&self) -> Handshake;

    /// Opens a bidirectional stream; waits while the server's limit allows none.
    fn open(&self) -> Answer<'_, Result<(Writer, Reader), Failure>>;

    /// Starts a key update.
    fn update_keys(&self) {}

    /// Returns the number of key updates, if it can tell.
    fn key_updates(&self) -> Option<u64> {
        None
    }

    /// Sends a datagram and waits for the next one received.
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

/// Facts about a handshake that an implementation tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    /// Key-exchange group, if it can tell.
    pub group: Option<Group>,
    /// True if there was a HelloRetryRequest, if it can tell.
    pub hello_retry: Option<bool>,
    /// True if a session was resumed, if it can tell.
    pub resumed: Option<bool>,
}

/// Reason why there is no connection, in common terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A refused key exchange, reported by a special error of the implementation.
    KeyExchangeRefused {
        /// End that refused.
        by: By,
        /// Reason that the closing end gave.
        reason: String,
    },
    /// A transport error or a TLS alert.
    Transport {
        /// End that closed.
        by: By,
        /// Error code of the `CONNECTION_CLOSE`.
        code: u64,
        /// Reason that the closing end gave.
        reason: String,
    },
    /// The configuration was refused.
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

impl From<Close> for Failure {
    fn from(close: Close) -> Self {
        Self::Transport {
            by: close.by,
            code: close.code,
            reason: close.reason,
        }
    }
}

impl Failure {
    /// Wraps an error that needs no closer look.
    pub fn other(error: impl fmt::Display) -> Self {
        Self::Other(error.to_string())
    }

    /// Wraps an error of a configuration.
    pub fn set_up(error: impl fmt::Display) -> Self {
        Self::SetUp(error.to_string())
    }
}
