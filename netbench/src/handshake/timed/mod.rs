//! A crypto provider of rustls that times every operation.

mod groups;
pub(super) mod recorder;
mod schedule;
mod signatures;

use hybriq_tls::rustls::CryptoProvider;

pub(super) use groups::{forget_ahead, make_ahead};

/// Returns a provider that times every operation of another, for
/// [`hybriq_tls::rustls::Client::with_crypto`] and the server's.
pub(super) fn crypto(plain: CryptoProvider) -> CryptoProvider {
    CryptoProvider {
        cipher_suites: plain
            .cipher_suites
            .into_iter()
            .map(schedule::suite)
            .collect(),
        kx_groups: plain.kx_groups.into_iter().map(groups::group).collect(),
        signature_verification_algorithms: signatures::algorithms(),
        secure_random: &schedule::Random,
        key_provider: &signatures::Keys,
    }
}
