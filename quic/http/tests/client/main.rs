//! The client, against servers of this crate and against servers that fail in some way.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../support/mod.rs"]
mod support;

mod bodies;
mod common;
mod connections;
mod early;
mod failing;
mod front;
mod habits;
mod interim;
mod leaving;
mod paths;
mod proxies;
mod records;
mod tcp;
mod versions;
