//! Configuration of servers and clients: plain owned values with setters by value.

mod memory;
pub(crate) mod random;

#[cfg(feature = "tokio")]
mod cids;
mod client;
mod fleet_keys;
#[cfg(feature = "tokio")]
mod limits;
mod server;
#[cfg(feature = "tokio")]
mod workers;

use hybriq_tls::{
    ClientStart, ConfigError, ConfigErrors, Profile, Provider, ServerStart, Side, Start,
};

#[cfg(feature = "tokio")]
pub(crate) use cids::Ids;
pub use client::ClientConfig;
pub use fleet_keys::token_keys::TokenKeys;
pub use fleet_keys::{FleetKeys, FleetKeysError};
#[cfg(feature = "tokio")]
pub(crate) use limits::{Limits, NetworkRate, Prefixes};
pub use memory::careful_resume::CarefulResume;
pub use memory::servers::ServerMemory;
pub use server::ServerConfig;
#[cfg(feature = "tokio")]
pub use workers::{Placement, Workers};

/// Refuses a profile together with a provider that does not follow it: the provider replaces the
/// options of TLS.
fn check_profile(wanted: Profile, provider: &dyn Provider) -> Result<(), ConfigError> {
    let kept = provider.profile();
    if wanted == Profile::Default || wanted == kept {
        return Ok(());
    }
    Err(ConfigError::Profile {
        profile: wanted,
        problem: format!(
            "a provider replaces the options of TLS, and this one keeps to the profile `{kept}`; build \
             it with the profile, or leave `provider` out"
        ),
    })
}

/// Checks that a provider can start sessions of a side. The session is dropped unused.
fn check_provider(
    provider: &dyn Provider,
    side: Side,
    profile: Profile,
) -> Result<(), ConfigErrors> {
    check_profile(profile, provider)?;
    let start = match side {
        Side::Client => Start::Client(ClientStart {
            server_name: "localhost",
            ..ClientStart::default()
        }),
        Side::Server => ServerStart::default().into(),
    };
    provider.session(start)?;
    Ok(())
}
