//! Configuration: plain owned values with setters by value.

mod transport;

pub use transport::TransportConfig;
