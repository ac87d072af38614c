//! Cipher suites of rustls, without packet keys.

use std::sync::LazyLock;

use ::rustls::crypto::aws_lc_rs::cipher_suite;
use ::rustls::crypto::cipher::{AeadKey, Iv};
use ::rustls::crypto::{CipherSuiteCommon, CryptoProvider};
use ::rustls::{Error, SupportedCipherSuite, Tls13CipherSuite, quic};

use super::groups;
use crate::options::DEFAULT_SUITES;
use crate::providers::rustls::unsupported;
use crate::{ConfigError, Group, Suite};

/// Suites of rustls, with a QUIC algorithm that builds nothing.
static SUITES: LazyLock<[Option<Tls13CipherSuite>; 3]> = LazyLock::new(|| {
    [
        without_keys(cipher_suite::TLS13_AES_128_GCM_SHA256, &NoKeys(16)),
        without_keys(cipher_suite::TLS13_AES_256_GCM_SHA384, &NoKeys(32)),
        without_keys(cipher_suite::TLS13_CHACHA20_POLY1305_SHA256, &NoKeys(32)),
    ]
});

fn without_keys(
    suite: SupportedCipherSuite,
    quic: &'static dyn quic::Algorithm,
) -> Option<Tls13CipherSuite> {
    let suite = suite.tls13()?;
    Some(Tls13CipherSuite {
        common: CipherSuiteCommon {
            suite: suite.common.suite,
            hash_provider: suite.common.hash_provider,
            confidentiality_limit: suite.common.confidentiality_limit,
        },
        hkdf_provider: suite.hkdf_provider,
        aead_alg: suite.aead_alg,
        quic: Some(quic),
    })
}

/// Returns rustls' crypto with these suites and exactly these groups.
pub(in crate::providers::rustls) fn crypto(
    suites: Option<&[Suite]>,
    groups: &[Group],
) -> Result<CryptoProvider, ConfigError> {
    let wanted = suites.unwrap_or(&DEFAULT_SUITES);
    if wanted.is_empty() {
        return Err(unsupported(
            "the list of cipher suites is empty; give at least one",
        ));
    }
    let cipher_suites = wanted
        .iter()
        .filter_map(|suite| {
            let index = usize::from((*suite as u16).checked_sub(Suite::Aes128GcmSha256 as u16)?);
            SUITES.get(index)?.as_ref().map(SupportedCipherSuite::Tls13)
        })
        .collect();
    Ok(CryptoProvider {
        cipher_suites,
        kx_groups: groups
            .iter()
            .filter_map(|group| groups::implementation(*group))
            .collect(),
        ..::rustls::crypto::aws_lc_rs::default_provider()
    })
}

/// A [`quic::Algorithm`] with a key length and without keys.
struct NoKeys(usize);
struct NoKey;

impl quic::Algorithm for NoKeys {
    fn packet_key(&self, _: AeadKey, _: Iv) -> Box<dyn quic::PacketKey> {
        Box::new(NoKey)
    }

    fn header_protection_key(&self, _: AeadKey) -> Box<dyn quic::HeaderProtectionKey> {
        Box::new(NoKey)
    }

    fn aead_key_len(&self) -> usize {
        self.0
    }

    /// True, because the transport protects packets with the same library.
    fn fips(&self) -> bool {
        crate::is_fips()
    }
}

impl quic::PacketKey for NoKey {
    fn encrypt_in_place(&self, _: u64, _: &[u8], _: &mut [u8]) -> Result<quic::Tag, Error> {
        Err(Error::EncryptError)
    }

    fn decrypt_in_place<'a>(&self, _: u64, _: &[u8], _: &'a mut [u8]) -> Result<&'a [u8], Error> {
        Err(Error::DecryptError)
    }

    fn tag_len(&self) -> usize {
        16
    }

    fn confidentiality_limit(&self) -> u64 {
        0
    }

    fn integrity_limit(&self) -> u64 {
        0
    }
}

impl quic::HeaderProtectionKey for NoKey {
    fn encrypt_in_place(&self, _: &[u8], _: &mut u8, _: &mut [u8]) -> Result<(), Error> {
        Err(Error::EncryptError)
    }

    fn decrypt_in_place(&self, _: &[u8], _: &mut u8, _: &mut [u8]) -> Result<(), Error> {
        Err(Error::DecryptError)
    }

    fn sample_len(&self) -> usize {
        16
    }
}
