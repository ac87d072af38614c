//! An async QUIC transport whose TLS 1.3 handshake is post-quantum by default.

pub mod config;
#[doc(hidden)]
pub mod proto;
