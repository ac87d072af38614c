//! Configuration of servers and clients: plain owned values with setters by value.

#[cfg(feature = "tokio")]
mod cids;
mod client;
mod server;

#[cfg(feature = "tokio")]
pub(crate) use cids::Ids;
pub use client::ClientConfig;
pub use server::ServerConfig;
