//! Servers and clients on different hosts, as processes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agent;
mod client;
mod control;
mod ends;
mod fleet;
mod merging;
#[cfg(target_os = "linux")]
mod namespaces;
mod processes;
mod refusals;
mod runs;
