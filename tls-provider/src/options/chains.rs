//! The choice among certificate chains, and which of their certificates are sent.

/// Choice among the certificates of a server that match the client's server name and whose
/// signatures the client verifies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChainChoice {
    /// The certificate that was added first.
    #[default]
    First,
    /// The first one whose whole chain is post-quantum; otherwise the first one.
    PostQuantumFirst,
    /// The one with which the handshake takes the fewest round trips, the first one in case of a
    /// tie: add the post-quantum certificate first, and it is used whenever it costs no round trip.
    ///
    /// This takes into account the sizes of the chains, the group, certificate compression and the
    /// address validation of each connection.
    FewestRoundTrips,
}

/// How the intermediate certificates of a chain are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[doc(hidden)]
#[non_exhaustive]
pub enum Intermediates {
    /// With the certificate.
    #[default]
    Sent,
    /// Left out.
    LeftOut,
    /// Left out for connections that agree on one of these application protocols.
    LeftOutFor(Vec<Vec<u8>>),
}
