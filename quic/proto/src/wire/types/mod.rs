//! Basic types of the wire: connection ids, packet numbers, kinds of packets, types of frames.

mod cid;
mod frame_type;
mod kind;
mod packet_number;
mod spaces;

pub use cid::{Cid, NumberedCid, ResetToken};
pub use frame_type::FrameType;
pub use kind::{KeyPhase, Kind, PerSpace, Space, SpinValue};
pub use packet_number::PacketNumber;
pub use spaces::{Spaces, Vacant};
