//! The s2n-tls provider, for releases 0.3 from 0.3.47.
//!
//! s2n-tls hands out traffic secrets by a callback, so its QUIC mode fits the seam. This module
//! adds what it lacks: a server refuses a ClientHello without a common protocol or group before
//! s2n-tls sees it, alerts are those of the RFCs, and handshake bytes left at an earlier level are
//! refused. s2n-tls has no 0-RTT in QUIC mode and only named policies (see [`policy`]).

pub(crate) mod check;
mod client;
mod config;
mod failure;
mod io;
mod keys_elsewhere;
mod pem;
pub mod policy;
mod server;
mod session;
mod tickets;

pub use client::Client;
pub use server::Server;

use crate::ConfigError;

const NAME: &str = "s2n-tls";

fn unsupported(detail: impl Into<String>) -> ConfigError {
    ConfigError::unsupported(NAME, detail)
}

/// Describes a call that s2n-tls refused.
fn reason(error: &s2n_tls::error::Error) -> String {
    format!("{} ({})", error.message(), error.name())
}
