//! The API of [quinn 0.11](https://docs.rs/quinn/0.11) over [hybriq], for programs and crates that speak quinn's
//! names: their connections become post-quantum without a rewrite.
//!
//! Written from quinn's documented behaviour; no code of quinn is in it. What quinn has and this crate has not does not
//! compile; the README lists it.
//!
//! # Examples
//! ```no_run
//! use std::sync::Arc;
//!
//! use hybriq_quinn::{ClientConfig, Endpoint, rustls::RootCertStore};
//!
//! # async fn run(roots: RootCertStore) -> Result<(), Box<dyn std::error::Error>> {
//! let mut endpoint = Endpoint::client("[::]:0".parse()?)?;
//! endpoint.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots))?);
//! let connection = endpoint.connect("[2001:db8::1]:4433".parse()?, "example.com")?.await?;
//! let (mut send, mut recv) = connection.open_bi().await?;
//! send.write_all(b"hello").await?;
//! send.finish()?;
//! println!("{} bytes", recv.read_to_end(1024).await?.len());
//! # Ok(())
//! # }
//! ```
#![deny(missing_docs)]

mod config;
mod connection;
pub mod crypto;
mod endpoint;
mod errors;
mod runtime;
mod stats;
mod values;

pub use config::{
    AckFrequencyConfig, ClientConfig, ConnectionIdGenerator, EndpointConfig, IdleTimeout,
    MtuDiscoveryConfig, RandomConnectionIdGenerator, ServerConfig, TransportConfig,
    ValidationTokenConfig, congestion,
};
pub use connection::{
    AcceptBi, AcceptUni, Chunk, Connecting, Connection, OpenBi, OpenUni, ReadDatagram, RecvStream,
    SendDatagram, SendStream, Written, ZeroRttAccepted,
};
pub use endpoint::{Accept, Endpoint, EndpointStats, Incoming, IncomingFuture, RetryError};
pub use errors::{
    ApplicationClose, ClosedStream, ConfigError, ConnectError, ConnectionClose, ConnectionError,
    ReadError, ReadExactError, ReadToEndError, ResetError, SendDatagramError, StoppedError,
    TransportError, TransportErrorCode, WriteError,
};
pub use hybriq::transport::{ConnectionId, FrameType};
pub use runtime::{Runtime, TokioRuntime, default_runtime};
pub use rustls;
pub use stats::{ConnectionStats, FrameStats, PathStats, UdpStats};
pub use values::{Dir, Side, StreamId, VarInt, VarIntBoundsExceeded};
