//! The core over the simulated network: real TLS, virtual time, printed seeds.
#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot go on has failed"
)]

mod acks;
mod applications;
mod bad_input;
mod bulk;
mod careful_resume;
mod cids;
mod combined;
mod compression;
mod congestion;
mod congestion_custom;
mod congestion_table;
mod datagrams;
mod downgrade;
mod early_data;
mod ecn;
mod events;
mod field_bugs;
mod first_flight;
mod forecast;
mod goodput;
mod grease;
mod group_prediction;
mod handshake_matrix;
mod keep_alive;
mod key_update;
mod lifetime;
mod migration;
mod ml_dsa;
mod mtu;
mod pacing;
mod path_support;
mod prague;
mod preferred_address;
mod rebinding;
mod recovery_reordering;
mod recovery_tail;
mod retry;
mod soak;
mod spin;
mod stateless_reset;
mod streams_priority;
mod streams_windows;
mod support;
mod transfer;
mod versions;
