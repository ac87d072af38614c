//! Errors of the transport in the terms of `h3`.

use std::sync::Arc;

use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming};
use hybriq::{ConnectionError, ReadError, WriteError, stage::Stage};

use crate::error::Code;

const CLEAN: ConnectionErrorIncoming = ConnectionErrorIncoming::ApplicationClose {
    error_code: Code::H3_NO_ERROR.0,
};

/// Returns the end of a connection. `error` is what an operation returned, or `None` after a clean end.
pub(super) fn of_connection<S: Stage>(
    transport: &hybriq::Connection<S>,
    error: Option<S::Error>,
) -> ConnectionErrorIncoming {
    match (transport.close_reason(), error) {
        (Some(reason), _) => of_reason(reason),
        // The server refused 0-RTT data.
        (None, Some(error)) => ConnectionErrorIncoming::Undefined(Arc::new(error)),
        (None, None) => CLEAN,
    }
}

fn of_reason(reason: ConnectionError) -> ConnectionErrorIncoming {
    match reason {
        ConnectionError::Application { code, .. } => {
            ConnectionErrorIncoming::ApplicationClose { error_code: code }
        }
        ConnectionError::Transport {
            code: hybriq::error::Code::NO_ERROR,
            ..
        } => CLEAN,
        ConnectionError::TimedOut
        | ConnectionError::HandshakeTimedOut
        | ConnectionError::NoAnswer => ConnectionErrorIncoming::Timeout,
        error => ConnectionErrorIncoming::Undefined(Arc::new(error)),
    }
}

/// Returns the end of a connection as that of one of its streams.
pub(super) fn on_stream(connection_error: ConnectionErrorIncoming) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error }
}

pub(super) fn of_read(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(error_code) => StreamErrorIncoming::StreamTerminated { error_code },
        ReadError::Connection(error) => on_stream(of_reason(error)),
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

pub(super) fn of_write(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(error_code) => StreamErrorIncoming::StreamTerminated { error_code },
        WriteError::Connection(error) => on_stream(of_reason(error)),
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}
