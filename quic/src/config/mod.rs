//! Configuration of servers and clients: plain owned values with setters by value.

mod memory;
pub(crate) mod random;

#[cfg(feature = "tokio")]
mod cids;
mod client;
#[cfg(feature = "tokio")]
mod endpoint;
mod fleet_keys;
mod server;
mod settings;

#[cfg(feature = "tokio")]
pub(crate) use cids::Ids;
pub use client::ClientConfig;
#[cfg(feature = "tokio")]
pub(crate) use endpoint::{Limits, NetworkRate, Prefixes};
#[cfg(feature = "tokio")]
pub use endpoint::{Placement, Workers};
pub use fleet_keys::token_keys::TokenKeys;
pub use fleet_keys::{FleetKeys, FleetKeysError};
pub use memory::careful_resume::CarefulResume;
pub use memory::servers::ServerMemory;
pub use server::ServerConfig;
