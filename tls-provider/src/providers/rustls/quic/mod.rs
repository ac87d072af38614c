//! The provider for QUIC.

pub(super) mod client;
#[cfg(feature = "unstable-rustls")]
mod given;
pub(super) mod second_share;
pub(super) mod server;
pub(super) mod session;
