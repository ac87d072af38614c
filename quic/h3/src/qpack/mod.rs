//! QPACK: compression of field sections (RFC 9204).
//!
//! [`Encoder`] and [`Decoder`] do no I/O: they take the bytes of the peer's QPACK streams, and return the bytes to
//! send on ours. A connection has one of each.

mod decoder;
mod encoder;
mod error;
mod fixed;
mod huffman;
mod integer;
mod policy;
mod table;

#[cfg(test)]
mod tests;

pub use decoder::{Decoded, Decoder, Field};
pub use encoder::{Encoder, FieldRef};
pub use error::Error;
