use std::path::Path;
use std::sync::Arc;

use super::identity::{certificates, no_certificate};
use crate::{CertificateDer, ConfigError};

/// Who is believed about a peer's identity.
#[derive(Clone, Debug, Default)]
pub struct Trust(Kind);

#[derive(Clone, Debug, Default)]
enum Kind {
    #[default]
    System,
    Roots(Arc<[CertificateDer<'static>]>),
    Anyone,
}

/// What a provider builds its verifier from.
pub(crate) enum Anchors {
    Roots(Arc<[CertificateDer<'static>]>),
    /// The chain and the name are not checked, the handshake signature is.
    Anyone,
}

impl Trust {
    /// The certificate authorities that the operating system trusts. Read when a provider is
    /// built; `SSL_CERT_FILE` and `SSL_CERT_DIR` are honoured.
    pub fn system() -> Self {
        Self(Kind::System)
    }

    /// The certificates of a PEM file and no others.
    ///
    /// # Errors
    /// [`ConfigError::Read`] and [`ConfigError::Pem`] name the file.
    pub fn roots_pem_file(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let pem = read(path.as_ref())?;
        let roots = certificates(&pem).map_err(|_| no_certificate(path.as_ref()))?;
        Ok(Self::roots_der(roots))
    }

    /// The certificates of a PEM text and no others.
    ///
    /// # Errors
    /// [`ConfigError::Roots`] where it holds none.
    pub fn roots_pem(pem: &[u8]) -> Result<Self, ConfigError> {
        let roots = certificates(pem).map_err(|error| {
            ConfigError::Roots(format!(
                "no certificate in the PEM text ({error}); expected -----BEGIN CERTIFICATE-----"
            ))
        })?;
        Ok(Self::roots_der(roots))
    }

    /// These certificates and no others.
    pub fn roots_der(roots: impl IntoIterator<Item = CertificateDer<'static>>) -> Self {
        Self(Kind::Roots(roots.into_iter().collect()))
    }

    /// **Dangerous.** Believes whatever certificate the peer shows, for whatever name.
    ///
    /// For tests and measurements only. The peer still proves that it holds the key of the
    /// certificate it shows.
    ///
    /// # Security
    /// Anybody on the path can play the peer and read everything.
    pub fn dangerously_accept_any_certificate() -> Self {
        Self(Kind::Anyone)
    }

    pub(crate) fn anchors(&self) -> Result<Anchors, ConfigError> {
        let roots = match &self.0 {
            Kind::Anyone => return Ok(Anchors::Anyone),
            Kind::Roots(roots) => roots.clone(),
            Kind::System => system_roots()?,
        };
        if roots.is_empty() {
            return Err(ConfigError::Roots(
                "the list is empty; give at least one".to_owned(),
            ));
        }
        Ok(Anchors::Roots(roots))
    }
}

fn system_roots() -> Result<Arc<[CertificateDer<'static>]>, ConfigError> {
    let found = rustls_native_certs::load_native_certs();
    if !found.certs.is_empty() {
        return Ok(found.certs.into());
    }
    let reason = found
        .errors
        .first()
        .map_or_else(String::new, |error| format!(" ({error})"));
    Err(ConfigError::Roots(format!(
        "the system has none{reason}; install ca-certificates, set SSL_CERT_FILE, or give roots"
    )))
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    std::fs::read(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })
}
