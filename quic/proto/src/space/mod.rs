//! Packet-number spaces (RFC 9000 §12.3): what came in and must be acknowledged, what went out and
//! waits for its acknowledgement.

mod received;
mod sent;

pub use super::ecn::Ecn;
pub use received::{AckEliciting, AckPolicy, Received};
pub use sent::{SentPacket, SentPackets};
