//! Handshakes of an endpoint, counted by their outcome.

use hybriq_proto::{
    events::agreement::{EarlyData, Handshake},
    wire::error::{By, ConnectionError},
};
use hybriq_tls::{Alert, Group, Lineage, Side};

use crate::errors::ConnectError;

/// Number of handshakes that ended in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct HandshakeCount {
    /// This end of the connection.
    pub role: Side,
    /// Outcome of the handshake.
    pub outcome: HandshakeOutcome,
    /// Number of such handshakes.
    pub count: u64,
}

/// Outcome of a handshake. Each handshake has one outcome and is counted once. A client that the
/// server's application never accepted has none at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HandshakeOutcome {
    /// The handshake was completed.
    Completed {
        /// Group of the key exchange.
        group: Group,
        /// Resumption and 0-RTT.
        kind: HandshakeKind,
        /// True if the server asked for another key share.
        hello_retry: bool,
        /// Lineage of the session.
        lineage: Lineage,
    },
    /// One end refused the other because of its policy. A client's handshake is complete before the
    /// server has checked its certificate (RFC 8446 §2): a client whose certificate is refused has
    /// `Completed`, and a connection that ends at once.
    Refused {
        /// End that refused.
        by: By,
        /// Rule that the peer did not meet.
        reason: RefusalReason,
    },
    /// Anything else: no answer, a timeout, a fault, an application that gave up.
    Failed,
}

impl HandshakeOutcome {
    /// Returns true if the connection is post-quantum, as [`Handshake::is_post_quantum`] does.
    pub fn is_post_quantum(&self) -> bool {
        match self {
            Self::Completed { group, lineage, .. } => {
                group.is_post_quantum() && *lineage == Lineage::PostQuantum
            }
            Self::Refused { .. } | Self::Failed => false,
        }
    }
}

/// How a handshake began its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HandshakeKind {
    /// With a certificate.
    Full,
    /// With a session ticket.
    Resumed,
    /// With a session ticket, and with 0-RTT data that the server accepted.
    EarlyData,
}

/// Rule of a policy that a peer did not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalReason {
    /// No key-exchange group of the policy.
    KeyExchange,
    /// No other parameter in common: the cipher suite, the signature scheme or the version.
    Parameters,
    /// A certificate that is not trusted, not allowed, or missing.
    Certificate,
    /// No application protocol in common.
    ApplicationProtocol,
    /// The server was post-quantum before and no longer is, and the client has
    /// [`Continuity::Refuse`](crate::memory::Continuity::Refuse). The server knows only the alert,
    /// and counts [`Self::Parameters`] or [`Self::Certificate`].
    Downgrade,
}

impl RefusalReason {
    /// Returns the reason that an alert represents.
    const fn of(alert: Alert) -> Option<Self> {
        match alert {
            Alert::HANDSHAKE_FAILURE
            | Alert::PROTOCOL_VERSION
            | Alert::INSUFFICIENT_SECURITY
            | Alert::MISSING_EXTENSION => Some(Self::Parameters),
            Alert::BAD_CERTIFICATE
            | Alert::UNSUPPORTED_CERTIFICATE
            | Alert::CERTIFICATE_REVOKED
            | Alert::CERTIFICATE_EXPIRED
            | Alert::CERTIFICATE_UNKNOWN
            | Alert::UNKNOWN_CA
            | Alert::ACCESS_DENIED
            | Alert::CERTIFICATE_REQUIRED => Some(Self::Certificate),
            Alert::NO_APPLICATION_PROTOCOL => Some(Self::ApplicationProtocol),
            _ => None,
        }
    }
}

impl From<&Handshake> for HandshakeOutcome {
    fn from(handshake: &Handshake) -> Self {
        let kind = match (handshake.resumed, handshake.early_data) {
            (_, EarlyData::Accepted) => HandshakeKind::EarlyData,
            (true, _) => HandshakeKind::Resumed,
            (false, _) => HandshakeKind::Full,
        };
        Self::Completed {
            group: handshake.key_exchange.group,
            kind,
            hello_retry: handshake.key_exchange.hello_retry,
            lineage: handshake.lineage,
        }
    }
}

impl From<&ConnectError> for HandshakeOutcome {
    fn from(error: &ConnectError) -> Self {
        let (by, reason) = match error {
            ConnectError::Connection(ConnectionError::KeyExchangeRefused { by, .. }) => {
                (*by, Some(RefusalReason::KeyExchange))
            }
            ConnectError::Connection(ConnectionError::Downgraded(_)) => {
                (By::Local, Some(RefusalReason::Downgrade))
            }
            ConnectError::Connection(ConnectionError::Transport { by, code, .. }) => {
                let alert = code.alert().map(Alert);
                (*by, alert.and_then(RefusalReason::of))
            }
            _ => return Self::Failed,
        };
        reason.map_or(Self::Failed, |reason| Self::Refused { by, reason })
    }
}

/// Counts of handshakes. There are few outcomes, whatever peers do: a group that was not offered
/// never completes a handshake.
#[derive(Clone, Debug, Default)]
pub(in crate::worker) struct Handshakes(Vec<HandshakeCount>);

impl Handshakes {
    pub(in crate::worker) fn count(&mut self, role: Side, outcome: HandshakeOutcome) {
        self.add(HandshakeCount {
            role,
            outcome,
            count: 1,
        });
    }

    fn add(&mut self, more: HandshakeCount) {
        let mut known = self.0.iter_mut();
        match known.find(|it| it.role == more.role && it.outcome == more.outcome) {
            Some(known) => known.count += more.count,
            None => self.0.push(more),
        }
    }

    /// Adds the counts of another worker.
    pub(in crate::worker) fn merge(&mut self, other: &Self) {
        for more in &other.0 {
            self.add(*more);
        }
    }

    pub(in crate::worker) fn into_counts(self) -> Vec<HandshakeCount> {
        self.0
    }
}
