//! Fingerprints of public keys.

use std::{fmt, str::FromStr};

use aws_lc_rs::digest::{SHA256, digest};
use base64ct::{Base64Unpadded, Encoding as _};
use hybriq::tls::{CertificateAlgorithms, CertificateDer, KeyAlgorithm};
use webpki::EndEntityCert;

/// SHA-256 of an ML-DSA-65 public key, written as SSH writes the fingerprints of its keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint([u8; 32]);

/// The words before the digest.
const PREFIX: &str = "SHA256:";

/// A certificate without a public key of ML-DSA-65.
#[derive(Debug, thiserror::Error)]
#[error(
    "the certificate has no public key of ML-DSA-65; both ends need the identity that file_transfer made"
)]
pub(crate) struct NotMlDsa65;

impl Fingerprint {
    /// Returns the fingerprint of the key in a certificate.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Result<Self, NotMlDsa65> {
        let algorithms = CertificateAlgorithms::of(certificate).ok_or(NotMlDsa65)?;
        if algorithms.key != KeyAlgorithm::MlDsa65 {
            return Err(NotMlDsa65);
        }
        let parsed = EndEntityCert::try_from(certificate).map_err(|_| NotMlDsa65)?;
        let hash = digest(&SHA256, &parsed.subject_public_key_info());
        hash.as_ref().try_into().map(Self).map_err(|_| NotMlDsa65)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", Base64Unpadded::encode_string(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no fingerprint.
#[derive(Debug, thiserror::Error)]
#[error("not a fingerprint; one is {PREFIX} and 43 letters, as `file_transfer identity` prints it")]
pub(crate) struct NotAFingerprint;

impl FromStr for Fingerprint {
    type Err = NotAFingerprint;

    fn from_str(text: &str) -> Result<Self, NotAFingerprint> {
        let digits = text.strip_prefix(PREFIX).ok_or(NotAFingerprint)?;
        let mut hash = [0; 32];
        match Base64Unpadded::decode(digits, &mut hash) {
            Ok(all) if all.len() == 32 => Ok(Self(hash)),
            _ => Err(NotAFingerprint),
        }
    }
}
