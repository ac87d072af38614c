//! Packets read and made by hand: what an observer sees, Initial packets, whose keys anybody can
//! derive, and packets under the keys of a connection.
//!
//! The unit tests of `hybriq-proto` include this module too, by links to its files, because a crate's unit tests
//! are built with separate types, which this crate does not know.

mod connection;
mod headers;
mod initial;

pub use connection::Forge;
pub use headers::{Header, PacketKind, packets};
pub use initial::{
    Initial, InitialFrame, Raw, build_initial, build_initial_with_token, initial_header, join,
    open_initials, seal_packet,
};
