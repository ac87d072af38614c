//! Private keys that the process does not hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_lc_rs::digest::{Digest, SHA256};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use hybriq_tls::{
    CertificateDer, ClientAuth, ClientOptions, ConfigError, Error, Identity, ServerOptions, Side,
    SignError, SignatureScheme, Signer,
};
use rcgen::PublicKeyData;

use crate::support::{ALPN, Authority, CONTENDERS, HOST, Pair, pairings};

const SCHEME: SignatureScheme = SignatureScheme(0x0403);

/// A key somewhere else.
struct External {
    key: EcdsaKeyPair,
    public_key: Option<Vec<u8>>,
    broken: bool,
    signs_digests: bool,
    signed: Arc<AtomicUsize>,
}

impl External {
    fn use_key(&self) -> Result<(), SignError> {
        if self.broken {
            return Err(SignError("the module was pulled out".to_owned()));
        }
        self.signed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

impl Signer for External {
    fn schemes(&self) -> &[SignatureScheme] {
        &[SCHEME]
    }

    fn public_key(&self) -> Option<Vec<u8>> {
        self.public_key.clone()
    }

    fn sign(&self, scheme: SignatureScheme, message: &[u8]) -> Result<Vec<u8>, SignError> {
        assert_eq!(scheme, SCHEME);
        self.use_key()?;
        let signature = self.key.sign(&SystemRandom::new(), message);
        Ok(signature.expect("a signature").as_ref().to_vec())
    }

    fn signs_digests(&self) -> bool {
        self.signs_digests
    }

    fn sign_digest(&self, scheme: SignatureScheme, digest: &[u8]) -> Result<Vec<u8>, SignError> {
        assert_eq!(scheme, SCHEME);
        self.use_key()?;
        let digest = Digest::import_less_safe(digest, &SHA256).expect("a digest");
        let signature = self.key.sign_digest(&digest);
        Ok(signature.expect("a signature").as_ref().to_vec())
    }
}

fn external(authority: &Authority) -> (Vec<CertificateDer<'static>>, External) {
    let (certificate, key) = authority.issue_with(&[HOST], |_| {});
    let signer = External {
        key: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &key.serialize_der())
            .expect("the key"),
        public_key: Some(key.subject_public_key_info()),
        broken: false,
        signs_digests: true,
        signed: Arc::default(),
    };
    (vec![certificate.der().clone()], signer)
}

#[test]
fn a_remote_key_signs_for_either_end() {
    let authority = Authority::new("root");
    for (client, server) in pairings() {
        let (chain, signer) = external(&authority);
        let signed = signer.signed.clone();
        let identity = Identity::from_signer(chain, signer);
        let client_options = ClientOptions::new().alpn(ALPN).trust(authority.trust());
        let server_options = ServerOptions::new(authority.issue(&[HOST])).alpn(ALPN);
        let of_server = (
            client_options.clone(),
            ServerOptions::new(identity.clone()).alpn(ALPN),
        );
        let of_client = (
            client_options.identity(identity),
            server_options.client_auth(ClientAuth::Required(authority.trust())),
        );
        for options in [of_server, of_client] {
            let before = signed.load(Ordering::Relaxed);
            let pair = Pair::of((client, server), &options).complete();
            assert_eq!(signed.load(Ordering::Relaxed), before + 1);
            let scheme = pair.server.session.negotiated().signature_scheme;
            assert!(scheme.is_none() || scheme == Some(SCHEME));
        }
    }
}

#[test]
fn s2n_tls_needs_signers_of_digests_for_all_identities() {
    let authority = Authority::new("root");
    for contender in CONTENDERS.iter().filter(|it| it.name == "s2n-tls") {
        let (chain, mut signer) = external(&authority);
        signer.signs_digests = false;
        let alone = ServerOptions::new(Identity::from_signer(chain, signer));
        let (chain, signer) = external(&authority);
        let mixed = ServerOptions::new(Identity::from_signer(chain, signer))
            .add_identity(authority.issue(&["other.test"]));
        for options in [alone, mixed] {
            let error = (contender.server)(&options).err().expect("a refusal");
            assert!(matches!(error, ConfigError::Unsupported { .. }), "{error}");
            assert!(error.to_string().contains("use rustls"), "{error}");
        }
    }
}

#[test]
fn a_remote_key_of_another_certificate_is_refused() {
    let authority = Authority::new("root");
    for contender in CONTENDERS {
        let (_, signer) = external(&authority);
        let (chain, _) = external(&authority);
        let options = ServerOptions::new(Identity::from_signer(chain.clone(), signer));
        let error = (contender.server)(&options).err().expect("a mismatch");
        assert!(matches!(error, ConfigError::Identity(_)), "{error}");
        // Without a public key nobody can tell.
        let (_, mut signer) = external(&authority);
        signer.public_key = None;
        let options = ServerOptions::new(Identity::from_signer(chain, signer));
        assert!((contender.server)(&options).is_ok());
    }
}

#[test]
fn a_remote_key_that_fails_is_our_own_fault() {
    let authority = Authority::new("root");
    for (client, server) in pairings() {
        let (chain, mut signer) = external(&authority);
        signer.broken = true;
        let options = (
            ClientOptions::new().alpn(ALPN).trust(authority.trust()),
            ServerOptions::new(Identity::from_signer(chain, signer)).alpn(ALPN),
        );
        let failure = Pair::of((client, server), &options).fail();
        failure.assert(Side::Server, 80);
        let detail = &failure.error.detail;
        assert_eq!(detail, "the signer failed: the module was pulled out");
        assert_eq!(failure.error.reason_for_peer(), Error::PRIVATE);
    }
}
