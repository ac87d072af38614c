//! What can go wrong, one type per operation.

use std::io;

use bytes::Bytes;

use crate::proto::error::Code;

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// An application closed it (RFC 9000 §10.2).
    #[error("closed by the {} application: code {code}{}", who(*by), because(reason))]
    Application {
        /// Whether we or the peer did.
        by: By,
        /// The application's code.
        code: u64,
        /// The reason given.
        reason: Bytes,
    },
    /// A transport closed it because of an error (RFC 9000 §20.1) or a TLS alert (§4.8 of RFC 9001).
    #[error("closed by the {} transport: {code}{}", who(*by), because(reason))]
    Transport {
        /// Whether we or the peer did.
        by: By,
        /// The error code.
        code: Code,
        /// The type of the frame at fault, 0 where none was.
        frame: u64,
        /// The reason given.
        reason: Bytes,
    },
    /// The key exchange did not satisfy the policy: a post-quantum group was required and the peer
    /// offered or chose none.
    #[error(
        "the {} refused the key exchange: {reason}; to talk to peers without ML-KEM choose KeyExchange::PreferPostQuantum",
        who(*by)
    )]
    KeyExchangeRefused {
        /// Whether we or the peer did.
        by: By,
        /// What was missing.
        reason: String,
    },
    /// The peer lost its state and said so with a stateless reset (RFC 9000 §10.3).
    #[error("reset by the peer")]
    Reset,
    /// Nothing came for the idle timeout, or the handshake took too long.
    #[error("timed out")]
    TimedOut,
    /// The peer speaks none of our versions.
    #[error("the peer supports no QUIC version of ours")]
    VersionMismatch,
}

/// Who closed a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// This end.
    Local,
    /// The other end.
    Peer,
}

fn who(by: By) -> &'static str {
    match by {
        By::Local => "local",
        By::Peer => "peer's",
    }
}

fn because(reason: &Bytes) -> String {
    if reason.is_empty() {
        String::new()
    } else {
        format!(" ({})", String::from_utf8_lossy(reason))
    }
}

impl ConnectionError {
    /// Whether an application closed it with code 0 or a transport without an error: the normal end.
    pub fn is_clean(&self) -> bool {
        matches!(
            self,
            Self::Application { code: 0, .. }
                | Self::Transport {
                    code: Code::NO_ERROR,
                    ..
                }
        )
    }
}

impl From<ConnectionError> for io::Error {
    fn from(error: ConnectionError) -> Self {
        let kind = match error {
            ConnectionError::TimedOut => io::ErrorKind::TimedOut,
            ConnectionError::Reset => io::ErrorKind::ConnectionReset,
            ConnectionError::Application { .. } | ConnectionError::Transport { .. } => {
                io::ErrorKind::ConnectionAborted
            }
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// Why no connection could be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint was closed.
    #[error("the endpoint is closed; make a new one")]
    EndpointClosed,
    /// The endpoint has no client configuration.
    #[error("this endpoint has no client configuration; use Endpoint::client, or connect_with")]
    NoClientConfig,
    /// The address cannot be reached from this endpoint's socket.
    #[error("cannot connect to {0}: bind the endpoint to an address of the same family")]
    Address(std::net::SocketAddr),
    /// The server name is neither a DNS name nor an IP address.
    #[error("'{0}' is neither a DNS name nor an IP address")]
    ServerName(String),
    /// The TLS configuration cannot be used.
    #[error(transparent)]
    Tls(#[from] hybriq_tls::ConfigError),
    /// The handshake failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}
