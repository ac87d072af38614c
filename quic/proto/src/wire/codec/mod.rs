//! Bounds-checked cursors over bytes, and integers of variable length (RFC 9000 §16).

mod reader;
mod varint;
mod writer;

pub use reader::{Eof, Reader};
pub use varint::VarInt;
pub use writer::Writer;
