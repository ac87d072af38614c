//! Outcomes of attempts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Reason why a connection, a stream or a request failed, as counted in results.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Exceeded its time limit, or the peer fell silent.
    Timeout,
    /// Refused by the server: CONNECTION_REFUSED, or a TCP reset before the handshake was complete.
    Refused,
    /// A TLS alert, by its name in RFC 8446 §6.
    Alert(String),
    /// A transport error, by its name in RFC 9000 §20.1.
    Transport(String),
    /// The peer's application closed the connection with that code.
    Application(u64),
    /// Reset by the peer, or the peer lost the connection.
    Reset,
    /// Negotiated or received something else than was to be measured.
    Mismatch,
    /// Early data was rejected.
    EarlyDataRejected,
    /// Not over at the end of the measurement.
    Unfinished,
    /// Anything else; see the detail.
    Other,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("timeout"),
            Self::Refused => f.write_str("refused"),
            Self::Alert(name) => write!(f, "alert {name}"),
            Self::Transport(name) => write!(f, "transport {name}"),
            Self::Application(code) => write!(f, "application {code}"),
            Self::Reset => f.write_str("reset"),
            Self::Mismatch => f.write_str("mismatch"),
            Self::EarlyDataRejected => f.write_str("early data rejected"),
            Self::Unfinished => f.write_str("unfinished"),
            Self::Other => f.write_str("other"),
        }
    }
}

/// A failure with its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) kind: Kind,
    pub(crate) detail: String,
}

impl Failed {
    pub(crate) fn new(kind: Kind, detail: impl fmt::Display) -> Self {
        Self {
            kind,
            detail: detail.to_string(),
        }
    }

    pub(crate) fn other(detail: impl fmt::Display) -> Self {
        Self::new(Kind::Other, detail)
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.detail)
    }
}

impl std::error::Error for Failed {}
