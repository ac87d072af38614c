//! What a server was before and no longer is.

use std::fmt;

use hybriq_tls::Group;

/// A server that was post-quantum, or committed itself to be, and no longer is.
///
/// Its certificate was verified, so either the server was changed, or somebody has its classical
/// key, stolen or computed from the certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Downgrade {
    /// Classical group that it chose now, although its key exchange used to be post-quantum.
    pub group: Option<Group>,
    /// True if it resumed a session that began with a classical group, although its key exchange
    /// has been post-quantum since.
    pub session: bool,
    /// True if one of its certificates is classical now, although all used to be post-quantum, or
    /// although it says that they are.
    pub certificates: bool,
}

impl Downgrade {
    /// Returns the downgrade, if there is one.
    pub(crate) fn found(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }

    /// Returns the reason that is sent to the peer.
    pub(crate) const fn told(self) -> &'static str {
        if self.group.is_some() {
            "this server's key exchange was post-quantum before; give it a post-quantum group again"
        } else if self.session {
            "the session began without a post-quantum group; forget the tickets from before"
        } else {
            "this server's certificates were post-quantum before, or it says that they are; give it \
             post-quantum ones again"
        }
    }

    /// Returns the TLS alert for the peer (draft-sheffer-tls-pqc-continuity §3.2 for certificates).
    pub const fn alert(&self) -> hybriq_tls::Alert {
        if self.group.is_some() || self.session {
            hybriq_tls::Alert::HANDSHAKE_FAILURE
        } else {
            hybriq_tls::Alert::CERTIFICATE_UNKNOWN
        }
    }
}

impl fmt::Display for Downgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = self.group.map(|group| format!("it chose {group}"));
        let session = "it resumed a session that began with a classical group".to_owned();
        let certificates = "one of its certificates is classical".to_owned();
        let found = [
            group,
            self.session.then_some(session),
            self.certificates.then_some(certificates),
        ];
        let found: Vec<String> = found.into_iter().flatten().collect();
        f.write_str(&found.join(", "))
    }
}
