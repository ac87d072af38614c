use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use zeroize::Zeroize;

use crate::{CertificateDer, ConfigError, PrivateKeyDer};

/// A certificate chain, the owner's certificate first, and its private key.
///
/// Cloning shares both. The key is wiped when the last clone goes, and `Debug` never shows it.
#[derive(Clone)]
pub struct Identity(Arc<Inner>);

struct Inner {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

impl Identity {
    /// Reads a PEM file with the certificate chain and one with the private key (PKCS #8, PKCS #1
    /// or SEC1). Both may be the same file.
    ///
    /// # Errors
    /// [`ConfigError::Read`] and [`ConfigError::Pem`] name the file.
    pub fn from_pem_files(
        chain: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Self, ConfigError> {
        let certificates = certificates(&super::trust::read(chain.as_ref())?)
            .map_err(|_| no_certificate(chain.as_ref()))?;
        let mut key_pem = super::trust::read(key.as_ref())?;
        let private_key = PrivateKeyDer::from_pem_slice(&key_pem);
        key_pem.zeroize();
        let private_key = private_key.map_err(|_| ConfigError::Pem {
            path: key.as_ref().to_owned(),
            wanted: "private key without a password",
            label: "PRIVATE KEY",
        })?;
        Ok(Self::from_der(certificates, private_key))
    }

    /// Reads the certificate chain and the private key from PEM text.
    ///
    /// # Errors
    /// [`ConfigError::Identity`] says which of the two is not there.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, ConfigError> {
        let certificates = certificates(chain).map_err(|error| {
            ConfigError::Identity(format!(
                "no certificate in the PEM text ({error}); expected -----BEGIN CERTIFICATE-----"
            ))
        })?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| {
            ConfigError::Identity(
                "no private key without a password in the PEM text; expected -----BEGIN PRIVATE KEY-----".to_owned(),
            )
        })?;
        Ok(Self::from_der(certificates, key))
    }

    /// Takes the parts as they are. A provider checks that they belong together.
    pub fn from_der(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Self {
        Self(Arc::new(Inner { chain, key }))
    }

    /// The certificate chain, the owner's certificate first.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.0.chain
    }

    pub(crate) fn private_key(&self) -> &PrivateKeyDer<'static> {
        &self.0.key
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("certificates", &self.0.chain.len())
            .finish_non_exhaustive()
    }
}

/// Every certificate of a PEM text, at least one.
pub(super) fn certificates(
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, rustls_pki_types::pem::Error> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>()?;
    if certificates.is_empty() {
        return Err(rustls_pki_types::pem::Error::NoItemsFound);
    }
    Ok(certificates)
}

pub(super) fn no_certificate(path: &Path) -> ConfigError {
    ConfigError::Pem {
        path: path.to_owned(),
        wanted: "certificate",
        label: "CERTIFICATE",
    }
}
