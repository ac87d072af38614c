//! The owners: each keeps the state of one part of the protocol, and imports no other owner.

pub mod acks;
pub mod cids;
pub mod congestion;
pub mod datagrams;
pub(crate) mod handshake;
pub mod path;
pub mod recovery;
pub mod streams;
