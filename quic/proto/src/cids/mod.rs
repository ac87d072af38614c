//! Connection ids (RFC 9000 §5.1): those we issue and those the peer issued to us.

mod generator;
mod local;
mod quic_lb;
mod remote;
mod reset_key;
mod sent;

pub use generator::{CidGenerator, RandomCids, ZeroLength};
pub use local::{CidEvent, Issued, Local};
pub use quic_lb::{InvalidQuicLb, QuicLb};
pub use remote::Remote;
pub use reset_key::ResetKey;
pub use sent::Sent;
