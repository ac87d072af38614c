//! The timed key schedule: HKDF and the transcript's hash (RFC 8446 §7.1).

use std::sync::{LazyLock, Mutex, PoisonError};

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::hash::{self, Hash, HashAlgorithm};
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};
use rustls::crypto::{CipherSuiteCommon, GetRandomFailed, SecureRandom, hmac};
use rustls::{CipherSuite, SupportedCipherSuite, Tls13CipherSuite};

use super::recorder::{Event, Operation, note, timed};

/// Suites made so far. rustls needs them for the life of the process, so each is made once.
static SUITES: Mutex<Vec<(CipherSuite, &'static Tls13CipherSuite)>> = Mutex::new(Vec::new());

/// Returns the timed form of a suite.
pub(super) fn suite(plain: SupportedCipherSuite) -> SupportedCipherSuite {
    let Some(inner) = plain.tls13() else {
        return plain;
    };
    let mut suites = SUITES.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = inner.common.suite;
    if let Some((_, made)) = suites.iter().find(|(name, _)| *name == wanted) {
        return SupportedCipherSuite::Tls13(made);
    }
    let made: &'static Tls13CipherSuite = Box::leak(Box::new(Tls13CipherSuite {
        common: CipherSuiteCommon {
            suite: wanted,
            hash_provider: Box::leak(Box::new(Transcript(inner.common.hash_provider))),
            confidentiality_limit: inner.common.confidentiality_limit,
        },
        hkdf_provider: Box::leak(Box::new(Derivation(inner.hkdf_provider))),
        aead_alg: inner.aead_alg,
        quic: inner.quic,
    }));
    suites.push((wanted, made));
    SupportedCipherSuite::Tls13(made)
}

struct Transcript(&'static dyn Hash);

impl Hash for Transcript {
    fn start(&self) -> Box<dyn hash::Context> {
        let inner = timed(Operation::TranscriptHash, || self.0.start());
        Box::new(Context(inner))
    }

    fn hash(&self, data: &[u8]) -> hash::Output {
        timed(Operation::TranscriptHash, || self.0.hash(data))
    }

    fn output_len(&self) -> usize {
        self.0.output_len()
    }

    fn algorithm(&self) -> HashAlgorithm {
        self.0.algorithm()
    }
}

struct Context(Box<dyn hash::Context>);

impl hash::Context for Context {
    fn fork_finish(&self) -> hash::Output {
        timed(Operation::TranscriptHash, || self.0.fork_finish())
    }

    fn fork(&self) -> Box<dyn hash::Context> {
        Box::new(Self(timed(Operation::TranscriptHash, || self.0.fork())))
    }

    fn finish(self: Box<Self>) -> hash::Output {
        timed(Operation::TranscriptHash, || self.0.finish())
    }

    fn update(&mut self, data: &[u8]) {
        timed(Operation::TranscriptHash, || self.0.update(data));
        if let Some(kind) = whole_message(data) {
            note(Event::Hashed(kind));
        }
    }
}

/// Returns the type of the message if these bytes are a whole one. Binders hash parts of a message.
fn whole_message(data: &[u8]) -> Option<u8> {
    let (&[kind, high, middle, low], body) = data.split_first_chunk()?;
    let len = u32::from_be_bytes([0, high, middle, low]) as usize;
    (body.len() == len).then_some(kind)
}

struct Derivation(&'static dyn Hkdf);

impl Derivation {
    fn expander(make: impl FnOnce() -> Box<dyn HkdfExpander>) -> Box<dyn HkdfExpander> {
        Box::new(Expander(timed(Operation::KeyDerivation, make)))
    }
}

impl Hkdf for Derivation {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        Self::expander(|| self.0.extract_from_zero_ikm(salt))
    }

    fn extract_from_secret(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        Self::expander(|| self.0.extract_from_secret(salt, secret))
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        Self::expander(|| self.0.expander_for_okm(okm))
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> hmac::Tag {
        timed(Operation::KeyDerivation, || self.0.hmac_sign(key, message))
    }
}

struct Expander(Box<dyn HkdfExpander>);

impl HkdfExpander for Expander {
    fn expand_slice(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        timed(Operation::KeyDerivation, || {
            self.0.expand_slice(info, output)
        })
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        timed(Operation::KeyDerivation, || self.0.expand_block(info))
    }

    fn hash_len(&self) -> usize {
        self.0.hash_len()
    }
}

static SOURCE: LazyLock<&'static dyn SecureRandom> =
    LazyLock::new(|| default_provider().secure_random);

/// Timed random numbers.
#[derive(Debug)]
pub(super) struct Random;

impl SecureRandom for Random {
    fn fill(&self, buf: &mut [u8]) -> Result<(), GetRandomFailed> {
        timed(Operation::Randomness, || SOURCE.fill(buf))
    }
}
