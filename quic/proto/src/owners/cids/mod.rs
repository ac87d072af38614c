//! Connection ids (RFC 9000 §5.1): those we issue and those the peer issued to us.

mod generator;
mod local;
mod peer;
mod quic_lb;
mod reset_key;
mod sent;
mod steering;

pub use generator::{CidGenerator, RandomCids, ZeroLength};
pub use local::{CidEvent, Issued, Local};
pub use peer::Peer;
pub use quic_lb::{InvalidQuicLb, QuicLb};
pub use reset_key::ResetKey;
#[cfg(test)]
pub(crate) use reset_key::TOKENS;
pub use sent::Sent;
pub use steering::Steering;
