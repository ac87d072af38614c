//! Configuration of the transport: plain owned values with setters by value.

mod careful_resume;
mod datagrams;
mod known_versions;
mod token;
mod token_store;
mod transport;

pub use careful_resume::CarefulResume;
pub use datagrams::{DatagramConfig, WhenFull};
pub use known_versions::KnownVersions;
pub use token::{AddressValidation, TokenKeys};
pub(crate) use token_store::SharedStore;
pub use token_store::{MemoryTokenStore, TokenStore};
pub use transport::{AckFrequency, TransportConfig};
