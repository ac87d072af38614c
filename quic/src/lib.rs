//! An async QUIC transport whose TLS 1.3 handshake is post-quantum by default.
#![deny(missing_docs)]

mod config;
#[cfg(feature = "tokio")]
mod connecting;
#[cfg(feature = "tokio")]
mod connection;
#[cfg(feature = "tokio")]
mod endpoint;
mod error;
mod handshake;
#[cfg(feature = "tokio")]
mod incoming;
#[doc(hidden)]
pub mod proto;
#[cfg(feature = "tokio")]
mod recv_stream;
#[cfg(feature = "tokio")]
mod send_stream;
#[doc(hidden)]
pub mod sim;
mod stats;
#[cfg(feature = "tokio")]
mod udp;
#[cfg(feature = "tokio")]
mod worker;

pub use config::{ClientConfig, ServerConfig, TransportConfig};
#[cfg(feature = "tokio")]
pub use connecting::Connecting;
#[cfg(feature = "tokio")]
pub use connection::Connection;
#[cfg(feature = "tokio")]
pub use endpoint::{Endpoint, EndpointBuilder};
pub use error::{By, ConnectError, ConnectionError, EndpointError, ReadError, WriteError};
pub use handshake::{Handshake, KeyExchangeInfo};
pub use hybriq_tls as tls;
pub use hybriq_tls::{Backend, Group, Identity, KeyExchange, KeyLog, Side, Trust};
#[cfg(feature = "tokio")]
pub use incoming::Incoming;
pub use proto::{
    error::Code,
    streams::{Direction, StreamId},
};
#[cfg(feature = "tokio")]
pub use recv_stream::RecvStream;
#[cfg(feature = "tokio")]
pub use send_stream::SendStream;
pub use stats::ConnectionStats;
#[cfg(feature = "tokio")]
pub use worker::EndpointStats;
