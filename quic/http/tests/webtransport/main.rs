//! WebTransport: with our own client, with Chromium, and with aioquic.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod chromium;
mod sessions;
#[path = "../support/mod.rs"]
mod support;
