//! The core over the simulated network: real TLS, virtual time, printed seeds.
#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot go on has failed"
)]

mod acks;
mod bad_input;
mod bulk;
mod careful_resume;
mod congestion;
mod congestion_custom;
mod congestion_table;
mod early_data;
mod ecn;
mod events;
mod field_bugs;
mod first_flight;
mod handshake_matrix;
mod lifetime;
mod mtu;
mod pacing;
mod prague;
mod rebinding;
mod recovery_reordering;
mod recovery_tail;
mod retry;
mod soak;
mod stateless_reset;
mod streams_priority;
mod streams_windows;
mod support;
mod transfer;
mod versions;
