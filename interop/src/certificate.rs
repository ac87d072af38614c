//! The certificate of a test.

use rcgen::{CertificateParams, Error, KeyPair, PKCS_ECDSA_P384_SHA384};
use rustls::pki_types::CertificateDer;

/// Name of every server here.
pub const SERVER_NAME: &str = "localhost";

/// Self-signed certificate with its key, which servers present and clients trust.
///
/// Its key is on P-384, because the only s2n-tls policy that offers nothing but secp384r1 accepts
/// no certificate of another curve.
#[derive(Clone, Debug)]
pub struct Certificate {
    pem: String,
    key_pem: String,
    der: Vec<u8>,
}

impl Certificate {
    /// Makes a new certificate for [`SERVER_NAME`].
    ///
    /// # Errors
    /// An error of rcgen, which does not happen in practice.
    pub fn generate() -> Result<Self, Error> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384)?;
        let certificate = CertificateParams::new([SERVER_NAME.to_owned()])?.self_signed(&key)?;
        Ok(Self {
            pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            der: certificate.der().to_vec(),
        })
    }

    /// Returns the certificate as PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the private key as PEM (PKCS #8).
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    /// Returns the certificate as DER.
    pub fn der(&self) -> CertificateDer<'static> {
        self.der.clone().into()
    }
}
