//! Packets (RFC 9000 §17, RFC 9001 §5): headers, numbers, protection.
//!
//! In: [`Packets`] splits a datagram into packets, [`Protected::unprotect`] removes header
//! protection, [`Unprotected::open`] decrypts. Out: [`PacketBuilder`] writes the header, lends the
//! space after it to a [`FrameWriter`](super::frame::FrameWriter), then encrypts in place.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod header_bits;

mod builder;
mod header;
mod protection;
mod retry;
mod version;

#[cfg(test)]
mod tests;

pub use crate::wire::{
    Cid, KeyPhase, Kind, NumberedCid, PacketNumber, PerSpace, Space, Spaces, SpinValue, Vacant,
};
pub use builder::{Header, PacketBuilder};
#[cfg(test)]
pub(crate) use header::READS;
pub(crate) use header::packets::Kept;
pub use header::packets::Packets;
pub(crate) use header::quoted_ids;
pub use header::{Decoded, decode};
pub use header_bits::DropReason;
pub use protection::keys::{
    DirectionKeys, KeyPair, initial_direction, initial_keys, next_packet_key,
};
pub use protection::protected::{OpenError, Protected, Unprotected};
pub use protection::{
    HeaderKey, PacketKey, SAMPLE_LEN, SealError, TAG_LEN, Undecryptable, confidentiality_limit,
    integrity_limit,
};
pub use retry::Retry;
pub use version::{Version, VersionNegotiation, Versions, reserved_version};
