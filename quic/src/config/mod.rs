//! Configuration: plain owned values with setters by value.

mod careful_resume;
#[cfg(feature = "tokio")]
mod cids;
mod client;
mod datagrams;
mod known_versions;
mod server;
mod token;
mod token_store;
mod transport;

pub use careful_resume::CarefulResume;
#[cfg(feature = "tokio")]
pub(crate) use cids::Ids;
pub use client::ClientConfig;
pub use datagrams::{DatagramConfig, WhenFull};
pub use known_versions::KnownVersions;
pub use server::ServerConfig;
pub use token::{AddressValidation, TokenKeys};
pub(crate) use token_store::SharedStore;
pub use token_store::{MemoryTokenStore, TokenStore};
pub use transport::{AckFrequency, TransportConfig};
