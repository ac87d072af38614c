//! Bounds-checked cursors over bytes, integers of the wire (RFC 9000 §16), and basic types of the
//! protocol.

mod cid;
mod frame_type;
mod kind;
mod packet_number;
mod reader;
mod reset_token;
mod spaces;
mod varint;
mod writer;

#[cfg(test)]
mod tests;

pub use cid::Cid;
pub use frame_type::FrameType;
pub use kind::{KeyPhase, Kind, PerSpace, Space, SpinValue};
pub use packet_number::PacketNumber;
pub use reader::{Eof, Reader};
pub use reset_token::ResetToken;
pub use spaces::{Spaces, Vacant};
pub use varint::VarInt;
pub use writer::Writer;
