//! Tests of what operators touch: reloading, draining, sockets of systemd, load balancers, manifests.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod authority;
mod balanced;
mod clients;
mod kubernetes;
mod nat;
mod quic_lb;
mod reloading;
mod restarting;
mod routed;
mod router;
mod server;
mod shared_keys;
mod systemd;
mod topology;
