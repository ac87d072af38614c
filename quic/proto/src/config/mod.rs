//! Configuration of the transport: plain owned values with setters by value.

mod address_validation;
mod application_codes;
mod flow;
mod groups;
mod memory;
mod transport;

pub use crate::owners::datagrams::{DatagramConfig, WhenFull};
pub use address_validation::AddressValidation;
pub use application_codes::ApplicationCodes;
pub use groups::AckFrequency;
pub(crate) use groups::PeerMigration;
pub use memory::PathMemory;
pub use transport::TransportConfig;
