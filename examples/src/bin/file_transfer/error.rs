//! Errors of transfers, with their exit codes.

use std::{io, path::PathBuf, process::ExitCode};

use hybriq::{
    ConnectError, ConnectionError, EndpointError, ReadError, WriteError,
    error::{Alert, ConfigErrors, NotPostQuantum, Printable},
};

use crate::{
    fingerprint::{Fingerprint, NotMlDsa65},
    folder::FolderError,
    keys::KeysError,
    manifest::ManifestError,
    message::Refusal,
    path::{RelativePath, UnsafePath},
};

/// Reason why a transfer or a server ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{what}: {error}")]
    Io { what: String, error: io::Error },
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    Configuration(#[from] ConfigErrors),
    #[error(transparent)]
    Connect(ConnectError),
    #[error(transparent)]
    NotPostQuantum(#[from] NotPostQuantum),
    #[error(transparent)]
    NotMlDsa65(#[from] NotMlDsa65),
    /// The server has another key than at the first connection.
    #[error(
        "THE KEY OF {host} HAS CHANGED, and nothing was sent. Somebody may be listening in, or the server got a new \
         identity.\n  known: {known}\n  shown: {shown}\nAsk its owner for the output of `file_transfer identity`. Only \
         if that is the new key, remove line {line} of {}",
        file.display()
    )]
    KeyChanged {
        host: String,
        known: Fingerprint,
        shown: Fingerprint,
        file: PathBuf,
        line: usize,
    },
    /// Nobody said that the key of an unknown server is right.
    #[error(
        "the key of {host} is not known: {shown}; compare it with the output of `file_transfer identity` there, then \
         give --accept-new"
    )]
    Unknown { host: String, shown: Fingerprint },
    #[error(
        "the server does not know this client; its owner lets it in by: file_transfer authorize {0}"
    )]
    NotAuthorized(Fingerprint),
    #[error("the server refused: {0}")]
    Refused(Refusal),
    #[error("{0}; run the same command again to go on where it stopped")]
    Lost(ConnectionError),
    #[error("the peer broke the protocol: {}", Printable(.0))]
    Protocol(String),
    #[error("the peer's list of files was refused: {0}")]
    Manifest(#[from] ManifestError),
    #[error("{}: {rule}; rename it", Printable(path.display()))]
    Name { path: PathBuf, rule: UnsafePath },
    #[error("{}: the name is not valid Unicode; rename it", Printable(.0.display()))]
    NotUnicode(PathBuf),
    #[error("another transfer into this folder is under way; wait for it")]
    Busy,
    #[error(
        "{needed} bytes are needed, but only {free} are free and not reserved by other transfers; free some space or choose another folder"
    )]
    NoSpace { needed: u64, free: u64 },
    #[error(
        "{count} of the files could not be transferred, the first is {first}; run the same command again"
    )]
    Incomplete { count: u64, first: String },
    #[error("internal fault: {0}")]
    Task(#[from] tokio::task::JoinError),
}

impl Error {
    /// Makes a closure that adds the name of what failed.
    pub(crate) fn at(path: &RelativePath) -> impl FnOnce(io::Error) -> Self {
        let what = path.to_string();
        move |error| Self::Io { what, error }
    }

    /// Returns the exit code, one for each kind that a script treats differently. 2 is that of wrong
    /// arguments.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Usage(_) => 2,
            Self::KeyChanged { .. } | Self::Unknown { .. } => 3,
            Self::NotAuthorized(_) | Self::Refused(_) => 4,
            Self::Incomplete { .. } => 5,
            Self::Lost(_) | Self::Connect(_) => 6,
            _ => 1,
        })
    }

    /// Returns the same error with what a client should do where the server refused its key.
    pub(crate) fn for_client(self, own: Fingerprint) -> Self {
        let (Self::Lost(ended) | Self::Connect(ConnectError::Connection(ended))) = &self else {
            return self;
        };
        let refused = match ended {
            ConnectionError::Transport { code, .. } => code.alert() == Some(Alert::ACCESS_DENIED.0),
            ConnectionError::Application { code, .. } => *code == crate::endpoint::NOT_AUTHORIZED,
            _ => false,
        };
        if refused {
            Self::NotAuthorized(own)
        } else {
            self
        }
    }
}

impl From<ConnectionError> for Error {
    fn from(error: ConnectionError) -> Self {
        Self::Lost(error)
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Connection(error) => Self::Lost(error),
            error => Self::Protocol(error.to_string()),
        }
    }
}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Connection(error) => Self::Lost(error),
            error => Self::Protocol(error.to_string()),
        }
    }
}
