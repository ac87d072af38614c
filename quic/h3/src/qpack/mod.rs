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
mod stateless;
mod table;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use integer::put_string;

pub use decoder::{Decoded, Decoder, Field};
pub use encoder::{Encoder, FieldRef};
pub use error::Error;
pub(crate) use stateless::{Seen, each};
