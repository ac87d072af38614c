//! Configuration: plain owned values with setters by value.

mod client;
mod server;
mod transport;

pub use client::ClientConfig;
pub use server::ServerConfig;
pub use transport::{AckFrequency, TransportConfig};
