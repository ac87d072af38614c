//! Reasons why a connection ended, or did not migrate.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use bytes::Bytes;
use hybriq_tls::{Alert, GroupMismatch};

use super::{Code, Downgrade, Violation, printable::Printable};
use crate::wire::FrameType;

/// Reason why a connection ended.
///
/// Every operation on the connection and its streams returns the same error from then on, and so do
/// `Connection::closed` and `Connection::close_reason`. [`ConnectionError::by`] returns who ended
/// it, and [`ConnectionError::is_clean`] whether that was a normal end.
///
/// # Every way to end
///
/// "This end" is the end where the event happens. `Application { Local, code }` is short for
/// [`ConnectionError::Application`] with `by: By::Local`, the code and the reason. "-" means that
/// this end has no connection, or that there is nobody to tell.
///
/// | what happens | this end sees | the peer sees |
/// |---|---|---|
/// | `Connection::close` | `Application { Local, code }` | `Application { Peer, code }` |
/// | `Endpoint::close` | `Application { Local, code }` | `Application { Peer, code }` |
/// | the deadline of `Endpoint::drain` | `Application { Local, code }` | `Application { Peer, code }` |
/// | the last handle of the connection is dropped, and finished streams have arrived | - | `Application { Peer, code }` with the code of `ApplicationCodes::no_error`, 0 unless set, and without a reason |
/// | the application closes during the handshake (RFC 9000 §10.2.3) | `Application { Local, code }` | `Transport { Peer, APPLICATION_ERROR }` without the application's code and reason |
/// | the peer breaks a rule of QUIC | `Transport { Local, code, frame, violation }`, the reason names the rule | `Transport { Peer, code, frame, violation }` with that reason |
/// | this end refuses in TLS: certificate, application protocol, client authentication | `Transport { Local, CRYPTO_ERROR }`, [`Code::alert`] returns the alert | `Transport { Peer, CRYPTO_ERROR }` with the alert |
/// | the key exchange does not satisfy the policy of this end | `KeyExchangeRefused { Local }` | `KeyExchangeRefused { Peer }` |
/// | the server was post-quantum before, is not now, and the client has `Continuity::Refuse` | `Downgraded` | `Transport { Peer, CRYPTO_ERROR }` with the alert and the reason |
/// | the limit of an AEAD or of forged packets is reached (RFC 9001 §6.6) | `Transport { Local, AEAD_LIMIT_REACHED }` | `Transport { Peer, AEAD_LIMIT_REACHED }` |
/// | the application refuses a client, or drops its `Incoming` | - | `Transport { Peer, CONNECTION_REFUSED }`, "the application refused the connection" |
/// | a limit of the endpoint refuses a client | - | `Transport { Peer, CONNECTION_REFUSED }`, the reason names the limit: "too many connections", "too many handshakes", "too many connections from this network" |
/// | a client comes after `Endpoint::stop_accepting`, `drain`, `close` or the drop of the endpoint | - | `Transport { Peer, CONNECTION_REFUSED }`, "the server accepts no more connections" |
/// | the server does not accept the token of a Retry | - | `Transport { Peer, INVALID_TOKEN }` |
/// | nothing arrives for the idle timeout | `TimedOut` | `TimedOut` |
/// | the only path breaks, and none is left to return to | `TimedOut` | `TimedOut` |
/// | the handshake is not complete in time, although the peer answered | `HandshakeTimedOut` | `HandshakeTimedOut` |
/// | the server never answers | `NoAnswer` | - |
/// | the system cannot send to the server, or learns that nothing listens there, before anything is received from it | `Unreachable` | - |
/// | the address of this machine that a server's connection uses is gone | `AddressGone` | `TimedOut` |
/// | the socket of the endpoint fails permanently | `SocketFailed` | `TimedOut` |
/// | the server speaks none of the client's versions | `VersionMismatch` | - |
/// | the peer lost its state: it was restarted with the same reset key | `Reset` | - |
/// | a worker of the endpoint panics | `Transport { Local, INTERNAL_ERROR }`, "the worker of the connection failed" | `Reset`, as soon as it sends |
/// | the runtime of the endpoint ends before its connections | `Transport { Local, INTERNAL_ERROR }`, "the endpoint's task ended" | `TimedOut`, or `Reset` after a restart |
///
/// Dropping the `Endpoint` ends no connection. If a connection never existed because its endpoint
/// was closed, the error is `ConnectError::EndpointClosed`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// An application closed it (RFC 9000 §10.2).
    #[error("closed by the {} application: code {code}{}", who(*by), because(reason))]
    Application {
        /// End that closed it.
        by: By,
        /// The application's code.
        code: u64,
        /// The reason given.
        reason: Bytes,
    },
    /// A transport closed it because of an error (RFC 9000 §20.1) or a TLS alert (§4.8 of RFC
    /// 9001).
    #[error(
        "closed by the {} transport: {code}{}{}",
        who(*by), because(reason), remedy(*by, *code, reason)
    )]
    Transport {
        /// End that closed it.
        by: By,
        /// The error code.
        code: Code,
        /// Type of the frame at fault, if one is known.
        frame: Option<FrameType>,
        /// Rule that was broken: by the peer if this end closed the connection, by this end if the
        /// peer closed it. A peer reports it in the reason phrase; only hybriq peers do.
        violation: Option<Violation>,
        /// The reason given.
        reason: Bytes,
    },
    /// The key exchange did not satisfy a policy: the ends have no group in common, or a post-quantum
    /// group was required and the peer offered or chose none.
    ///
    /// A server knows the lists of both ends. A client knows the server's list if the server is
    /// hybriq, too. Other servers only send the alert `handshake_failure`, which a client without
    /// classical groups takes as this error.
    #[error(
        "{} refused the key exchange{colon}{told} ({groups}); choose a KeyExchange policy that shares a group with the peer's",
        match by { By::Local => "this end", By::Peer => "the peer" },
        colon = if reason.is_empty() { "" } else { ": " },
        told = Printable(reason)
    )]
    KeyExchangeRefused {
        /// End that closed it.
        by: By,
        /// Description of what was missing.
        reason: String,
        /// Groups of both ends, as far as they are known.
        groups: Box<GroupMismatch>,
    },
    /// The server used to be post-quantum and no longer is: see
    /// [`Continuity::Refuse`](crate::remembered::origin::Continuity::Refuse).
    ///
    /// Its certificate was verified. Find out why before you accept it again: ask its operator. If
    /// the change was intended, call `ServerMemory::unpin`.
    #[error(
        "the server was post-quantum before and no longer is: {0}; ask its operator, and if the change was intended, unpin it in the store of origins"
    )]
    Downgraded(Downgrade),
    /// The peer lost its state and sent a stateless reset (RFC 9000 §10.3).
    #[error("reset by the peer")]
    Reset,
    /// The peer fell silent for the idle timeout, or the only path to it broke.
    #[error("timed out: the peer fell silent; it stopped, or the path to it broke")]
    TimedOut,
    /// The peer answered, but the handshake was not complete in time: within the handshake timeout, or
    /// before a silence as long as the idle timeout.
    #[error("the handshake timed out: the peer stopped, or the path to it loses large datagrams")]
    HandshakeTimedOut,
    /// The server never answered.
    #[error(
        "no answer: check the server's address and port, that it runs, and that UDP gets there"
    )]
    NoAnswer,
    /// The peer supports none of our versions.
    #[error("the peer supports none of our QUIC versions")]
    VersionMismatch,
    /// The system cannot send to the server, or learned that nothing listens there, before anything was
    /// received from it.
    #[error("cannot reach {peer}: {reason}; {}", reason.remedy())]
    Unreachable {
        /// Address of the server.
        peer: SocketAddr,
        /// Error reported by the system.
        reason: SystemError,
    },
    /// This machine no longer has the address that the connection used, and the connection could
    /// not move to another: a server's connection cannot, because its client knows no other.
    #[error("this machine no longer has the address {address}: {reason}; connect again")]
    AddressGone {
        /// The address.
        address: IpAddr,
        /// Error reported by the system.
        reason: SystemError,
    },
    /// The socket of the endpoint failed permanently, and the endpoint with it.
    #[error("the socket of this endpoint failed: {0}; create a new endpoint")]
    SocketFailed(SystemError),
}

/// End that closed a connection.
///
/// Exhaustive: a connection has two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// The end that reports the error.
    Local,
    /// The other end.
    Peer,
}

fn who(by: By) -> &'static str {
    match by {
        By::Local => "local",
        By::Peer => "peer's",
    }
}

fn because(reason: &Bytes) -> String {
    if reason.is_empty() {
        String::new()
    } else {
        format!(" ({})", Printable(String::from_utf8_lossy(reason)))
    }
}

/// Returns what to do about a TLS alert, unless the reason already says it.
fn remedy(by: By, code: Code, reason: &[u8]) -> String {
    if reason.contains(&b';') {
        return String::new();
    }
    let remedy = code.alert().map(Alert).and_then(|alert| match by {
        By::Local => alert.remedy(),
        By::Peer => alert.remedy_for_received(),
    });
    remedy.map_or_else(String::new, |remedy| format!("; {remedy}"))
}

impl ConnectionError {
    /// Returns the end that ended the connection; `None` if neither did, and one end noticed that
    /// the other was gone.
    pub const fn by(&self) -> Option<By> {
        match self {
            Self::Application { by, .. }
            | Self::Transport { by, .. }
            | Self::KeyExchangeRefused { by, .. } => Some(*by),
            Self::Downgraded(_) | Self::AddressGone { .. } | Self::SocketFailed(_) => {
                Some(By::Local)
            }
            Self::Reset | Self::VersionMismatch => Some(By::Peer),
            Self::TimedOut
            | Self::HandshakeTimedOut
            | Self::NoAnswer
            | Self::Unreachable { .. } => None,
        }
    }

    /// Returns true for a normal end: either an application closed the connection with code 0, or a
    /// transport closed it without an error. For protocols with another code, see
    /// [`ApplicationCodes::is_clean`](crate::config::ApplicationCodes::is_clean).
    pub fn is_clean(&self) -> bool {
        matches!(
            self,
            Self::Application { code: 0, .. }
                | Self::Transport {
                    code: Code::NO_ERROR,
                    ..
                }
        )
    }
}

impl From<ConnectionError> for io::Error {
    fn from(error: ConnectionError) -> Self {
        let kind = match error {
            ConnectionError::TimedOut
            | ConnectionError::HandshakeTimedOut
            | ConnectionError::NoAnswer => io::ErrorKind::TimedOut,
            ConnectionError::Reset => io::ErrorKind::ConnectionReset,
            ConnectionError::Unreachable { reason, .. }
            | ConnectionError::AddressGone { reason, .. }
            | ConnectionError::SocketFailed(reason) => reason.kind,
            ConnectionError::Application { .. } | ConnectionError::Transport { .. } => {
                io::ErrorKind::ConnectionAborted
            }
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// Reason why a connection did not migrate to another of our addresses (RFC 9000 §9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// A server cannot migrate; it can only offer a preferred address.
    #[error("a server cannot migrate")]
    Server,
    /// Migration must wait until the handshake is confirmed.
    #[error("the handshake is not confirmed yet")]
    NotConfirmed,
    /// The server disabled migration.
    #[error("the server does not allow migration")]
    Disabled,
    /// Every path needs its own connection id, and the server has no spare one. It may supply one
    /// soon.
    #[error("the server gave no spare connection id")]
    NoConnectionId,
    /// The server did not answer on the new path; the connection stays where it was.
    #[error("the server does not answer on the new path")]
    Unreachable,
    /// No socket could be opened there.
    #[error("cannot open a UDP socket on {0}: {1}")]
    Bind(SocketAddr, io::ErrorKind),
    /// The endpoint already uses the maximum of 16 sockets.
    #[error("the endpoint has too many sockets; wait until some are no longer used")]
    TooManySockets,
    /// Another migration was requested before this one was done.
    #[error("another migration was requested")]
    Replaced,
    /// The connection is closed.
    #[error("the connection is closed")]
    Closed,
}

#[cfg(test)]
mod tests {
    use hybriq_tls::{Group, GroupMismatch};

    use super::{By, Bytes, Code, ConnectionError};

    #[test]
    fn a_tls_alert_is_named_and_comes_with_what_to_do() {
        let shown = |by| {
            let error = ConnectionError::Transport {
                by,
                code: Code::crypto(48),
                frame: None,
                violation: None,
                reason: "invalid peer certificate: UnknownIssuer".into(),
            };
            error.to_string()
        };
        let (ours, theirs) = (shown(By::Local), shown(By::Peer));
        let start = "CRYPTO_ERROR (48: unknown_ca) (invalid peer certificate: UnknownIssuer); ";
        assert!(
            ours.contains(start) && theirs.contains(start),
            "{ours}\n{theirs}"
        );
        assert_ne!(ours.split("); ").last(), theirs.split("); ").last());
        assert_eq!(Code::crypto(200).to_string(), "CRYPTO_ERROR (200)");
    }

    #[test]
    fn advice_is_given_once() {
        let error = ConnectionError::Transport {
            by: By::Peer,
            code: Code::crypto(120),
            frame: None,
            violation: None,
            reason: "the server speaks a, the client b; give both one in common".into(),
        };
        let shown = error.to_string();
        assert!(shown.ends_with("; give both one in common)"), "{shown}");
    }

    #[test]
    fn a_refusal_without_a_reason_reads_well() {
        let refused = |reason: &str| {
            let (by, reason) = (By::Peer, reason.to_owned());
            let groups = Box::new(GroupMismatch::new([Group::X25519], []));
            ConnectionError::KeyExchangeRefused { by, reason, groups }.to_string()
        };
        let start = "the peer refused the key exchange";
        let groups = "(this end takes X25519)";
        assert!(refused("").starts_with(&format!("{start} {groups}; choose")));
        assert!(refused("no group").starts_with(&format!("{start}: no group {groups}; choose")));
    }

    #[test]
    fn what_a_peer_writes_does_not_steer_the_terminal() {
        let reason = "\u{1b}[2J\nall is well\u{9b}\u{e9}";
        let shown = r"\u{1b}[2J\nall is well\u{9b}é";
        let by = By::Peer;
        let application = ConnectionError::Application {
            by,
            code: 0,
            reason: Bytes::from_static(reason.as_bytes()),
        };
        let transport = ConnectionError::Transport {
            by,
            code: Code::INTERNAL_ERROR,
            frame: None,
            violation: None,
            reason: Bytes::from_static(reason.as_bytes()),
        };
        let refused = ConnectionError::KeyExchangeRefused {
            by,
            reason: reason.to_owned(),
            groups: Box::new(GroupMismatch::new([Group::X25519], [])),
        };
        for error in [application, transport, refused] {
            let text = error.to_string();
            assert!(
                text.contains(shown) && !text.contains(char::is_control),
                "{text}"
            );
        }
    }
}

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
