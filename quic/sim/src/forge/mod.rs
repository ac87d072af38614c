//! Packets that tests read and build by hand: what an observer sees, Initial packets, whose keys
//! anybody can derive, and packets sealed with a connection's keys.
//!
//! The unit tests of `hybriq-proto` include this module too, through links to its files, because a
//! crate's unit tests are built with separate types that this crate does not know.

mod connection;
mod headers;
mod initial;

pub use connection::Forge;
pub use headers::{Header, PacketKind, packets};
pub use initial::{
    Initial, InitialFrame, Raw, build_initial, build_initial_with_token, initial_header, join,
    open_initials, seal_packet,
};
