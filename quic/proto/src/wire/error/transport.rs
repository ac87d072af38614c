//! Errors for which a transport closes a connection.

use std::{borrow::Cow, fmt};

use super::{Code, Violation};
use crate::wire::FrameType;

/// Error for which this end closes a connection: mostly a [`Violation`] by the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransportError {
    /// Code that is sent to the peer.
    pub code: Code,
    /// Type of the frame at fault, if there is one.
    pub frame: Option<FrameType>,
    /// Rule that the peer broke; `None` for errors of TLS, of this end and of its policies.
    pub violation: Option<Violation>,
    /// The frame and the rule, for humans.
    pub reason: Cow<'static, str>,
    /// True if the reason stays at this end, because it may reveal details of this machine: the
    /// peer receives [`hybriq_tls::Error::PRIVATE`] instead.
    pub is_private: bool,
}

impl TransportError {
    /// Creates an error that is not a [`Violation`], and not caused by a particular frame.
    pub fn new(code: Code, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            frame: None,
            violation: None,
            reason: reason.into(),
            is_private: false,
        }
    }

    /// Returns the reason that the peer receives.
    pub fn reason_for_peer(&self) -> &str {
        if self.is_private {
            hybriq_tls::Error::PRIVATE
        } else {
            &self.reason
        }
    }

    /// Adds the type of the frame at fault.
    #[must_use]
    pub fn in_frame(mut self, frame: FrameType) -> Self {
        self.frame = Some(frame);
        self
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)
    }
}

impl std::error::Error for TransportError {}

impl Violation {
    /// Returns the error with the name of what it is about.
    #[cold]
    pub(crate) fn of(self, name: impl fmt::Display) -> TransportError {
        TransportError {
            violation: Some(self),
            ..TransportError::new(self.code(), self.reason(name))
        }
    }

    /// Returns the error with the type of the frame at fault.
    #[cold]
    pub(crate) fn in_frame(self, frame: FrameType) -> TransportError {
        TransportError::from(self).in_frame(frame)
    }
}

impl From<Violation> for TransportError {
    fn from(violation: Violation) -> Self {
        violation.of(violation.noun())
    }
}

/// The error of a handshake that this end aborted. Its detail stays at this end unless it was
/// created to be told.
impl From<hybriq_tls::Error> for TransportError {
    fn from(error: hybriq_tls::Error) -> Self {
        let is_private = !error.is_told();
        Self {
            is_private,
            ..Self::new(Code(error.code()), error.detail)
        }
    }
}
