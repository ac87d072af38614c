//! 0-RTT data, and the lineage of resumed sessions.

use crate::{Group, KeyExchange};

/// Policy for 0-RTT data (RFC 8446 §2.3).
///
/// An attacker who records the first flight can send it again, and one who later learns the
/// ticket's key can read it. Use 0-RTT for requests that may be repeated and that are worth little
/// to an eavesdropper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EarlyDataPolicy {
    /// A client offers none; a server issues no tickets for it and accepts none.
    #[default]
    Off,
    /// A client offers it if the ticket allows it; a server accepts it if every rule allows it.
    On,
}

impl EarlyDataPolicy {
    /// Returns true for [`EarlyDataPolicy::On`].
    pub const fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

/// What became of the 0-RTT data of one handshake.
///
/// Exhaustive: RFC 8446 §2.3 has no other outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EarlyDataStatus {
    /// The client offered none.
    #[default]
    None,
    /// The client offers it and the server's answer is not known yet.
    Offered,
    /// The server accepted it.
    Accepted,
    /// The server refused it: the data is lost, the handshake continues.
    Rejected,
}

/// Kind of key exchange in the first full handshake of a chain of resumed sessions.
///
/// A resumed handshake exchanges new keys, but its ticket's key, which authenticates it and
/// encrypts 0-RTT data, derives from the full handshake at the beginning of the chain.
///
/// Exhaustive: a key exchange is post-quantum or it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lineage {
    /// A group without ML-KEM, or one this build does not know.
    Classical,
    /// A group with ML-KEM.
    PostQuantum,
}

impl Lineage {
    /// Returns the lineage of a full handshake with this group.
    pub fn of(group: Group) -> Self {
        if group.is_post_quantum() {
            Self::PostQuantum
        } else {
            Self::Classical
        }
    }

    /// Returns true if a session of this lineage may be resumed under a policy.
    ///
    /// A policy that allows only post-quantum groups in a full handshake does not resume a session
    /// that began with another group.
    pub fn may_resume(self, policy: &KeyExchange) -> bool {
        self == Self::PostQuantum || !policy.requires_post_quantum()
    }
}
