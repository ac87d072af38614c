//! Packets received in a packet-number space, and their acknowledgement (RFC 9000 §12.3, §13.2).

pub mod frequency;
mod received;

pub use crate::wire::udp::Ecn;
pub use received::{AckEliciting, AckPolicy, Received};
