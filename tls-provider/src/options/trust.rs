//! Trust in peers: roots, revocation lists, the application's own checks.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rustls_pki_types::CertificateRevocationListDer;
use rustls_pki_types::pem::PemObject;

use super::identity::{certificates, no_certificate, read};
use crate::{CertificateDer, ConfigError, Verifier};

/// Policy that decides which peers' certificates are accepted.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    kind: Kind,
    revocation: Vec<CertificateRevocationListDer<'static>>,
    intermediates: Arc<[CertificateDer<'static>]>,
    custom: Option<Custom>,
}

#[derive(Clone, Debug, Default)]
enum Kind {
    #[default]
    System,
    Roots(Arc<[CertificateDer<'static>]>),
    Anyone,
}

/// Built-in check by the provider.
pub(crate) enum Anchors {
    Roots(Arc<[CertificateDer<'static>]>),
    /// Neither the chain nor the name is checked; the handshake signature is.
    Anyone,
}

/// The application's check.
#[derive(Clone)]
pub(crate) struct Custom {
    /// Unique number of the verifier in this process; an address would not be unique.
    #[cfg_attr(
        not(feature = "rustls"),
        expect(dead_code, reason = "s2n-tls resumes none")
    )]
    pub(crate) id: u64,
    pub(crate) verifier: Arc<dyn Verifier>,
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier")
    }
}

impl From<Kind> for Trust {
    fn from(kind: Kind) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }
}

impl Trust {
    /// Trusts the certificate authorities of the operating system.
    ///
    /// They are read when a provider is built; `SSL_CERT_FILE` and `SSL_CERT_DIR` are honoured.
    pub fn system() -> Self {
        Kind::System.into()
    }

    /// Trusts the certificates of a PEM file and no others.
    ///
    /// # Errors
    /// [`ConfigError::Read`] and [`ConfigError::Pem`] name the file.
    pub fn roots_pem_file(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let pem = read(path.as_ref())?;
        let roots = certificates(&pem).map_err(|_| no_certificate(path.as_ref()))?;
        Ok(Self::roots_der(roots))
    }

    /// Trusts the certificates of a PEM text and no others.
    ///
    /// # Errors
    /// [`ConfigError::Roots`] if it contains no certificate.
    pub fn roots_pem(pem: &[u8]) -> Result<Self, ConfigError> {
        let roots = certificates(pem).map_err(|error| {
            ConfigError::Roots(format!(
                "no certificate in the PEM text ({error}); expected -----BEGIN CERTIFICATE-----"
            ))
        })?;
        Ok(Self::roots_der(roots))
    }

    /// Trusts these certificates and no others.
    pub fn roots_der(roots: impl IntoIterator<Item = CertificateDer<'static>>) -> Self {
        Kind::Roots(roots.into_iter().collect()).into()
    }

    /// **Dangerous.** Trusts any certificate that the peer presents, for any name.
    ///
    /// For tests and measurements only. The peer still proves that it holds the key of the
    /// certificate it presents.
    ///
    /// # Security
    /// Anybody on the path can impersonate the peer and read everything.
    pub fn dangerously_accept_any_certificate() -> Self {
        Kind::Anyone.into()
    }

    /// Replaces the built-in check of chain and name with a verifier.
    ///
    /// s2n-tls does not keep certificates that it has not checked, and refuses this option.
    ///
    /// # Security
    /// Nothing else checks the chain, the name or the validity period.
    pub fn verifier(verifier: impl Verifier + 'static) -> Self {
        Self::from(Kind::Anyone).also(verifier)
    }

    /// Adds a verifier that runs after the built-in check. It replaces an earlier one.
    #[must_use]
    pub fn also(mut self, verifier: impl Verifier + 'static) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        self.custom = Some(Custom {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            verifier: Arc::new(verifier),
        });
        self
    }

    /// Adds intermediate certificates that peers may leave out of their chains, as with
    /// [`ServerOptions::leave_out_intermediates`]. They are not trusted by themselves: a chain must
    /// still lead to a root.
    ///
    /// Verifiers and profiles see the chain completed with these certificates. s2n-tls does not
    /// support this and refuses the option.
    ///
    /// [`ServerOptions::leave_out_intermediates`]: crate::ServerOptions::leave_out_intermediates
    #[must_use]
    pub fn intermediates(
        mut self,
        certificates: impl IntoIterator<Item = CertificateDer<'static>>,
    ) -> Self {
        let known = self.intermediates.iter().cloned();
        self.intermediates = known.chain(certificates).collect();
        self
    }

    /// Adds the intermediate certificates of a PEM file, as [`intermediates`](Self::intermediates)
    /// does.
    ///
    /// # Errors
    /// [`ConfigError::Read`] and [`ConfigError::Pem`] name the file.
    pub fn intermediates_pem_file(self, path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let pem = read(path.as_ref())?;
        let found = certificates(&pem).map_err(|_| no_certificate(path.as_ref()))?;
        Ok(self.intermediates(found))
    }

    /// Adds certificate revocation lists (RFC 5280 §5), in DER.
    ///
    /// If there are any lists, every certificate of a chain except its root must be covered by a
    /// list that has not expired; a peer whose status is unknown is refused. A resumed session is
    /// not checked again: to end a server's sessions, build a new provider with the new lists, or
    /// issue no tickets. s2n-tls does not support revocation lists and refuses them.
    #[must_use]
    pub fn revocation_lists(
        mut self,
        lists: impl IntoIterator<Item = CertificateRevocationListDer<'static>>,
    ) -> Self {
        self.revocation.extend(lists);
        self
    }

    /// Adds the certificate revocation lists of a PEM file, as
    /// [`revocation_lists`](Self::revocation_lists) does.
    ///
    /// # Errors
    /// [`ConfigError::Read`] and [`ConfigError::Pem`] name the file.
    pub fn revocation_lists_pem_file(self, path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let pem = read(path.as_ref())?;
        let lists: Vec<_> = CertificateRevocationListDer::pem_slice_iter(&pem)
            .collect::<Result<_, _>>()
            .unwrap_or_default();
        if lists.is_empty() {
            return Err(ConfigError::Pem {
                path: path.as_ref().to_owned(),
                wanted: "certificate revocation list",
                label: "X509 CRL",
            });
        }
        Ok(self.revocation_lists(lists))
    }

    /// Replaces the application's check with one of this number.
    pub(crate) fn checked_by(mut self, id: u64, verifier: Arc<dyn Verifier>) -> Self {
        self.custom = Some(Custom { id, verifier });
        self
    }

    pub(crate) fn revocation(&self) -> &[CertificateRevocationListDer<'static>] {
        &self.revocation
    }

    /// Returns the intermediates that peers may leave out.
    pub(crate) fn known_intermediates(&self) -> &Arc<[CertificateDer<'static>]> {
        &self.intermediates
    }

    pub(crate) fn custom(&self) -> Option<&Custom> {
        self.custom.as_ref()
    }

    pub(crate) fn anchors(&self) -> Result<Anchors, ConfigError> {
        let roots = match &self.kind {
            Kind::Anyone if !self.revocation.is_empty() => {
                return Err(ConfigError::Roots(
                    "revocation lists need roots that signed them; give trusted roots".to_owned(),
                ));
            }
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
