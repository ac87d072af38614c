//! Errors of streams.

use std::io;

use super::ConnectionError;
use crate::VarInt;

/// The stream was already finished, reset or stopped by this end.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("closed stream")]
pub struct ClosedStream {
    _private: (),
}

impl From<ClosedStream> for io::Error {
    fn from(error: ClosedStream) -> Self {
        Self::new(io::ErrorKind::NotConnected, error)
    }
}

/// Error of reading from a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The peer reset the stream with this code.
    #[error("stream reset by peer: error {0}")]
    Reset(VarInt),
    /// The connection is over.
    #[error("connection lost")]
    ConnectionLost(#[from] ConnectionError),
    /// This end stopped the stream.
    #[error("closed stream")]
    ClosedStream,
    /// An ordered read came after an unordered one.
    #[error("ordered read after unordered read")]
    IllegalOrderedRead,
    /// The server refused 0-RTT data.
    #[error("0-RTT rejected")]
    ZeroRttRejected,
}

impl From<hybriq::ReadError> for ReadError {
    fn from(error: hybriq::ReadError) -> Self {
        use hybriq::ReadError as Theirs;
        match error {
            Theirs::Reset(code) => Self::Reset(VarInt::of_wire(code)),
            Theirs::ZeroRttRejected => Self::ZeroRttRejected,
            Theirs::Unordered => Self::IllegalOrderedRead,
            Theirs::Connection(error) => Self::ConnectionLost(error.into()),
            _ => Self::ClosedStream,
        }
    }
}

impl From<ResetError> for ReadError {
    fn from(error: ResetError) -> Self {
        match error {
            ResetError::ConnectionLost(error) => Self::ConnectionLost(error),
            ResetError::ZeroRttRejected => Self::ZeroRttRejected,
        }
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match error {
            ReadError::Reset(_) | ReadError::ZeroRttRejected => io::ErrorKind::ConnectionReset,
            ReadError::ConnectionLost(_) | ReadError::ClosedStream => io::ErrorKind::NotConnected,
            ReadError::IllegalOrderedRead => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

/// Error of reading exactly as many bytes as the buffer has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadExactError {
    /// The stream ended after this many bytes.
    #[error("stream finished early ({0} bytes read)")]
    FinishedEarly(usize),
    /// The stream could not be read.
    #[error(transparent)]
    ReadError(#[from] ReadError),
}

/// Error of reading the rest of a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadToEndError {
    /// The stream could not be read.
    #[error("read error: {0}")]
    Read(#[from] ReadError),
    /// The stream is longer than the limit.
    #[error("stream too long")]
    TooLong,
}

/// Error of waiting for the peer's reset of a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResetError {
    /// The connection is over.
    #[error("connection lost")]
    ConnectionLost(#[from] ConnectionError),
    /// The server refused 0-RTT data.
    #[error("0-RTT rejected")]
    ZeroRttRejected,
}

/// Error of writing to a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The peer stopped the stream with this code.
    #[error("sending stopped by peer: error {0}")]
    Stopped(VarInt),
    /// The connection is over.
    #[error("connection lost")]
    ConnectionLost(#[from] ConnectionError),
    /// This end finished or reset the stream.
    #[error("closed stream")]
    ClosedStream,
    /// The server refused 0-RTT data.
    #[error("0-RTT rejected")]
    ZeroRttRejected,
}

impl From<hybriq::WriteError> for WriteError {
    fn from(error: hybriq::WriteError) -> Self {
        use hybriq::WriteError as Theirs;
        match error {
            Theirs::Stopped(code) => Self::Stopped(VarInt::of_wire(code)),
            Theirs::ZeroRttRejected => Self::ZeroRttRejected,
            Theirs::Connection(error) => Self::ConnectionLost(error.into()),
            _ => Self::ClosedStream,
        }
    }
}

impl From<ClosedStream> for WriteError {
    fn from(_: ClosedStream) -> Self {
        Self::ClosedStream
    }
}

impl From<StoppedError> for WriteError {
    fn from(error: StoppedError) -> Self {
        match error {
            StoppedError::ConnectionLost(error) => Self::ConnectionLost(error),
            StoppedError::ZeroRttRejected => Self::ZeroRttRejected,
        }
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match error {
            WriteError::Stopped(_) | WriteError::ZeroRttRejected => io::ErrorKind::ConnectionReset,
            WriteError::ConnectionLost(_) | WriteError::ClosedStream => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}

/// Error of waiting for the end of a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoppedError {
    /// The connection is over.
    #[error("connection lost")]
    ConnectionLost(#[from] ConnectionError),
    /// The server refused 0-RTT data.
    #[error("0-RTT rejected")]
    ZeroRttRejected,
}

impl From<hybriq::WriteError> for StoppedError {
    fn from(error: hybriq::WriteError) -> Self {
        match error {
            hybriq::WriteError::Connection(error) => Self::ConnectionLost(error.into()),
            _ => Self::ZeroRttRejected,
        }
    }
}

macro_rules! io_errors {
    ($($error:ident),*) => {$(
        impl From<$error> for io::Error {
            fn from(error: $error) -> Self {
                let kind = match error {
                    $error::ConnectionLost(_) => io::ErrorKind::NotConnected,
                    $error::ZeroRttRejected => io::ErrorKind::ConnectionReset,
                };
                Self::new(kind, error)
            }
        }
    )*};
}

io_errors!(ResetError, StoppedError);
