//! The certificate of a test.

use rcgen::{CertificateParams, Error, KeyPair, PKCS_ECDSA_P384_SHA384};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The name every server here goes by.
pub const SERVER_NAME: &str = "localhost";

/// A self-signed certificate with its key, for servers to present and clients to trust.
///
/// On P-384, because the only s2n-tls policy that offers nothing but secp384r1 takes no
/// certificate of another curve.
#[derive(Clone, Debug)]
pub struct Certificate {
    pem: String,
    key_pem: String,
    der: Vec<u8>,
    key_der: Vec<u8>,
}

impl Certificate {
    /// Makes a new one for [`SERVER_NAME`].
    ///
    /// # Errors
    /// Whatever rcgen finds wrong; nothing in practice.
    pub fn generate() -> Result<Self, Error> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384)?;
        let certificate = CertificateParams::new([SERVER_NAME.to_owned()])?.self_signed(&key)?;
        Ok(Self {
            pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            der: certificate.der().to_vec(),
            key_der: key.serialize_der(),
        })
    }

    /// The certificate as PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The private key as PEM (PKCS #8).
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    /// The certificate as DER.
    pub fn der(&self) -> CertificateDer<'static> {
        self.der.clone().into()
    }

    /// The private key as DER (PKCS #8).
    pub fn key_der(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key_der.clone()).into()
    }
}
