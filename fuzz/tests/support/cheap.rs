//! rustls without its expensive operations: key shares of the right length, signatures that anybody
//! accepts.
//!
//! All messages stay those of rustls, with the length that they have on the wire, and secrets still
//! depend on them. A target that looks at the transport runs more inputs in the same time.

use hybriq::tls::{SignError, SignatureScheme, Signer};
use hybriq_tls::rustls::{
    CryptoProvider,
    library::{
        self, Error, NamedGroup, PeerMisbehaved,
        crypto::{
            ActiveKeyExchange, CompletedKeyExchange, SharedSecret, SupportedKxGroup,
            WebPkiSupportedAlgorithms,
        },
        pki_types::{
            AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, alg_id,
        },
    },
};

const CLIENT_SHARE: usize = 1216;
const SERVER_SHARE: usize = 1120;

/// X25519MLKEM768, whose secret is known to everybody.
#[derive(Debug)]
struct Open;

static GROUP: &dyn SupportedKxGroup = &Open;

fn secret() -> SharedSecret {
    SharedSecret::from(&[7_u8; 64][..])
}

impl SupportedKxGroup for Open {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        Ok(Box::new(Begun(vec![1; CLIENT_SHARE])))
    }

    fn start_and_complete(&self, share: &[u8]) -> Result<CompletedKeyExchange, Error> {
        if share.len() != CLIENT_SHARE {
            return Err(PeerMisbehaved::InvalidKeyShare.into());
        }
        Ok(CompletedKeyExchange {
            group: self.name(),
            pub_key: vec![2; SERVER_SHARE],
            secret: secret(),
        })
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}

/// Share of a client.
struct Begun(Vec<u8>);

impl ActiveKeyExchange for Begun {
    fn complete(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        if share.len() != SERVER_SHARE {
            return Err(PeerMisbehaved::InvalidKeyShare.into());
        }
        Ok(secret())
    }

    fn pub_key(&self) -> &[u8] {
        &self.0
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}

/// Key whose signatures have the length of true ones.
pub(crate) struct Key;

impl Signer for Key {
    fn schemes(&self) -> &[SignatureScheme] {
        &[SignatureScheme::ECDSA_SECP256R1_SHA256]
    }

    fn sign(&self, _: SignatureScheme, _: &[u8]) -> Result<Vec<u8>, SignError> {
        Ok(vec![3; 71])
    }
}

/// Algorithm that finds every signature good.
#[derive(Debug)]
struct Credulous;

const ALGORITHMS: &[&dyn SignatureVerificationAlgorithm] = &[&Credulous];

const SIGNATURES: WebPkiSupportedAlgorithms = WebPkiSupportedAlgorithms {
    all: ALGORITHMS,
    mapping: &[(library::SignatureScheme::ECDSA_NISTP256_SHA256, ALGORITHMS)],
};

impl SignatureVerificationAlgorithm for Credulous {
    fn verify_signature(&self, _: &[u8], _: &[u8], _: &[u8]) -> Result<(), InvalidSignature> {
        Ok(())
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ECDSA_P256
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ECDSA_SHA256
    }
}

/// Replaces the hybrid group and the check of signatures.
pub(crate) fn crypto(mut crypto: CryptoProvider) -> CryptoProvider {
    for group in &mut crypto.kx_groups {
        if group.name() == NamedGroup::X25519MLKEM768 {
            *group = GROUP;
        }
    }
    crypto.signature_verification_algorithms = SIGNATURES;
    crypto
}
