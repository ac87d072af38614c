//! Tests of what operators touch: reloading, draining, sockets of systemd, load balancers, manifests.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod authority;
mod clients;
mod reloading;
mod server;
mod systemd;
