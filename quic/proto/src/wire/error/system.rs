//! Errors of the operating system.

use std::io;

/// Error that the operating system reported for a call: an [`io::Error`] that can be copied and
/// compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.to_io())]
#[non_exhaustive]
pub struct SystemError {
    /// Kind of the error.
    pub kind: io::ErrorKind,
    /// Error code of the operating system, if there is one.
    pub code: Option<i32>,
}

impl SystemError {
    /// Returns the error with the text of the system.
    #[must_use]
    pub fn to_io(self) -> io::Error {
        self.code
            .map_or_else(|| self.kind.into(), io::Error::from_raw_os_error)
    }

    /// Returns what to do about a peer that cannot be reached.
    pub(super) const fn remedy(self) -> &'static str {
        match self.kind {
            io::ErrorKind::ConnectionRefused => {
                "nothing listens on that port: start the server, or use another port"
            }
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                "this machine has no route to it: check its network and routes"
            }
            io::ErrorKind::PermissionDenied => {
                "this machine does not allow it: check its firewall and the permissions of this process"
            }
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::InvalidInput => {
                "bind the endpoint to an address of this machine from which the peer can be reached"
            }
            _ => "check the network of this machine",
        }
    }
}

impl From<&io::Error> for SystemError {
    fn from(error: &io::Error) -> Self {
        Self {
            kind: error.kind(),
            code: error.raw_os_error(),
        }
    }
}
