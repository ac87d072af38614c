//! Making of signatures.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use cms::cert::x509::Certificate;
use cms::cert::x509::der::{Decode as _, Encode as _};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error as TlsError, InconsistentKeys};

use super::algorithm::{Digest, MlDsa};
use super::{TRUSTED, VerifyError, message, read, verifier};
use crate::system::failure::Failure;

/// Digest of signed files, which every parameter set accepts.
const DIGEST: Digest = Digest::Sha512;

/// A certificate chain and the key that signs.
pub(super) struct Signer {
    chain: Vec<Certificate>,
    key: Box<dyn rustls::sign::Signer>,
    algorithm: MlDsa,
}

impl Signer {
    /// Reads the chain and its key, and checks that they belong together.
    pub(super) fn load(chain: &Path, key: &Path) -> Result<Self, Failure> {
        let (chain_path, key_path) = (chain.display(), key.display());
        let certificates = CertificateDer::pem_slice_iter(&read(chain, TRUSTED)?)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| format!("{chain_path}: {error}"))?;
        let no_certificate =
            || format!("{chain_path} holds no certificate; expected -----BEGIN CERTIFICATE-----");
        let chain = certificates
            .iter()
            .map(|certificate| Certificate::from_der(certificate))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| format!("{chain_path}: a certificate is damaged ({error})"))?;
        let leaf = chain.first().ok_or_else(no_certificate)?;
        let info = &leaf.tbs_certificate.subject_public_key_info;
        let algorithm = MlDsa::of(info.algorithm.oid).ok_or_else(|| {
            format!(
                "the key of {chain_path} is not ML-DSA; make one that is with \
                 `netbench certificates`, or `openssl genpkey -algorithm ML-DSA-65`"
            )
        })?;
        let private = PrivateKeyDer::from_pem_slice(&read(key, TRUSTED)?).map_err(|_| {
            format!(
                "{key_path} holds no private key without a password; expected \
                 -----BEGIN PRIVATE KEY-----"
            )
        })?;
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let certified = CertifiedKey::from_der(certificates, private, &provider).map_err(
            |error| match error {
                TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch) => format!(
                    "{key_path} is not the key of {chain_path}; give the two that belong \
                         together"
                ),
                error => format!("{key_path} cannot be used: {error}"),
            },
        )?;
        let key = certified.key.choose_scheme(&[algorithm.scheme()]);
        let key = key.ok_or_else(|| format!("{key_path} is no key of {algorithm}"))?;
        Ok(Self {
            chain,
            key,
            algorithm,
        })
    }

    /// Signs a file.
    pub(super) fn sign(&self, file: &Path, now: SystemTime) -> Result<Vec<u8>, Failure> {
        let leaf = &self.chain[0];
        let validity = &leaf.tbs_certificate.validity;
        let (from, until) = (&validity.not_before, &validity.not_after);
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        if since < from.to_unix_duration() || since > until.to_unix_duration() {
            return Err(format!(
                "the certificate is valid from {from} to {until} only; sign with a current one"
            )
            .into());
        }
        let digest = DIGEST
            .of_file(file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        let attributes = message::attributes(digest.as_ref(), now)?;
        let signature = self.key.sign(&attributes.to_der()?)?;
        let algorithm = self.algorithm;
        let made = message::encode(&self.chain, algorithm, DIGEST, attributes, signature)?;
        Ok(made)
    }

    /// Returns what verifiers will have against the certificate, whatever it signs.
    pub(super) fn refused_as(&self) -> Option<VerifyError> {
        verifier::check_purpose(&self.chain[0]).err()
    }

    /// Says who signs, and how.
    pub(super) fn describe(&self) -> String {
        let name = verifier::name(&self.chain[0].tbs_certificate.subject);
        format!("signed with {} by {name}", self.algorithm)
    }
}
