//! Nothing that a client or a service leaves behind stays at the server.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
mod early;
mod shutdown;
mod silent;
mod tunnels;

#[path = "../support/mod.rs"]
mod support;
