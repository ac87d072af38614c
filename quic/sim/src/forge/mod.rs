//! Packets read and made by hand: what an observer sees, and Initial packets, whose keys anybody can
//! derive.
//!
//! The unit tests of `hybriq-proto` include this module by its path: a crate's unit tests are built
//! with types of their own, which this crate does not know.

mod headers;
mod initial;

pub use headers::{Header, PacketKind, packets};
pub use initial::{
    Initial, InitialFrame, Raw, build_initial, initial_header, join, open_initials, seal_packet,
};
