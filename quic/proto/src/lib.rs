//! The sans-IO core of [hybriq](https://docs.rs/hybriq): datagrams, time and randomness go in, datagrams and events come out.
//!
//! There is no runtime, no socket, no clock and no system randomness here. The crate `hybriq` drives
//! this core with tokio; use this crate directly to drive it with something else.
//!
//! An [`Endpoint`](endpoint::Endpoint) routes datagrams to its connections and starts new ones; a
//! [`Connection`](connection::Connection) composes the owners of each part of the protocol. Imports
//! point one way: `wire ← frame ← packet ← owners ← connection ← endpoint`. Owners (`streams`,
//! `recovery`, `space`, `cids`, `handshake`, …) never import each other nor `connection`.

#![deny(missing_docs)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        reason = "tests take a base for their virtual time from the clock, and share what they saw"
    )
)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod ack_frequency;
pub mod agreement;
mod buffer;
pub mod cids;
pub mod config;
pub mod congestion;
pub mod connection;
pub mod datagrams;
pub mod delivery;
pub mod ecn;
pub mod endpoint;
pub mod error;
pub mod events;
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
pub mod saved_path;
pub mod space;
pub mod stats;
pub mod streams;
#[cfg(test)]
mod testing;
pub mod token;
pub mod udp;
pub mod wire;

// Unit tests are built with types of their own, which hybriq-sim does not know: they include what
// they need of it.
#[cfg(test)]
extern crate self as hybriq_proto;
#[cfg(test)]
#[path = "../../sim/src/forge/mod.rs"]
#[expect(
    unused_imports,
    unreachable_pub,
    reason = "the simulator offers and uses more of it"
)]
mod forge;
#[cfg(test)]
#[path = "../../sim/src/rng.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "the simulator offers and uses more of it"
)]
mod rng;
