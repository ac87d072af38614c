//! The provider for QUIC.

pub(super) mod beside;
pub(super) mod client;
pub(super) mod server;
pub(super) mod session;
