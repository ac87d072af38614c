use std::sync::Arc;

use ::rustls::client::WebPkiServerVerifier;
use ::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use ::rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature};
use ::rustls::server::WebPkiClientVerifier;
use ::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use ::rustls::{
    DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible, RootCertStore,
    SignatureScheme,
};
use rustls_pki_types::{ServerName, UnixTime};

use super::capture;
use crate::options::Anchors;
use crate::{CertificateDer, ClientAuth, ConfigError, Trust};

/// Verifies servers as `trust` says.
pub(super) fn of_servers(
    trust: &Trust,
    crypto: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, ConfigError> {
    let inner: Arc<dyn ServerCertVerifier> = match trust.anchors()? {
        Anchors::Anyone => Arc::new(AnyServer(crypto.signature_verification_algorithms)),
        Anchors::Roots(roots) => {
            let roots = Arc::new(store(&roots)?);
            WebPkiServerVerifier::builder_with_provider(roots, crypto.clone())
                .build()
                .map_err(|error| ConfigError::Roots(error.to_string()))?
        }
    };
    Ok(Arc::new(Noted(inner)))
}

/// Verifies clients as `auth` says.
pub(super) fn of_clients(
    auth: &ClientAuth,
    crypto: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, ConfigError> {
    let (trust, mandatory) = match auth {
        ClientAuth::None => return Ok(WebPkiClientVerifier::no_client_auth()),
        ClientAuth::Optional(trust) => (trust, false),
        ClientAuth::Required(trust) => (trust, true),
    };
    let roots = match trust.anchors()? {
        Anchors::Roots(roots) => Arc::new(store(&roots)?),
        Anchors::Anyone => {
            let algorithms = crypto.signature_verification_algorithms;
            return Ok(Arc::new(AnyClient {
                algorithms,
                mandatory,
            }));
        }
    };
    let mut builder = WebPkiClientVerifier::builder_with_provider(roots, crypto.clone());
    if !mandatory {
        builder = builder.allow_unauthenticated();
    }
    builder
        .build()
        .map_err(|error| ConfigError::Roots(error.to_string()))
}

/// System stores hold a few certificates that no library reads, so only a store without any
/// readable one is an error.
fn store(roots: &[CertificateDer<'static>]) -> Result<RootCertStore, ConfigError> {
    let mut store = RootCertStore::empty();
    let (added, ignored) = store.add_parsable_certificates(roots.iter().cloned());
    if added == 0 {
        return Err(ConfigError::Roots(format!(
            "none of {ignored} certificates can be read"
        )));
    }
    Ok(store)
}

fn no_tls12<T>() -> Result<T, Error> {
    Err(PeerIncompatible::Tls12NotOffered.into())
}

/// Notes the signature scheme of the server on the way to the real verifier.
#[derive(Debug)]
struct Noted(Arc<dyn ServerCertVerifier>);

impl ServerCertVerifier for Noted {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.0
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
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
        let valid = self.0.verify_tls13_signature(message, cert, dss)?;
        capture::note_scheme(dss.scheme);
        Ok(valid)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Believes any certificate, but not that the peer holds its key: that it must prove.
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

/// The same for clients.
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
