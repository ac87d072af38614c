//! The protocol without I/O: no runtime, no sockets, no clock, no randomness of its own.
//!
//! `use` points one way: `wire ← frame ← packet ← owners ← connection ← endpoint`. Owners
//! (`streams`, `recovery`, `space`, `cids`, `handshake`, …) never import each other nor
//! `connection`; only `connection` composes them.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod ack_frequency;
mod buffer;
pub mod cids;
pub mod congestion;
pub mod connection;
pub mod datagram;
pub mod datagrams;
pub mod delivery;
pub mod ecn;
pub mod endpoint;
pub mod error;
pub mod frame;
pub mod handshake;
pub mod header_bits;
pub mod known_path;
pub mod limits;
pub mod packet;
pub mod params;
pub mod path;
pub mod random;
pub mod recovery;
pub mod space;
pub mod streams;
pub mod token;
pub mod wire;
