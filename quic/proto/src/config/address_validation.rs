//! When clients must prove their address.

/// Policy on when a server sends clients a Retry packet, to prove that they receive at their address
/// (RFC 9000 §8.1.2).
///
/// A Retry costs a client one round trip. An attacker with a forged address cannot go on.
///
/// A client that returns with a token of an earlier connection needs no Retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressValidation {
    /// While handshakes keep the server busy, or many are unfinished. The default.
    ///
    /// Retry starts once handshakes take three quarters of a worker's time, or 2,048 clients have
    /// not completed theirs. It goes on for at least five seconds, for longer each time the load
    /// returns at once, and until less than a third of the time goes into handshakes and fewer than
    /// 512 clients are on their way.
    #[default]
    Adaptive,
    /// Always. Nothing is held for a client before it proved its address.
    Always,
    /// Not by itself: only where the application calls `Incoming::retry`.
    Never,
}
