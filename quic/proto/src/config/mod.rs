//! Configuration of the transport: plain owned values with setters by value.

mod application_codes;
mod flow;
mod groups;
mod transport;

pub use crate::owners::datagrams::{DatagramConfig, WhenFull};
pub use application_codes::ApplicationCodes;
pub(crate) use groups::PeerMigration;
#[doc(hidden)]
pub use groups::ServerTerms;
pub use groups::{AckFrequency, AddressValidation, PathMemory};
pub use transport::TransportConfig;
