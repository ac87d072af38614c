//! The certificate of a run: self-made, ECDSA P-256, for `localhost`.

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};

use crate::Failure;

/// The name clients ask for and verify.
pub(crate) const SERVER_NAME: &str = "localhost";

/// A certificate and its key as PEM text.
pub(crate) struct Certificate {
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl Certificate {
    pub(crate) fn make() -> Result<Self, Failure> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = CertificateParams::new([SERVER_NAME.to_owned()])?.self_signed(&key)?;
        Ok(Self {
            chain: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}
