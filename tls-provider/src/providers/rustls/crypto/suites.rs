//! Cipher suites of rustls, for QUIC without keys.

use std::sync::LazyLock;

use ::rustls::crypto::aws_lc_rs::cipher_suite;
use ::rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, MessageDecrypter, MessageEncrypter,
    OutboundOpaqueMessage, OutboundPlainMessage, Tls13AeadAlgorithm, UnsupportedOperationError,
};
use ::rustls::crypto::{CipherSuiteCommon, CryptoProvider};
use ::rustls::{ConnectionTrafficSecrets, Error, SupportedCipherSuite, Tls13CipherSuite, quic};

use super::{
    groups,
    hkdf::{self, Outputs},
};
use crate::options::DEFAULT_SUITES;
use crate::providers::rustls::unsupported;
use crate::{ConfigError, Group, Suite};

/// Suites of rustls for QUIC, whose packets the transport protects, so that they build no keys.
static OF_QUIC: LazyLock<Suites> = LazyLock::new(|| Suites::new(of_quic));

/// Suites of rustls for TCP.
static OF_TCP: LazyLock<Suites> = LazyLock::new(|| {
    Suites::new(|suite| Tls13CipherSuite {
        hkdf_provider: hkdf::of(suite, Outputs::All),
        ..copy(suite)
    })
});

/// Suites in the order of [`Suite`].
struct Suites([Option<Tls13CipherSuite>; 3]);

impl Suites {
    fn new(adapt: fn(&Tls13CipherSuite) -> Tls13CipherSuite) -> Self {
        let all = [
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ];
        Self(all.map(|suite| suite.tls13().map(adapt)))
    }

    fn get(&'static self, suite: Suite) -> Option<SupportedCipherSuite> {
        let index = usize::from((suite as u16).checked_sub(Suite::Aes128GcmSha256 as u16)?);
        self.0.get(index)?.as_ref().map(SupportedCipherSuite::Tls13)
    }
}

fn of_quic(suite: &Tls13CipherSuite) -> Tls13CipherSuite {
    let no_keys = NoKeys::of(suite.aead_alg);
    Tls13CipherSuite {
        hkdf_provider: hkdf::of(suite, Outputs::Secrets),
        aead_alg: no_keys,
        quic: Some(no_keys),
        ..copy(suite)
    }
}

fn copy(suite: &Tls13CipherSuite) -> Tls13CipherSuite {
    Tls13CipherSuite {
        common: CipherSuiteCommon {
            suite: suite.common.suite,
            hash_provider: suite.common.hash_provider,
            confidentiality_limit: suite.common.confidentiality_limit,
        },
        hkdf_provider: suite.hkdf_provider,
        aead_alg: suite.aead_alg,
        quic: suite.quic,
    }
}

/// Returns rustls' crypto for QUIC with these suites and exactly these groups.
pub(in crate::providers::rustls) fn crypto(
    suites: Option<&[Suite]>,
    groups: &[Group],
) -> Result<CryptoProvider, ConfigError> {
    crypto_of(&OF_QUIC, suites, groups)
}

/// Returns the same for TCP.
pub(in crate::providers::rustls) fn crypto_over_tcp(
    suites: Option<&[Suite]>,
    groups: &[Group],
) -> Result<CryptoProvider, ConfigError> {
    crypto_of(&OF_TCP, suites, groups)
}

fn crypto_of(
    known: &'static Suites,
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
        .filter_map(|suite| known.get(*suite))
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

/// Algorithm whose keys refuse to encrypt and to decrypt.
struct NoKeys {
    /// True if the algorithm that it replaces is approved by FIPS 140 and runs in a module: the
    /// transport protects packets with the same algorithm of the same library.
    is_approved: bool,
}
struct NoKey;

impl NoKeys {
    fn of(replaced: &dyn Tls13AeadAlgorithm) -> &'static Self {
        if replaced.fips() {
            &Self { is_approved: true }
        } else {
            &Self { is_approved: false }
        }
    }
}

impl quic::Algorithm for NoKeys {
    fn packet_key(&self, _: AeadKey, _: Iv) -> Box<dyn quic::PacketKey> {
        Box::new(NoKey)
    }

    fn header_protection_key(&self, _: AeadKey) -> Box<dyn quic::HeaderProtectionKey> {
        Box::new(NoKey)
    }

    fn aead_key_len(&self) -> usize {
        0
    }

    fn fips(&self) -> bool {
        self.is_approved
    }
}

impl Tls13AeadAlgorithm for NoKeys {
    fn encrypter(&self, _: AeadKey, _: Iv) -> Box<dyn MessageEncrypter> {
        Box::new(NoKey)
    }

    fn decrypter(&self, _: AeadKey, _: Iv) -> Box<dyn MessageDecrypter> {
        Box::new(NoKey)
    }

    fn key_len(&self) -> usize {
        0
    }

    fn extract_keys(
        &self,
        _: AeadKey,
        _: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Err(UnsupportedOperationError)
    }

    fn fips(&self) -> bool {
        self.is_approved
    }
}

impl MessageEncrypter for NoKey {
    fn encrypt(
        &mut self,
        _: OutboundPlainMessage<'_>,
        _: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        Err(Error::EncryptError)
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        payload_len
    }
}

impl MessageDecrypter for NoKey {
    fn decrypt<'a>(
        &mut self,
        _: InboundOpaqueMessage<'a>,
        _: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        Err(Error::DecryptError)
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

#[cfg(test)]
mod tests {
    use super::{NoKeys, OF_QUIC, cipher_suite, copy, of_quic};
    use crate::options::DEFAULT_SUITES;
    use ::rustls::Tls13CipherSuite;

    #[test]
    fn a_suite_for_quic_is_approved_if_its_algorithm_is() {
        let suite = cipher_suite::TLS13_AES_128_GCM_SHA256;
        let suite = suite.tls13().expect("a suite of TLS 1.3");
        for replaced in [
            &NoKeys { is_approved: true },
            &NoKeys { is_approved: false },
        ] {
            let adapted = of_quic(&Tls13CipherSuite {
                aead_alg: replaced,
                ..copy(suite)
            });
            assert_eq!(adapted.aead_alg.fips(), replaced.is_approved);
            let quic = adapted.quic.expect("an algorithm");
            assert_eq!(quic.fips(), replaced.is_approved);
        }
    }

    #[test]
    fn the_suites_of_a_fips_build_are_approved_without_chacha20() {
        let approved = crate::Profile::Fips140.suites().expect("a list");
        for suite in DEFAULT_SUITES {
            let is_approved = crate::is_fips() && approved.contains(&suite);
            let adapted = OF_QUIC.get(suite).expect("a suite");
            assert_eq!(adapted.fips(), is_approved, "{suite}");
        }
    }
}
