//! WebTransport and CONNECT-UDP, which share the datagrams of a connection: with our own client, Chromium and aioquic.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agreement;
mod aioquic;
mod chromium;
mod draft15;
mod floods;
mod masque;
#[path = "../support/peer.rs"]
mod peer;
mod rest;
mod sessions;
#[path = "../support/mod.rs"]
mod support;
