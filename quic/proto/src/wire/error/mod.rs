//! Errors: transport error codes (RFC 9000 §20), violations by the peer, and reasons for the end of
//! a connection.

mod code;
mod connection;
mod downgrade;
pub mod printable;
mod system;
#[cfg(test)]
mod tests;
mod transport;
mod violation;

pub use self::{
    code::Code,
    connection::{By, ConnectionError, MigrateError},
    downgrade::Downgrade,
    system::SystemError,
    transport::TransportError,
    violation::Violation,
};
