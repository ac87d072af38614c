//! Packets (RFC 9000 §17, RFC 9001 §5): headers, numbers, protection.
//!
//! In: [`decode`] splits a datagram into packets, [`Protected::unprotect`] removes header
//! protection, [`Unprotected::open`] decrypts. Out: [`PacketBuilder`] writes the header, lends the
//! space behind it to a [`FrameWriter`](super::frame::FrameWriter), then encrypts in place.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod builder;
mod cid;
mod header;
mod keys;
mod kind;
pub mod number;
mod protected;
mod protection;
mod retry;
mod version;
mod version_negotiation;

#[cfg(test)]
mod tests;

pub use builder::{Header, PacketBuilder};
pub use cid::Cid;
pub use header::{Decoded, DropReason, Peek, decode, has_quic_bit, is_initial, is_zero_rtt, peek};
pub use keys::{DirectionKeys, KeyPair, initial_direction, initial_keys, next_packet_key};
pub use kind::{KeyPhase, Kind, PerSpace, Space};
pub use protected::{OpenError, Protected, Unprotected};
pub use protection::{
    HeaderKey, PacketKey, SAMPLE_LEN, SealError, TAG_LEN, Undecryptable, confidentiality_limit,
    integrity_limit,
};
pub use retry::Retry;
pub use version::{Version, Versions, reserved_version};
pub use version_negotiation::VersionNegotiation;
