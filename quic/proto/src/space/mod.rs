//! Packets received in a packet-number space, and their acknowledgement (RFC 9000 §12.3, §13.2).

mod received;

pub use super::ecn::Ecn;
pub use received::{AckEliciting, AckPolicy, Received};
