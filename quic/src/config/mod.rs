//! Configuration of servers and clients: plain owned values with setters by value.

mod careful_resume;
#[cfg(feature = "tokio")]
mod cids;
mod client;
mod known_versions;
mod server;
mod token_keys;
mod token_store;

pub use careful_resume::CarefulResume;
#[cfg(feature = "tokio")]
pub(crate) use cids::Ids;
pub use client::ClientConfig;
pub use known_versions::KnownVersions;
pub use server::ServerConfig;
pub use token_keys::TokenKeys;
pub use token_store::MemoryTokenStore;
