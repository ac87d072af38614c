//! The provider for QUIC.

pub(super) mod client;
pub(super) mod second_share;
pub(super) mod server;
pub(super) mod session;
