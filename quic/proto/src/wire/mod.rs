//! What crosses the network: bytes and integers (RFC 9000 §16), frames (§19), packets (§17), transport
//! parameters (§18), errors (§20), and the datagrams that carry them.

pub(crate) mod codec;
pub mod error;
pub mod frame;
pub mod limits;
pub mod packet;
pub mod params;
#[cfg(test)]
mod tests;
mod types;
pub mod udp;

pub use codec::{Eof, Reader, VarInt, Writer};
pub use types::{
    Cid, FrameType, KeyPhase, Kind, NumberedCid, PacketNumber, PerSpace, ResetToken, Space, Spaces,
    SpinValue, Vacant,
};
