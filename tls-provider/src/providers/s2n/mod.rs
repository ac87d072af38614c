//! The s2n-tls provider, for releases 0.3 from 0.3.47.
//!
//! s2n-tls hands out traffic secrets through a callback, so its QUIC mode fits the interface. This
//! module adds what s2n-tls lacks: a server refuses a ClientHello without a common protocol or
//! group before s2n-tls sees it, alerts are those of the RFCs, and handshake bytes left at an
//! earlier level are refused. s2n-tls has no 0-RTT in QUIC mode and only named policies (see
//! [`policy`]).

pub(crate) mod check;
mod client;
mod config;
mod keys_elsewhere;
pub mod policy;
mod server;
mod session;
mod tickets;

use crate::{ConfigError, Profile};
pub use client::Client;
pub use server::Server;

const NAME: &str = "s2n-tls";

fn unsupported(detail: impl Into<String>) -> ConfigError {
    ConfigError::unsupported(NAME, detail)
}

/// Returns true if the cryptography that s2n-tls was linked with is a FIPS module, as s2n-tls
/// itself reports, and the cryptography of the transport is one too. The two differ if s2n-tls was
/// built separately.
fn is_fips() -> bool {
    s2n_tls::init::init();
    crate::is_fips() && s2n_tls::init::fips_mode().is_ok_and(|mode| mode.is_enabled())
}

/// False if s2n-tls has no ML-DSA: AWS-LC's FIPS module lacks a function that its build looks for.
const HAS_ML_DSA: bool = !cfg!(feature = "fips");

const NO_ML_DSA: &str =
    "s2n-tls has no ML-DSA over a FIPS module; use rustls, or build without the feature `fips`";

/// Refuses a profile that requires a FIPS module that s2n-tls does not have, or a feature that
/// s2n-tls lacks with one.
fn check_module(profile: Profile) -> Result<(), ConfigError> {
    if !HAS_ML_DSA && matches!(profile, Profile::Cnsa2 | Profile::Asd) {
        let problem = NO_ML_DSA.to_owned();
        return Err(ConfigError::Profile { profile, problem });
    }
    if profile != Profile::Fips140 || is_fips() {
        return Ok(());
    }
    Err(ConfigError::Profile {
        profile,
        problem: "s2n-tls is linked with a library that is no FIPS module; build it from its crate, with \
                  the feature `fips`"
            .to_owned(),
    })
}

/// Describes a call that s2n-tls refused.
fn reason(error: &s2n_tls::error::Error) -> String {
    format!("{} ({})", error.message(), error.name())
}
