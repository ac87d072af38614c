//! Outcome of a handshake, for the application.

use std::fmt;

use hybriq_tls::{
    CertificateAlgorithms, CertificateDer, CertificateMessage, EarlyDataStatus, Group, GroupKind,
    KeyExchange, Lineage, Negotiated, Profile, Side, SignatureScheme, Suite,
};

use crate::{remembered::origin::Downgrade, wire::packet::Version};

#[cfg(feature = "serde")]
mod record;

/// The outcome of a completed handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Handshake {
    /// Key exchange of the connection.
    pub key_exchange: KeyExchangeInfo,
    /// The cipher suite.
    pub suite: Suite,
    /// Scheme of the signature with which the server proved its identity; `None` on resumption.
    pub signature_scheme: Option<SignatureScheme>,
    /// Scheme of the signature with which the client proved its identity; `None` on resumption, and
    /// if it presented no certificate.
    pub client_signature_scheme: Option<SignatureScheme>,
    /// The application protocol.
    pub alpn: Option<Vec<u8>>,
    /// The name the client asked for.
    pub server_name: Option<String>,
    /// True if a session ticket replaced the certificate.
    pub resumed: bool,
    /// Lineage of the first full handshake: this one, or the one from which the session ticket
    /// derives. It is post-quantum under a policy that requires that.
    pub lineage: Lineage,
    /// The version of QUIC.
    pub version: Version,
    /// Outcome of the 0-RTT data that the client sent.
    pub early_data: EarlyData,
    /// Algorithms of the peer's certificates, its own first; empty on resumption, and if the peer
    /// presented none. A certificate that cannot be parsed, which no built-in check accepts, is
    /// left out.
    pub peer_certificates: Vec<CertificateAlgorithms>,
    /// Message in which the peer presented its certificates: its size on the wire, and how it was
    /// compressed. `None` if it presented none, or if the TLS library does not report it.
    pub certificate_message: Option<CertificateMessage>,
    /// This end of the connection, which enforces the profile and the policy below.
    pub role: Side,
    /// Name of the TLS library of this end.
    pub tls_library: &'static str,
    /// Rules of an authority that this end enforces.
    pub profile: Profile,
    /// True if this handshake was done by a FIPS module whose self tests have passed, and both the
    /// group and the cipher suite are approved. This is the TLS library's own statement; it needs
    /// the feature `fips`.
    pub fips: bool,
    /// True if this end refuses every key exchange that is not post-quantum.
    pub requires_post_quantum: bool,
    /// What the server was before and no longer is, at a client with
    /// [`Continuity::Report`](crate::remembered::origin::Continuity::Report).
    pub downgrade: Option<Downgrade>,
}

/// Outcome of the data that a client sent before the handshake was complete, in 0-RTT packets (RFC
/// 9001 §4.6).
///
/// Exhaustive: RFC 8446 §2.3 has no other outcome, and qlog names each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EarlyData {
    /// The client offered none.
    #[default]
    None,
    /// The server accepted it.
    Accepted,
    /// The server rejected it: the data is lost, and is not resent automatically.
    Rejected,
}

impl EarlyData {
    /// Returns the outcome; an offer without an answer counts as rejected.
    const fn of(status: EarlyDataStatus) -> Self {
        match status {
            EarlyDataStatus::None => Self::None,
            EarlyDataStatus::Accepted => Self::Accepted,
            EarlyDataStatus::Offered | EarlyDataStatus::Rejected => Self::Rejected,
        }
    }
}

/// Key exchange of a connection. Displays as the group's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyExchangeInfo {
    /// The group: its code point and its name.
    pub group: Group,
    /// True if the server had to ask for another key share first.
    pub hello_retry: bool,
    /// Bytes of the client's key share; 0 for a group this build does not know.
    pub client_share: usize,
    /// Bytes of the server's key share; 0 for a group this build does not know.
    pub server_share: usize,
}

impl KeyExchangeInfo {
    /// Returns the kind of problem on which the group's security rests.
    pub fn kind(&self) -> GroupKind {
        self.group.kind()
    }

    /// Returns true if the group of this handshake is hybrid or pure ML-KEM. That is not the whole answer for a
    /// resumed session: [`Handshake::is_post_quantum`] also looks at the handshake in which the session began.
    pub fn is_post_quantum(&self) -> bool {
        self.group.is_post_quantum()
    }
}

impl fmt::Display for KeyExchangeInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.group.fmt(f)
    }
}

/// Facts about a handshake besides those that TLS negotiates.
pub(crate) struct Circumstances<'a> {
    pub(crate) version: Version,
    pub(crate) early_data: EarlyDataStatus,
    pub(crate) peer_certificates: &'a [CertificateDer<'static>],
    pub(crate) side: Side,
    pub(crate) library: &'static str,
    pub(crate) profile: Profile,
    pub(crate) policy: &'a KeyExchange,
}

impl Handshake {
    /// Returns true if the connection is post-quantum: the group of its own handshake is hybrid or pure ML-KEM, and
    /// so is the group of the handshake in which a resumed session began. Recorded traffic then stays secret from a
    /// quantum computer.
    pub fn is_post_quantum(&self) -> bool {
        self.key_exchange.is_post_quantum() && self.lineage == Lineage::PostQuantum
    }

    /// Returns the outcome once TLS knows the group and the suite.
    pub(crate) fn new(negotiated: Negotiated, around: &Circumstances<'_>) -> Option<Self> {
        let group = negotiated.group?;
        let shares = group.share_sizes().unwrap_or_default();
        let lineage = lineage(&negotiated, group);
        Some(Self {
            key_exchange: KeyExchangeInfo {
                group,
                hello_retry: negotiated.hello_retry,
                client_share: shares.client,
                server_share: shares.server,
            },
            suite: negotiated.suite?,
            signature_scheme: negotiated.signature_scheme,
            client_signature_scheme: negotiated.client_signature_scheme,
            alpn: negotiated.alpn,
            server_name: negotiated.server_name,
            resumed: negotiated.resumed,
            lineage,
            version: around.version,
            early_data: EarlyData::of(around.early_data),
            peer_certificates: around
                .peer_certificates
                .iter()
                .filter_map(|certificate| CertificateAlgorithms::of(certificate))
                .collect(),
            certificate_message: negotiated.certificate_message,
            role: around.side,
            tls_library: around.library,
            profile: around.profile,
            fips: negotiated.fips,
            requires_post_quantum: around.policy.requires_post_quantum(),
            downgrade: None,
        })
    }
}

/// Returns the lineage; if a provider does not know a ticket's lineage, the weakest is assumed.
fn lineage(negotiated: &Negotiated, group: Group) -> Lineage {
    match negotiated.lineage {
        Some(lineage) => lineage,
        None if negotiated.resumed => Lineage::Classical,
        None => Lineage::of(group),
    }
}
