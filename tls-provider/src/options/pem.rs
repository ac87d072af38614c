//! Reading of PEM files.

use std::path::Path;

use rustls_pki_types::pem::PemObject;

use crate::{CertificateDer, ConfigError};

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
