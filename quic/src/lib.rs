//! An async QUIC transport whose TLS 1.3 handshake is post-quantum by default.

pub mod config;
mod error;
mod handshake;
#[doc(hidden)]
pub mod proto;
#[doc(hidden)]
pub mod sim;
mod stats;

pub use error::{By, ConnectError, ConnectionError};
pub use handshake::{Handshake, KeyExchangeInfo};
pub use hybriq_tls as tls;
pub use proto::error::Code;
pub use stats::ConnectionStats;
