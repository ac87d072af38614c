//! Policy on address validation of clients.

/// Policy on when a server sends a Retry packet to make clients prove their address (RFC 9000
/// §8.1.2).
///
/// A Retry costs a client one round trip. An attacker with a forged address cannot continue.
///
/// A client that returns with a token from an earlier connection needs no Retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressValidation {
    /// Validates addresses while handshakes keep the server busy, or while many are unfinished. The
    /// default.
    ///
    /// Retry starts once handshakes take three quarters of a worker's time, or 2,048 clients have
    /// unfinished ones. It lasts at least five seconds, longer each time the load returns
    /// immediately, and ends when handshakes take less than a third of the time and fewer than 512
    /// clients have unfinished ones.
    #[default]
    Adaptive,
    /// Always sends a Retry. No state is kept for a client before it has proved its address.
    Always,
    /// Never sends a Retry automatically; the application may call `Incoming::retry`.
    Never,
}
