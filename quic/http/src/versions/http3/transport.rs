//! Connections of the transport, before and after their handshake.

use hybriq::{
    ConnectionError, EarlyConnection, ReadError, RecvStream, SendStream, StreamId, WriteError,
    error::EarlyError, transport::Priority,
};
use hybriq_h3::{Code, Scope, TooLarge, Violation};

/// A connection of the transport, whose handshake may not be complete.
#[derive(Clone)]
pub(crate) enum Transport {
    Established(hybriq::Connection),
    Early(EarlyConnection),
}

/// Error of a stream of HTTP/3: the source of the errors of requests and bodies.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The peer broke a rule: for the code, the stream or the connection was ended.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The peer reset or stopped the stream.
    #[error("the peer ended the stream with {0}")]
    Ended(Code),
    /// The connection is over.
    #[error(transparent)]
    Connection(ConnectionError),
    /// The connection was closed without an error.
    #[error("the connection is closed")]
    Closed,
    /// The server refused the early data.
    #[error("the server refused 0-RTT data: nothing of it was processed")]
    EarlyDataRefused,
    /// The peer accepts no fields of this size.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The fields of the peer are larger than this end accepts, in bytes.
    #[error("the fields of the peer have more than {0} bytes")]
    HeadTooLarge(u64),
}

impl StreamError {
    /// Returns true if the connection is over, or was never established.
    pub(crate) fn is_of_connection(&self) -> bool {
        match self {
            Self::Connection(_) | Self::Closed | Self::EarlyDataRefused => true,
            Self::Violation(violation) => violation.scope() == Scope::Connection,
            Self::Ended(_) | Self::TooLarge(_) | Self::HeadTooLarge(_) => false,
        }
    }
}

impl From<ConnectionError> for StreamError {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::Application { code, .. } if code == Code::H3_NO_ERROR.0 => {
                Self::Closed
            }
            error if error.is_clean() => Self::Closed,
            error => Self::Connection(error),
        }
    }
}

impl From<EarlyError> for StreamError {
    fn from(error: EarlyError) -> Self {
        match error {
            EarlyError::Connection(error) => error.into(),
            _ => Self::EarlyDataRefused,
        }
    }
}

impl From<ReadError> for StreamError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Reset(code) => Self::Ended(Code(code)),
            ReadError::Connection(error) => error.into(),
            ReadError::ZeroRttRejected => Self::EarlyDataRefused,
            // This end has stopped the stream.
            _ => Self::Ended(Code::H3_REQUEST_CANCELLED),
        }
    }
}

impl From<WriteError> for StreamError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(code) => Self::Ended(Code(code)),
            WriteError::Connection(error) => error.into(),
            WriteError::ZeroRttRejected => Self::EarlyDataRefused,
            // This end has reset the stream.
            _ => Self::Ended(Code::H3_REQUEST_CANCELLED),
        }
    }
}

impl Transport {
    pub(super) async fn open_uni(&self) -> Result<SendStream, StreamError> {
        Ok(match self {
            Self::Established(connection) => connection.open_uni().await?,
            Self::Early(connection) => connection.open_uni().await?,
        })
    }

    pub(super) async fn open_bidi(&self) -> Result<(SendStream, RecvStream), StreamError> {
        Ok(match self {
            Self::Established(connection) => connection.open_bidi().await?,
            Self::Early(connection) => connection.open_bidi().await?,
        })
    }

    /// Returns the next unidirectional stream of the peer.
    pub(super) async fn accept_uni(&self) -> Result<RecvStream, StreamError> {
        let accepted = match self {
            Self::Established(connection) => connection.accept_uni().await?,
            Self::Early(connection) => connection.accept_uni().await?,
        };
        accepted.ok_or(StreamError::Closed)
    }

    /// Returns the next bidirectional stream of the peer.
    pub(super) async fn accept_bidi(&self) -> Result<(SendStream, RecvStream), StreamError> {
        let accepted = match self {
            Self::Established(connection) => connection.accept_bidi().await?,
            Self::Early(connection) => connection.accept_bidi().await?,
        };
        accepted.ok_or(StreamError::Closed)
    }

    pub(super) fn close(&self, code: Code, reason: &[u8]) {
        match self {
            Self::Established(connection) => connection.close(code.0, reason),
            Self::Early(connection) => connection.close(code.0, reason),
        }
    }

    pub(super) fn set_priority(&self, stream: StreamId, priority: Priority) {
        match self {
            Self::Established(connection) => connection.set_stream_priority(stream, priority),
            Self::Early(connection) => connection.set_stream_priority(stream, priority),
        }
    }

    /// Returns true for a stream of the peer within the limit that it was told.
    pub(super) fn may_peer_open(&self, stream: StreamId) -> bool {
        match self {
            Self::Established(connection) => connection.may_peer_open(stream),
            Self::Early(connection) => connection.may_peer_open(stream),
        }
    }

    /// Returns true if the peer takes datagrams (RFC 9221).
    pub(super) fn has_datagrams(&self) -> bool {
        let most = match self {
            Self::Established(connection) => connection.max_datagram_size(),
            Self::Early(connection) => connection.max_datagram_size(),
        };
        most.is_some()
    }

    pub(super) fn side(&self) -> hybriq::tls::Side {
        match self {
            Self::Established(connection) => connection.side(),
            Self::Early(connection) => connection.side(),
        }
    }
}
