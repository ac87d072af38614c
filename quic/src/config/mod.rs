//! Configuration: plain owned values with setters by value.

mod careful_resume;
mod client;
mod datagrams;
mod server;
mod transport;

pub use careful_resume::CarefulResume;
pub use client::ClientConfig;
pub use datagrams::{DatagramConfig, WhenFull};
pub use server::ServerConfig;
pub use transport::{AckFrequency, TransportConfig};
