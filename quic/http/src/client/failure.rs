//! Requests that failed, and may be sent again.

use http::Method;

use super::{error::ClientError, interim};

/// A request without a response.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: ClientError,
    pub(super) repeat: Repeat,
}

/// Requests that may be sent again after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// All: the server did not process the request (RFC 9114 §4.1.1).
    Any,
    /// All, but not over HTTP/3 (H3_VERSION_FALLBACK).
    OverTcp,
    /// Those of idempotent methods: nobody knows what the server did (RFC 9110 §9.2.2).
    Idempotent,
    /// None: the failure would be the same.
    Never,
}

impl Failure {
    /// Returns the failure of a request to which too many interim responses came.
    pub(super) fn interim(server: String) -> Self {
        let most = interim::MOST;
        Self::new(ClientError::Interim { server, most }, Repeat::Never)
    }

    pub(super) fn new(error: ClientError, repeat: Repeat) -> Self {
        Self { error, repeat }
    }

    /// Returns the failure of a request that may be sent again in any case.
    pub(super) fn anyway(self) -> Self {
        Self {
            repeat: match self.repeat {
                Repeat::Idempotent => Repeat::Any,
                repeat => repeat,
            },
            ..self
        }
    }

    /// Returns true if a request of this method may be sent again.
    pub(super) fn may_repeat(&self, method: &Method) -> bool {
        match self.repeat {
            Repeat::Any | Repeat::OverTcp => true,
            Repeat::Idempotent => method.is_idempotent(),
            Repeat::Never => false,
        }
    }
}
