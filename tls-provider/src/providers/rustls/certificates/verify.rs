//! Verification of certificates as required by [`Trust`].

use std::fmt;
use std::sync::Arc;

use ::rustls::client::WebPkiServerVerifier;
use ::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use ::rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature};
use ::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use ::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use ::rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError,
    PeerIncompatible, RootCertStore, SignatureScheme,
};
use rustls_pki_types::{ServerName, UnixTime};

use crate::options::{Anchors, Custom};
use crate::providers::rustls::locals::capture;
use crate::{
    Alert, CertificateDer, ClientAuth, ConfigError, PeerChain, Side, Trust, policy::certificate,
};

/// Returns a verifier of servers.
pub(in crate::providers::rustls) fn of_servers(
    trust: &Trust,
    crypto: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, ConfigError> {
    let inner: Arc<dyn ServerCertVerifier> = match trust.anchors()? {
        #[cfg(feature = "platform-verifier")]
        Anchors::Platform => {
            let verifier = rustls_platform_verifier::Verifier::new(crypto.clone());
            Arc::new(verifier.map_err(|error| ConfigError::Roots(error.to_string()))?)
        }
        Anchors::Anyone => Arc::new(AnyServer(crypto.signature_verification_algorithms)),
        Anchors::Roots(roots) => {
            let roots = Arc::new(store(&roots)?);
            let mut builder = WebPkiServerVerifier::builder_with_provider(roots, crypto.clone());
            if !trust.revocation().is_empty() {
                builder = builder
                    .with_crls(trust.revocation().iter().cloned())
                    .enforce_revocation_expiration();
            }
            builder.build().map_err(|error| unusable_roots(&error))?
        }
    };
    let custom = trust.custom().cloned();
    let known = trust.known_intermediates().clone();
    Ok(Arc::new(OfServers {
        inner,
        known,
        custom,
    }))
}

/// Returns a verifier of clients.
pub(in crate::providers::rustls) fn of_clients(
    auth: &ClientAuth,
    crypto: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, ConfigError> {
    let (trust, mandatory) = match auth {
        ClientAuth::None => return Ok(WebPkiClientVerifier::no_client_auth()),
        ClientAuth::Optional(trust) => (trust, false),
        ClientAuth::Required(trust) => (trust, true),
    };
    let inner: Arc<dyn ClientCertVerifier> = match trust.anchors()? {
        #[cfg(feature = "platform-verifier")]
        Anchors::Platform => {
            return Err(ConfigError::Roots(
                "the platform judges only servers; give the roots of the clients".to_owned(),
            ));
        }
        Anchors::Anyone => Arc::new(AnyClient {
            algorithms: crypto.signature_verification_algorithms,
            mandatory,
        }),
        Anchors::Roots(roots) => {
            let roots = Arc::new(store(&roots)?);
            let mut builder = WebPkiClientVerifier::builder_with_provider(roots, crypto.clone());
            if !mandatory {
                builder = builder.allow_unauthenticated();
            }
            if !trust.revocation().is_empty() {
                builder = builder
                    .with_crls(trust.revocation().iter().cloned())
                    .enforce_revocation_expiration();
            }
            builder.build().map_err(|error| unusable_roots(&error))?
        }
    };
    let known = trust.known_intermediates().clone();
    let custom = trust.custom().cloned();
    Ok(Arc::new(OfClients {
        inner,
        known,
        custom,
    }))
}

/// Reason to refuse a chain whose signature cannot be verified, whoever made it.
const UNKNOWN_SIGNATURE: &str = "a certificate of the peer has a signature of an algorithm that rustls \
    does not verify; have it reissued with ECDSA, Ed25519, ML-DSA, or RSA from SHA-256 on";

/// Returns the error for a chain that was not accepted. A root that matches only by name does not
/// count as known: its key signed nothing in the chain.
fn of_path(error: Error) -> Error {
    let Error::InvalidCertificate(why) = &error else {
        return error;
    };
    match why {
        CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            CertificateError::UnknownIssuer.into()
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. } => {
            let error = crate::Error::told(Alert::UNSUPPORTED_CERTIFICATE, UNKNOWN_SIGNATURE);
            CertificateError::Other(OtherError(Arc::new(error))).into()
        }
        _ => error,
    }
}

/// Asks the application's verifier. Its error travels through rustls to the session.
fn ask(custom: &Custom, peer: &PeerChain<'_>) -> Result<(), Error> {
    custom.verifier.verify(peer).map_err(|error| {
        Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(error))))
    })
}

fn whole_chain<'a>(
    end_entity: &'a CertificateDer<'_>,
    intermediates: &'a [CertificateDer<'_>],
) -> Vec<CertificateDer<'a>> {
    std::iter::once(end_entity)
        .chain(intermediates)
        .map(|certificate| CertificateDer::from(&**certificate))
        .collect()
}

/// Maximum number of certificates added to a chain, as many as rustls follows.
const MAX_ADDED: usize = 8;

/// Returns the intermediates of a chain together with known ones that the peer left out, if there
/// are any.
fn completed<'a>(
    end_entity: &'a CertificateDer<'_>,
    intermediates: &'a [CertificateDer<'_>],
    known: &'a [CertificateDer<'static>],
) -> Option<Vec<CertificateDer<'a>>> {
    if known.is_empty() {
        return None;
    }
    let mut chain = whole_chain(end_entity, intermediates);
    let (sent, mut at) = (chain.len(), chain.len() - 1);
    // First those that certify the peer's last certificate, then those that certify them.
    while let Some(last) = chain.get(at).cloned() {
        let issuer = certificate::names(&last).map(|(issuer, _)| issuer);
        for candidate in known {
            let subject = certificate::names(candidate).map(|(_, subject)| subject);
            let adds = subject.is_some() && subject == issuer && !chain.contains(candidate);
            if adds && chain.len() < sent + MAX_ADDED {
                chain.push(CertificateDer::from(&**candidate));
            }
        }
        at += 1;
    }
    chain.remove(0);
    (chain.len() >= sent).then_some(chain)
}

/// Describes roots or revocation lists that rustls refuses.
fn unusable_roots(error: &VerifierBuilderError) -> ConfigError {
    ConfigError::Roots(match error {
        VerifierBuilderError::InvalidCrl(why) => {
            format!("a revocation list cannot be read ({why:?}); give lists in DER or PEM")
        }
        error => format!("{error}; give trusted roots"),
    })
}

/// Reads the roots. System stores contain a few certificates that no library can read, so only a
/// store without any readable one is an error.
fn store(roots: &[CertificateDer<'static>]) -> Result<RootCertStore, ConfigError> {
    let mut store = RootCertStore::empty();
    let (added, ignored) = store.add_parsable_certificates(roots.iter().cloned());
    if added == 0 {
        return Err(ConfigError::Roots(format!(
            "none of {ignored} certificates can be read; give X.509 certificates"
        )));
    }
    Ok(store)
}

fn no_tls12<T>() -> Result<T, Error> {
    Err(PeerIncompatible::Tls12NotOffered.into())
}

/// Verifies servers, and notes the signature scheme of each.
struct OfServers {
    inner: Arc<dyn ServerCertVerifier>,
    /// Intermediates that servers may leave out.
    known: Arc<[CertificateDer<'static>]>,
    custom: Option<Custom>,
}

impl fmt::Debug for OfServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfServers").finish_non_exhaustive()
    }
}

impl ServerCertVerifier for OfServers {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let completed = completed(end_entity, intermediates, &self.known);
        let intermediates = completed.as_deref().unwrap_or(intermediates);
        let verified = self.inner.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        let verified = verified.map_err(of_path)?;
        if let Some(custom) = &self.custom {
            let name = server_name.to_str();
            let peer = PeerChain {
                owner: Side::Server,
                certificates: &whole_chain(end_entity, intermediates),
                server_name: Some(&name),
                ocsp_response,
            };
            ask(custom, &peer)?;
        }
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let valid = self.inner.verify_tls13_signature(message, cert, dss)?;
        capture::note_scheme(Side::Server, dss.scheme);
        Ok(valid)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Verifies clients by the built-in check and then by the application's, and notes the signature
/// scheme of each.
struct OfClients {
    inner: Arc<dyn ClientCertVerifier>,
    /// Intermediates that clients may leave out.
    known: Arc<[CertificateDer<'static>]>,
    custom: Option<Custom>,
}

impl fmt::Debug for OfClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfClients").finish_non_exhaustive()
    }
}

impl ClientCertVerifier for OfClients {
    fn client_auth_mandatory(&self) -> bool {
        self.inner.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let completed = completed(end_entity, intermediates, &self.known);
        let intermediates = completed.as_deref().unwrap_or(intermediates);
        let verified = self
            .inner
            .verify_client_cert(end_entity, intermediates, now)
            .map_err(of_path)?;
        if let Some(custom) = &self.custom {
            let peer = PeerChain {
                owner: Side::Client,
                certificates: &whole_chain(end_entity, intermediates),
                server_name: None,
                ocsp_response: &[],
            };
            ask(custom, &peer)?;
        }
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let valid = self.inner.verify_tls13_signature(message, cert, dss)?;
        capture::note_scheme(Side::Client, dss.scheme);
        Ok(valid)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Accepts any certificate from a server that proves it holds the key.
#[derive(Debug)]
struct AnyServer(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// Accepts any certificate from a client that proves it holds the key.
#[derive(Debug)]
struct AnyClient {
    algorithms: WebPkiSupportedAlgorithms,
    mandatory: bool,
}

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        self.mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
