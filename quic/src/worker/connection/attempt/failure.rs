//! Errors of connections whose worker ended or failed.

use bytes::Bytes;
use hybriq_proto::wire::error::{By, Code, ConnectionError};

/// Reason for connections whose worker was restarted after a panic.
pub(in crate::worker) const PANIC: &str = "the worker of the connection failed";

/// Reason for connections whose worker ended before them, with its runtime.
pub(in crate::worker) const RUNTIME: &str = "the endpoint's task ended";

/// Returns the error of connections that a worker left behind.
pub(in crate::worker) fn error(reason: &'static str) -> ConnectionError {
    ConnectionError::Transport {
        by: By::Local,
        code: Code::INTERNAL_ERROR,
        frame: None,
        violation: None,
        reason: Bytes::from_static(reason.as_bytes()),
    }
}
