//! Timed signatures: those of the handshake apart from those of certificate chains.

use std::sync::{Arc, LazyLock};

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::{KeyProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{
    AlgorithmIdentifier, InvalidSignature, PrivateKeyDer, SignatureVerificationAlgorithm,
    SubjectPublicKeyInfoDer,
};
use rustls::sign::{Signer, SigningKey};
use rustls::{Error, SignatureAlgorithm, SignatureScheme};

use super::recorder::{Operation, timed};

type Algorithms = &'static [&'static dyn SignatureVerificationAlgorithm];

static ALGORITHMS: LazyLock<WebPkiSupportedAlgorithms> = LazyLock::new(|| {
    let plain = default_provider().signature_verification_algorithms;
    let mapping = plain.mapping.iter().map(|(scheme, algorithms)| {
        (
            *scheme,
            timed_form(algorithms, Operation::HandshakeVerification),
        )
    });
    WebPkiSupportedAlgorithms {
        all: timed_form(plain.all, Operation::ChainVerification),
        mapping: mapping.collect::<Vec<_>>().leak(),
    }
});

/// Returns all algorithms of rustls, timed.
pub(super) fn algorithms() -> WebPkiSupportedAlgorithms {
    *ALGORITHMS
}

fn timed_form(algorithms: Algorithms, operation: Operation) -> Algorithms {
    let timed = algorithms.iter().map(|&inner| {
        let timed: &'static Verifying = Box::leak(Box::new(Verifying { inner, operation }));
        timed as &dyn SignatureVerificationAlgorithm
    });
    timed.collect::<Vec<_>>().leak()
}

#[derive(Debug)]
struct Verifying {
    inner: &'static dyn SignatureVerificationAlgorithm,
    operation: Operation,
}

impl SignatureVerificationAlgorithm for Verifying {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        timed(self.operation, || {
            self.inner.verify_signature(public_key, message, signature)
        })
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.inner.public_key_alg_id()
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.inner.signature_alg_id()
    }
}

/// Loader of private keys with timed signing.
#[derive(Debug)]
pub(super) struct Keys;

impl KeyProvider for Keys {
    fn load_private_key(&self, key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        let key = default_provider().key_provider.load_private_key(key)?;
        Ok(Arc::new(TimedKey(key)))
    }
}

#[derive(Debug)]
struct TimedKey(Arc<dyn SigningKey>);

impl SigningKey for TimedKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        Some(Box::new(TimedSigner(self.0.choose_scheme(offered)?)))
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        self.0.public_key()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.0.algorithm()
    }
}

#[derive(Debug)]
struct TimedSigner(Box<dyn Signer>);

impl Signer for TimedSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        timed(Operation::Signing, || self.0.sign(message))
    }

    fn scheme(&self) -> SignatureScheme {
        self.0.scheme()
    }
}
