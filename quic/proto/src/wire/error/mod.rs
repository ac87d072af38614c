//! Errors: transport error codes (RFC 9000 §20), violations by the peer, and reasons for the end of
//! a connection.

mod code;
mod connection;
mod downgrade;
pub mod printable;
#[cfg(test)]
mod tests;
mod transport;
mod violation;

pub use self::{
    code::Code,
    connection::{By, ConnectionError, MigrateError, SystemError},
    downgrade::Downgrade,
    transport::TransportError,
    violation::Violation,
};
