//! Application error codes that the transport sends automatically.

use crate::wire::error::{Code, ConnectionError};

/// Largest code that a frame can carry (RFC 9000 §16).
const LARGEST: u64 = (1 << 62) - 1;

/// Application error codes (RFC 9000 §20.2) that are sent when the application drops a handle, and
/// the code of a normal end. QUIC gives them no meaning; application protocols do.
///
/// Codes larger than a frame can carry are lowered to 2^62-1. All are 0 unless set.
///
/// # Examples
/// HTTP/3 (RFC 9114 §8.1):
/// ```
/// use hybriq::{TransportConfig, transport::ApplicationCodes};
///
/// let codes = ApplicationCodes::new()
///     .no_error(0x100)
///     .dropped_send(0x10c)
///     .dropped_recv(0x10c);
/// let config = TransportConfig::new().application_codes(codes);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplicationCodes {
    no_error: u64,
    dropped_send: u64,
    dropped_recv: u64,
}

impl ApplicationCodes {
    /// Creates codes that are all 0.
    pub const fn new() -> Self {
        Self {
            no_error: 0,
            dropped_send: 0,
            dropped_recv: 0,
        }
    }

    /// Sets the code of a normal end. Default 0.
    ///
    /// It closes the connection when its last handle is dropped. When the peer closes with it, waiting
    /// for streams or datagrams ends with `None` instead of an error.
    #[must_use]
    pub const fn no_error(mut self, code: u64) -> Self {
        self.no_error = sendable(code);
        self
    }

    /// Sets the code that resets a stream whose sending handle is dropped unfinished. Default 0.
    #[must_use]
    pub const fn dropped_send(mut self, code: u64) -> Self {
        self.dropped_send = sendable(code);
        self
    }

    /// Sets the code that stops a stream whose receiving handle is dropped before the end was read.
    /// Default 0.
    #[must_use]
    pub const fn dropped_recv(mut self, code: u64) -> Self {
        self.dropped_recv = sendable(code);
        self
    }

    /// Returns true for a normal end: either an application closed the connection with the code for
    /// it, or a transport closed it without an error. [`ConnectionError::is_clean`] does the same
    /// for code 0.
    pub fn is_clean(&self, error: &ConnectionError) -> bool {
        match error {
            ConnectionError::Application { code, .. } => *code == self.no_error,
            ConnectionError::Transport { code, .. } => *code == Code::NO_ERROR,
            _ => false,
        }
    }

    /// Returns the code of a normal end.
    pub const fn of_no_error(&self) -> u64 {
        self.no_error
    }

    /// Returns the code for a sending handle that is dropped unfinished.
    pub const fn of_dropped_send(&self) -> u64 {
        self.dropped_send
    }

    /// Returns the code for a receiving handle that is dropped before the end was read.
    pub const fn of_dropped_recv(&self) -> u64 {
        self.dropped_recv
    }
}

const fn sendable(code: u64) -> u64 {
    if code > LARGEST { LARGEST } else { code }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::wire::error::By;

    #[test]
    fn codes_fit_a_frame() {
        let codes = ApplicationCodes::new()
            .no_error(u64::MAX)
            .dropped_send(LARGEST + 1)
            .dropped_recv(LARGEST);
        assert_eq!(codes.of_no_error(), LARGEST);
        assert_eq!(codes.of_dropped_send(), LARGEST);
        assert_eq!(codes.of_dropped_recv(), LARGEST);
    }

    #[test]
    fn only_the_code_of_a_normal_end_is_clean() {
        let codes = ApplicationCodes::new().no_error(0x100);
        let closed = |code| ConnectionError::Application {
            by: By::Peer,
            code,
            reason: Bytes::new(),
        };
        assert!(codes.is_clean(&closed(0x100)));
        assert!(!codes.is_clean(&closed(0)));
        assert!(ApplicationCodes::default().is_clean(&closed(0)));
        assert!(!codes.is_clean(&ConnectionError::TimedOut));
    }
}
