//! Errors of the transport in the terms of `h3`.

use std::{error::Error, sync::Arc};

use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming};
use hybriq::{
    ConnectionError, ReadError, WriteError,
    error::{Code, EarlyError},
};

use crate::adapter::H3_NO_ERROR;

/// Returns true for a normal end of an HTTP/3 connection: an end closed it with H3_NO_ERROR (RFC 9114
/// §5.2), with code 0, or in the transport without an error.
pub fn is_clean(error: &ConnectionError) -> bool {
    let is_h3 = matches!(error, ConnectionError::Application { code, .. } if *code == H3_NO_ERROR);
    is_h3 || error.is_clean()
}

/// Returns the end of a connection in the terms of `h3`.
pub(crate) fn connection(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::Application { code, .. } => {
            ConnectionErrorIncoming::ApplicationClose { error_code: code }
        }
        // The end of a connection without an error, which other errors of the transport are not.
        ConnectionError::Transport {
            code: Code::NO_ERROR,
            ..
        } => ConnectionErrorIncoming::ApplicationClose {
            error_code: H3_NO_ERROR,
        },
        ConnectionError::TimedOut
        | ConnectionError::HandshakeTimedOut
        | ConnectionError::NoAnswer => ConnectionErrorIncoming::Timeout,
        error => ConnectionErrorIncoming::Undefined(Arc::new(error)),
    }
}

/// Returns the end of a connection that was closed cleanly, whose reason is known.
pub(crate) fn clean_end(reason: Option<ConnectionError>) -> ConnectionErrorIncoming {
    let no_error = ConnectionErrorIncoming::ApplicationClose {
        error_code: H3_NO_ERROR,
    };
    reason.map_or(no_error, connection)
}

/// Returns the end of a connection as that of one of its streams.
pub(crate) fn on_stream(connection_error: ConnectionErrorIncoming) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error }
}

/// Returns an error of the application, or of a stream that never existed.
pub(crate) fn undefined(error: impl Error + Send + Sync + 'static) -> ConnectionErrorIncoming {
    ConnectionErrorIncoming::Undefined(Arc::new(error))
}

pub(crate) fn early(error: EarlyError) -> ConnectionErrorIncoming {
    match error {
        EarlyError::Connection(error) => connection(error),
        error @ EarlyError::ZeroRttRejected => undefined(error),
    }
}

pub(crate) fn read(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(error_code) => StreamErrorIncoming::StreamTerminated { error_code },
        ReadError::Connection(error) => on_stream(connection(error)),
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

pub(crate) fn write(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(error_code) => StreamErrorIncoming::StreamTerminated { error_code },
        WriteError::Connection(error) => on_stream(connection(error)),
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}
