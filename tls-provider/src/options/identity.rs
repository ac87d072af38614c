//! Certificates of this end, the keys behind them, the choice among them, and PEM files.

use std::{fmt, path::Path, sync::Arc};

use rustls_pki_types::pem::PemObject;
use zeroize::Zeroize;

use crate::{CertificateDer, ConfigError, PrivateKeyDer, Signer, policy::certificate::ocsp};

/// A certificate chain, the owner's certificate first, and its private key.
///
/// An identity is a value. To follow files that change, build a new one and reload the configuration; `Handle::watch` of
/// `hybriq-http` does so.
///
/// A clone shares both. The key is wiped when the last clone is dropped, and `Debug` never shows
/// it.
#[derive(Clone)]
pub struct Identity(Arc<Inner>);

struct Inner {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<Key>,
    ocsp: Option<Arc<[u8]>>,
}

/// Private key of an identity.
pub(crate) enum Key {
    Der(PrivateKeyDer<'static>),
    Signer(Arc<dyn Signer>),
}

impl Drop for Key {
    fn drop(&mut self) {
        if let Self::Der(key) = self {
            key.zeroize();
        }
    }
}

impl Identity {
    /// Reads a PEM file with the certificate chain and one with the private key (PKCS #8, PKCS #1
    /// or SEC1). Both may be the same file. An ML-DSA key may be given as its seed, its expanded
    /// form or both (RFC 9881 §6).
    ///
    /// # Errors
    /// [`ConfigError::Read`] and [`ConfigError::Pem`] name the file.
    pub fn from_pem_files(
        chain: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Self, ConfigError> {
        let chain_pem = read(chain.as_ref())?;
        let certificates = certificates(&chain_pem).map_err(|_| no_certificate(chain.as_ref()))?;
        let mut key_pem = read(key.as_ref())?;
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
    /// [`ConfigError::Identity`] says which of the two is missing.
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

    /// Takes a chain and a key. A provider checks that they belong together.
    pub fn from_der(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Self {
        Self::of(chain, Key::Der(key))
    }

    /// Takes a certificate chain and a key that is outside this process.
    ///
    /// s2n-tls passes signers only a digest, and refuses signers that do not sign digests.
    pub fn from_signer(chain: Vec<CertificateDer<'static>>, signer: impl Signer + 'static) -> Self {
        Self::of(chain, Key::Signer(Arc::new(signer)))
    }

    fn of(chain: Vec<CertificateDer<'static>>, key: Key) -> Self {
        let key = Arc::new(key);
        Self(Arc::new(Inner {
            chain,
            key,
            ocsp: None,
        }))
    }

    /// Returns the identity with an OCSP response in DER (RFC 6960), which a server staples to its certificate for
    /// clients that ask for it (RFC 8446 §4.4.2.1). A client does not send it. Default: none.
    ///
    /// The response must be about the owner's certificate and say that it is good. Clients check its signature and its
    /// time: get a new response before it expires, and reload the configuration.
    ///
    /// # Errors
    /// [`ConfigError::Ocsp`] says what is wrong with the response.
    pub fn with_ocsp_response(self, der: impl AsRef<[u8]>) -> Result<Self, ConfigError> {
        let (response, leaf) = (der.as_ref(), self.0.chain.first());
        let leaf = leaf.map_or(&[][..], |leaf| leaf.as_ref());
        ocsp::check(response, leaf).map_err(ConfigError::Ocsp)?;
        Ok(Self(Arc::new(Inner {
            chain: self.0.chain.clone(),
            key: self.0.key.clone(),
            ocsp: Some(response.into()),
        })))
    }

    /// Does the same with a file, such as `openssl ocsp -respout FILE` writes.
    ///
    /// # Errors
    /// [`ConfigError::Read`] and [`ConfigError::Ocsp`] name the file.
    pub fn with_ocsp_file(self, path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let named = |error| match error {
            ConfigError::Ocsp(problem) => {
                ConfigError::Ocsp(format!("{}: {problem}", path.display()))
            }
            error => error,
        };
        self.with_ocsp_response(read(path)?).map_err(named)
    }

    /// Returns the certificate chain, the owner's certificate first.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.0.chain
    }

    /// Returns the owner's certificate without its intermediates, with the same key.
    #[cfg(all(unix, feature = "s2n-tls"))]
    pub(crate) fn without_intermediates(&self) -> Self {
        Self(Arc::new(Inner {
            chain: self.0.chain.iter().take(1).cloned().collect(),
            key: self.0.key.clone(),
            ocsp: self.0.ocsp.clone(),
        }))
    }

    /// Returns the stapled OCSP response.
    #[cfg(any(feature = "rustls", all(unix, feature = "s2n-tls")))]
    pub(crate) fn ocsp(&self) -> Option<&[u8]> {
        self.0.ocsp.as_deref()
    }

    pub(crate) fn key(&self) -> &Key {
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

/// Choice among the certificates of a server that match the client's server name and whose
/// signatures the client verifies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChainChoice {
    /// The certificate that was added first.
    #[default]
    First,
    /// The first one whose whole chain is post-quantum; otherwise the first one.
    PostQuantumFirst,
    /// The one with which the handshake takes the fewest round trips, the first one in case of a
    /// tie: add the post-quantum certificate first, and it is used whenever it costs no round trip.
    ///
    /// This takes into account the sizes of the chains, the group, certificate compression and the
    /// address validation of each connection.
    FewestRoundTrips,
}

/// How the intermediate certificates of a chain are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[doc(hidden)]
#[non_exhaustive]
pub enum Intermediates {
    /// With the certificate.
    #[default]
    Sent,
    /// Left out.
    LeftOut,
    /// Left out for connections that agree on one of these application protocols.
    LeftOutFor(Vec<Vec<u8>>),
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    std::fs::read(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        cause: source,
    })
}

/// Reads all certificates of a PEM text, at least one.
pub(super) fn certificates(
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, rustls_pki_types::pem::Error> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>()?;
    if certificates.is_empty() {
        return Err(rustls_pki_types::pem::Error::NoItemsFound);
    }
    Ok(certificates)
}

/// Creates the error for a file without certificates.
pub(super) fn no_certificate(path: &Path) -> ConfigError {
    ConfigError::Pem {
        path: path.to_owned(),
        wanted: "certificate",
        label: "CERTIFICATE",
    }
}
