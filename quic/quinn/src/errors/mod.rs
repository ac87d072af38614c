//! Errors, with quinn's variants.

mod stream;

use std::{fmt, io, net::SocketAddr};

use bytes::Bytes;
use hybriq::{
    error::{By, Code, EarlyError},
    transport::FrameType,
};

pub use self::stream::{
    ClosedStream, ReadError, ReadExactError, ReadToEndError, ResetError, StoppedError, WriteError,
};
use crate::{VarInt, VarIntBoundsExceeded};

/// A transport error code (RFC 9000 §20.1).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TransportErrorCode(u64);

macro_rules! codes {
    ($($name:ident)*) => {
        impl TransportErrorCode {
            $(#[doc = concat!("`", stringify!($name), "` (RFC 9000 §20.1).")]
            pub const $name: Self = Self(Code::$name.0);)*
        }
    };
}

codes! {
    NO_ERROR INTERNAL_ERROR CONNECTION_REFUSED FLOW_CONTROL_ERROR STREAM_LIMIT_ERROR STREAM_STATE_ERROR
    FINAL_SIZE_ERROR FRAME_ENCODING_ERROR TRANSPORT_PARAMETER_ERROR CONNECTION_ID_LIMIT_ERROR
    PROTOCOL_VIOLATION INVALID_TOKEN APPLICATION_ERROR CRYPTO_BUFFER_EXCEEDED KEY_UPDATE_ERROR
    AEAD_LIMIT_REACHED NO_VIABLE_PATH
}

impl TransportErrorCode {
    /// Returns the code of a TLS alert (RFC 9001 §4.8).
    pub const fn crypto(alert: u8) -> Self {
        Self(Code::crypto(alert).0)
    }
}

impl fmt::Debug for TransportErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Code(self.0), f)
    }
}

impl fmt::Display for TransportErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Code(self.0), f)
    }
}

impl From<TransportErrorCode> for u64 {
    fn from(code: TransportErrorCode) -> Self {
        code.0
    }
}

/// Error for which this end closed a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportError {
    /// Code that the peer receives.
    pub code: TransportErrorCode,
    /// Type of the frame at fault.
    pub frame: Option<FrameType>,
    /// The reason, for humans.
    pub reason: String,
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some(frame) = &self.frame {
            write!(f, " in {frame:?}")?;
        }
        match &*self.reason {
            "" => Ok(()),
            reason => write!(f, ": {reason}"),
        }
    }
}

impl std::error::Error for TransportError {}

/// Reason why the peer's transport closed a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionClose {
    /// The code.
    pub error_code: TransportErrorCode,
    /// Type of the frame at fault.
    pub frame_type: Option<FrameType>,
    /// The reason, for humans.
    pub reason: Bytes,
}

impl fmt::Display for ConnectionClose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error_code)?;
        because(f, &self.reason)
    }
}

/// Reason why the peer's application closed a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationClose {
    /// The application's code.
    pub error_code: VarInt,
    /// The reason, for humans.
    pub reason: Bytes,
}

impl fmt::Display for ApplicationClose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.reason.is_empty() {
            return write!(f, "code {}", self.error_code);
        }
        write!(
            f,
            "{}",
            String::from_utf8_lossy(&self.reason).escape_debug()
        )?;
        write!(f, " (code {})", self.error_code)
    }
}

fn because(f: &mut fmt::Formatter<'_>, reason: &[u8]) -> fmt::Result {
    if reason.is_empty() {
        return Ok(());
    }
    write!(f, ": {}", String::from_utf8_lossy(reason).escape_debug())
}

/// Reason why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// The peer supports none of the versions of this end.
    #[error("peer doesn't implement any supported version")]
    VersionMismatch,
    /// This end's transport closed it: the peer broke a rule, or TLS failed.
    #[error(transparent)]
    TransportError(#[from] TransportError),
    /// The peer's transport closed it.
    #[error("aborted by peer: {0}")]
    ConnectionClosed(ConnectionClose),
    /// The peer's application closed it.
    #[error("closed by peer: {0}")]
    ApplicationClosed(ApplicationClose),
    /// The peer lost its state.
    #[error("reset by peer")]
    Reset,
    /// The peer fell silent, or never answered.
    #[error("timed out")]
    TimedOut,
    /// The application of this end closed it.
    #[error("closed")]
    LocallyClosed,
    /// Without connection ids there can be only one connection to an address.
    #[error("CIDs exhausted")]
    CidsExhausted,
}

impl ConnectionError {
    /// Returns an error of this end.
    fn ours(code: TransportErrorCode, reason: impl fmt::Display) -> Self {
        Self::TransportError(TransportError {
            code,
            frame: None,
            reason: reason.to_string(),
        })
    }
}

impl From<hybriq::ConnectionError> for ConnectionError {
    fn from(error: hybriq::ConnectionError) -> Self {
        use hybriq::ConnectionError as Theirs;
        const REFUSED: TransportErrorCode = TransportErrorCode::crypto(40);
        match error {
            Theirs::Application { by: By::Local, .. } => Self::LocallyClosed,
            Theirs::Application { code, reason, .. } => Self::ApplicationClosed(ApplicationClose {
                error_code: VarInt::of_wire(code),
                reason,
            }),
            Theirs::Transport {
                by: By::Local,
                code,
                frame,
                reason,
                ..
            } => Self::TransportError(TransportError {
                code: TransportErrorCode(code.0),
                frame,
                reason: String::from_utf8_lossy(&reason).into_owned(),
            }),
            Theirs::Transport {
                code,
                frame,
                reason,
                ..
            } => Self::ConnectionClosed(ConnectionClose {
                error_code: TransportErrorCode(code.0),
                frame_type: frame,
                reason,
            }),
            Theirs::KeyExchangeRefused {
                by: By::Peer,
                reason,
                ..
            } => Self::ConnectionClosed(ConnectionClose {
                error_code: REFUSED,
                frame_type: None,
                reason: reason.into(),
            }),
            error @ (Theirs::KeyExchangeRefused { .. } | Theirs::Downgraded(_)) => {
                Self::ours(REFUSED, error)
            }
            Theirs::Reset => Self::Reset,
            Theirs::VersionMismatch => Self::VersionMismatch,
            // quinn has no other error for a peer that cannot be reached.
            error @ (Theirs::TimedOut
            | Theirs::HandshakeTimedOut
            | Theirs::NoAnswer
            | Theirs::Unreachable { .. }) => {
                tracing::debug!("{error}");
                Self::TimedOut
            }
            error => Self::ours(TransportErrorCode::INTERNAL_ERROR, error),
        }
    }
}

impl From<hybriq::ConnectError> for ConnectionError {
    fn from(error: hybriq::ConnectError) -> Self {
        use hybriq::ConnectError as Theirs;
        match error {
            Theirs::Connection(error) => error.into(),
            Theirs::EndpointClosed => Self::LocallyClosed,
            Theirs::AddressInUse(_) => Self::CidsExhausted,
            error => Self::ours(TransportErrorCode::INTERNAL_ERROR, error),
        }
    }
}

impl From<ConnectionError> for io::Error {
    fn from(error: ConnectionError) -> Self {
        let kind = match error {
            ConnectionError::TimedOut => io::ErrorKind::TimedOut,
            ConnectionError::Reset => io::ErrorKind::ConnectionReset,
            ConnectionError::ApplicationClosed(_) | ConnectionError::ConnectionClosed(_) => {
                io::ErrorKind::ConnectionAborted
            }
            ConnectionError::TransportError(_)
            | ConnectionError::VersionMismatch
            | ConnectionError::LocallyClosed
            | ConnectionError::CidsExhausted => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// Error of starting a connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The endpoint is closed.
    #[error("endpoint stopping")]
    EndpointStopping,
    /// Without connection ids there can be only one connection to an address.
    #[error("CIDs exhausted")]
    CidsExhausted,
    /// The name is neither a DNS name nor an IP address.
    #[error("invalid server name: {0}")]
    InvalidServerName(String),
    /// No server can have this address, or the endpoint's socket cannot reach it.
    #[error("invalid remote address: {0}")]
    InvalidRemoteAddress(SocketAddr),
    /// The endpoint has no client configuration.
    #[error("no default client config")]
    NoDefaultClientConfig,
    /// The configuration's version is not supported.
    #[error("unsupported QUIC version")]
    UnsupportedVersion,
}

impl From<hybriq::ConnectError> for ConnectError {
    fn from(error: hybriq::ConnectError) -> Self {
        use hybriq::ConnectError as Theirs;
        match error {
            Theirs::NoClientConfig => Self::NoDefaultClientConfig,
            Theirs::PortZero(address) | Theirs::Address(address) => {
                Self::InvalidRemoteAddress(address)
            }
            Theirs::ServerName(name) => Self::InvalidServerName(name),
            Theirs::AddressInUse(_) => Self::CidsExhausted,
            error => {
                tracing::debug!("{error}");
                Self::EndpointStopping
            }
        }
    }
}

/// A value of a configuration is out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The value exceeds its bounds.
    #[error("value exceeds supported bounds")]
    OutOfBounds,
}

impl From<VarIntBoundsExceeded> for ConfigError {
    fn from(_: VarIntBoundsExceeded) -> Self {
        Self::OutOfBounds
    }
}

/// Error of sending a datagram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendDatagramError {
    /// The peer accepts no datagrams.
    #[error("datagrams not supported by peer")]
    UnsupportedByPeer,
    /// This end accepts no datagrams.
    #[error("datagram support disabled")]
    Disabled,
    /// The datagram is larger than the path allows now.
    #[error("datagram too large")]
    TooLarge,
    /// The connection is over.
    #[error("connection lost")]
    ConnectionLost(#[from] ConnectionError),
}

/// Returns the error of the connection; `None` if the server refused 0-RTT data.
pub(crate) fn of_early(error: EarlyError) -> Option<ConnectionError> {
    match error {
        EarlyError::Connection(error) => Some(error.into()),
        _ => None,
    }
}
