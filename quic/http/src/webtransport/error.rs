//! Errors of sessions and their streams.

use hybriq::{ConnectionError, error::SendDatagramError};
use hybriq_h3::{Code, Violation};

/// Error of a session: its end, or a datagram that cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// An end closed the session.
    #[error("the session was closed with code {code}: {reason:?}")]
    Closed {
        /// Code of the application; 0 if there was none.
        code: u32,
        /// Reason, which may be empty.
        reason: String,
    },
    /// The stream of the session's request was reset, or carried what is not allowed there.
    #[error("the session was cut off")]
    Aborted,
    /// The peer broke a rule of sessions, for example a limit. The stream of the session's request was reset with the
    /// code for it.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// A datagram cannot be sent.
    #[error(transparent)]
    Datagram(#[from] SendDatagramError),
}

impl SessionError {
    /// Returns true if the session ended normally: one end closed it with code 0, or closed the connection without an
    /// error.
    pub fn is_clean(&self) -> bool {
        match self {
            Self::Closed { code, .. } => *code == 0,
            Self::Connection(ConnectionError::Application { code, .. }) => {
                *code == 0 || *code == Code::H3_NO_ERROR.0
            }
            Self::Connection(error) => error.is_clean(),
            Self::Aborted | Self::Violation(_) | Self::Datagram(_) => false,
        }
    }
}

/// Error of a stream of a session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The peer reset the stream, with a code of the application or, if that is `None`, for a reason of
    /// HTTP/3.
    #[error("the peer reset the stream{}", with(*.0))]
    Reset(Option<u32>),
    /// The peer needs no more of the stream, with a code of the application or, if that is `None`, for a
    /// reason of HTTP/3.
    #[error("the peer stopped the stream{}", with(*.0))]
    Stopped(Option<u32>),
    /// The stream was finished, reset or stopped by this end.
    #[error("the stream has ended")]
    Ended,
    /// More data arrived than allowed.
    #[error("the stream has more than {limit} bytes")]
    TooLong {
        /// Number of bytes that were allowed.
        limit: usize,
    },
    /// The session is over.
    #[error(transparent)]
    Session(#[from] SessionError),
}

fn with(code: Option<u32>) -> String {
    code.map_or_else(String::new, |code| format!(" with code {code}"))
}

impl From<StreamError> for std::io::Error {
    fn from(error: StreamError) -> Self {
        use std::io::ErrorKind;

        let kind = match &error {
            StreamError::Reset(_) | StreamError::Session(_) => ErrorKind::ConnectionReset,
            StreamError::Stopped(_) | StreamError::Ended => ErrorKind::BrokenPipe,
            StreamError::TooLong { .. } => ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}
