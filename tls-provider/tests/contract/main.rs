//! Promises of every provider, over all pairings of the providers in `support::CONTENDERS`.
#![cfg(any(feature = "rustls", all(unix, feature = "s2n-tls")))]

mod bytes;
#[cfg(feature = "unstable-rustls")]
mod change_rustls;
mod check;
mod compression;
#[cfg(feature = "unstable-rustls")]
mod crypto;
mod early_data;
mod exporter;
mod fips;
mod flights;
mod groups;
mod identity;
mod key_log;
#[cfg(feature = "rustls")]
mod key_shares;
mod lineage;
mod ml_dsa;
mod namesakes;
mod negotiation;
#[cfg(feature = "rustls")]
mod profiles;
mod resumption;
mod sessions;
#[cfg(feature = "rustls")]
mod shares;
mod signatures;
mod signer;
mod support;
mod verifier;
