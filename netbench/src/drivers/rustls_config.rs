//! Configuration of rustls for the stacks built on it, restricted to what the cell says.

use std::sync::Arc;

use rustls::client::Resumption as Sessions;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::aws_lc_rs::{self, Ticketer, cipher_suite, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{AlertDescription, ClientConfig, RootCertStore, ServerConfig, SupportedCipherSuite};

use super::rustls_watch::Watch;
use super::{ALPN, Role, Setup, failures};
use crate::Failure;
use crate::axes::{Cell, Resumption};
use crate::outcome::{Failed, Kind};
use hybriq::tls::Suite;
use hybriq::{Backend, Group};

/// Number of sessions that a server with 0-RTT keeps; each until its ticket is used.
const SESSIONS: usize = 16_384;

/// Refuses what rustls cannot do in any stack.
pub(crate) fn check(role: Role, cell: &Cell) -> Result<(), Failure> {
    group(cell.group)?;
    let uses_up_tickets = role == Role::Client
        && cell.provider == Backend::S2nTls
        && cell.resumption != Resumption::Full;
    if uses_up_tickets {
        return Err(
            "s2n-tls issues no ticket on a resumed connection, and clients with rustls use each \
             ticket once; use provider rustls"
                .into(),
        );
    }
    Ok(())
}

/// Returns a server's configuration. `early_data` is the number of bytes of 0-RTT data that are
/// accepted; QUIC requires `u32::MAX` (RFC 9001 §4.6.1).
pub(crate) fn server(setup: &Setup, early_data: u32) -> Result<ServerConfig, Failure> {
    let (cell, pem) = (&setup.cell, &setup.certificates);
    let provider = Arc::new(provider(vec![group(cell.group)?], cell.suite));
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])?;
    let builder = if cell.client_auth {
        let verifier =
            WebPkiClientVerifier::builder_with_provider(roots(&pem.root)?, provider).build()?;
        builder.with_client_cert_verifier(verifier)
    } else {
        builder.with_no_client_auth()
    };
    let mut config = builder.with_single_cert(chain(&pem.server_chain)?, key(&pem.server_key)?)?;
    config.alpn_protocols = vec![ALPN.into()];
    match cell.resumption {
        Resumption::Full => config.send_tls13_tickets = 0,
        Resumption::Psk => config.ticketer = Ticketer::new()?,
        Resumption::ZeroRtt => {
            config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
            config.max_early_data_size = early_data;
        }
    }
    Ok(config)
}

/// Returns a client's configuration, and the watch that observes its handshakes.
pub(crate) fn client(setup: &Setup) -> Result<(ClientConfig, Arc<Watch>), Failure> {
    let (cell, pem) = (&setup.cell, &setup.certificates);
    let provider = Arc::new(provider(offer(cell)?, cell.suite));
    let verifier =
        WebPkiServerVerifier::builder_with_provider(roots(&pem.root)?, Arc::clone(&provider))
            .build()?;
    let watch = Arc::new(Watch::new(verifier, cell));
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(&watch) as _);
    let mut config = if cell.client_auth {
        builder.with_client_auth_cert(chain(&pem.client_chain)?, key(&pem.client_key)?)?
    } else {
        builder.with_no_client_auth()
    };
    config.alpn_protocols = vec![ALPN.into()];
    config.resumption = Sessions::store(Arc::clone(&watch) as _);
    config.enable_early_data = cell.resumption == Resumption::ZeroRtt;
    Ok((config, watch))
}

fn provider(kx_groups: Vec<&'static dyn SupportedKxGroup>, wanted: Suite) -> CryptoProvider {
    CryptoProvider {
        kx_groups,
        cipher_suites: vec![suite(wanted)],
        ..aws_lc_rs::default_provider()
    }
}

/// Returns the groups that a client offers; it sends the share of the first.
fn offer(cell: &Cell) -> Result<Vec<&'static dyn SupportedKxGroup>, Failure> {
    let offered = super::first_share(cell).into_iter().chain([cell.group]);
    offered.map(group).collect()
}

const GROUPS: [(Group, &dyn SupportedKxGroup); 7] = [
    (Group::X25519MLKEM768, kx_group::X25519MLKEM768),
    (Group::SECP256R1MLKEM768, kx_group::SECP256R1MLKEM768),
    (Group::MLKEM768, kx_group::MLKEM768),
    (Group::MLKEM1024, kx_group::MLKEM1024),
    (Group::X25519, kx_group::X25519),
    (Group::SECP256R1, kx_group::SECP256R1),
    (Group::SECP384R1, kx_group::SECP384R1),
];

fn group(wanted: Group) -> Result<&'static dyn SupportedKxGroup, Failure> {
    let known = GROUPS.into_iter().find(|(known, _)| *known == wanted);
    known.map(|(_, group)| group).ok_or_else(|| {
        let valid = GROUPS.map(|(group, _)| group.to_string()).join(", ");
        format!("rustls has no group {wanted}; it has {valid}").into()
    })
}

fn suite(suite: Suite) -> SupportedCipherSuite {
    match suite {
        Suite::Aes128GcmSha256 => cipher_suite::TLS13_AES_128_GCM_SHA256,
        Suite::Aes256GcmSha384 => cipher_suite::TLS13_AES_256_GCM_SHA384,
        Suite::ChaCha20Poly1305Sha256 => cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    }
}

fn roots(pem: &str) -> Result<Arc<RootCertStore>, Failure> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(pem)? {
        roots.add(certificate)?;
    }
    Ok(Arc::new(roots))
}

fn chain(pem: &str) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let chain: Result<_, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    Ok(chain?)
}

fn key(pem: &str) -> Result<PrivateKeyDer<'static>, Failure> {
    Ok(PrivateKeyDer::from_pem_slice(pem.as_bytes())?)
}

/// Returns the failure of a handshake or of a session over TCP: the alert that was sent or
/// received.
pub(crate) fn failed(error: &rustls::Error) -> Failed {
    let alert = match error {
        rustls::Error::AlertReceived(alert) => *alert,
        rustls::Error::InvalidCertificate(reason) => reason.clone().into(),
        rustls::Error::NoApplicationProtocol => AlertDescription::NoApplicationProtocol,
        rustls::Error::PeerIncompatible(_) => AlertDescription::HandshakeFailure,
        rustls::Error::PeerMisbehaved(_) => AlertDescription::IllegalParameter,
        rustls::Error::NoCertificatesPresented => AlertDescription::CertificateRequired,
        rustls::Error::InvalidMessage(reason) => (*reason).into(),
        error => return Failed::new(Kind::Other, error),
    };
    failures::alert(alert.into(), error)
}
