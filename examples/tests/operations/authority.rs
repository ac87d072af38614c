//! Certificates of a service, signed by an authority that its clients trust.

use std::fs;
use std::path::PathBuf;

use hybriq::Trust;
use hybriq::tls::CertificateDer;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// An authority, and the files that a server reads its certificate and key from.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    /// Makes an authority, and the first certificate. `name` separates the files of tests.
    pub(crate) fn new(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let authority = Self {
            issuer,
            cert: folder.join(format!("{name}-cert.pem")),
            key: folder.join(format!("{name}-key.pem")),
        };
        // A pipe, perhaps, of a test that did not end.
        let _ = fs::remove_file(&authority.cert);
        authority.renew();
        authority
    }

    /// Writes a new certificate and its key. Returns the certificate.
    pub(crate) fn renew(&self) -> CertificateDer<'static> {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(&self.cert, certificate.pem()).unwrap();
        fs::write(&self.key, key.serialize_pem()).unwrap();
        certificate.der().clone()
    }

    /// Writes a key that does not belong to the certificate.
    pub(crate) fn spoil(&self) {
        fs::write(&self.key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    }

    /// Returns what clients trust.
    pub(crate) fn trust(&self) -> Trust {
        Trust::roots_der([self.issuer.der().clone()])
    }
}
