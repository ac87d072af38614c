//! Datagrams that the latest process receives for connections of earlier ones: it forwards them over
//! local sockets, one to each worker of each earlier process.

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod absent;
mod letter;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod system;
#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use absent::{Inlet, Relays};
pub(crate) use letter::{Letter, Reason};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use system::{Inlet, Relays, pair};

/// Reason why a datagram was not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsent {
    /// The earlier process is behind: its queue is full.
    Full,
    /// The earlier process has ended.
    Gone,
}
