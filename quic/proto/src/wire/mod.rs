//! Bounds-checked cursors over bytes, and the integers of the wire (RFC 9000 §16).

mod reader;
mod varint;
mod writer;

#[cfg(test)]
mod tests;

pub use reader::{Eof, Reader};
pub use varint::VarInt;
pub use writer::Writer;
