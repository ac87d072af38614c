//! Configuration of rustls, for the stacks built on it.

use std::sync::Arc;

use hybriq::Group;
use hybriq::tls::Suite;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::aws_lc_rs::{self, Ticketer, cipher_suite, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedCipherSuite};

use super::{Failure, Identity, Tickets, Tls};

/// Number of sessions that a server with 0-RTT keeps; each until its ticket is used.
const SESSIONS: usize = 16_384;

/// Returns a server's configuration. `early_data` is the number of bytes of 0-RTT data that are
/// accepted; QUIC requires `u32::MAX` (RFC 9001 §4.6.1).
pub fn server(tls: &Tls<'_>, early_data: u32) -> Result<ServerConfig, Failure> {
    let provider = Arc::new(provider(tls)?);
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])?;
    let builder = match tls.roots {
        Some(pem) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots(pem)?, provider);
            builder.with_client_cert_verifier(verifier.build()?)
        }
        None => builder.with_no_client_auth(),
    };
    let (chain, key) = identity(tls.identity.ok_or("a server needs a certificate")?)?;
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![tls.alpn.into()];
    match tls.tickets {
        Tickets::Off => config.send_tls13_tickets = 0,
        Tickets::Resume => config.ticketer = Ticketer::new()?,
        Tickets::EarlyData => {
            config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
            config.max_early_data_size = early_data;
        }
    }
    Ok(config)
}

/// Returns a client's configuration, and its verifier of servers. It keeps rustls's store of
/// tickets, even with [`Tickets::Off`].
pub fn client(tls: &Tls<'_>) -> Result<(ClientConfig, Arc<WebPkiServerVerifier>), Failure> {
    let provider = Arc::new(provider(tls)?);
    let roots = roots(tls.roots.ok_or("a client needs certificates to trust")?)?;
    let verifier =
        WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build()?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_webpki_verifier(Arc::clone(&verifier));
    let mut config = match tls.identity {
        Some(own) => {
            let (chain, key) = identity(own)?;
            builder.with_client_auth_cert(chain, key)?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![tls.alpn.into()];
    config.enable_early_data = tls.tickets == Tickets::EarlyData;
    Ok((config, verifier))
}

fn provider(tls: &Tls<'_>) -> Result<CryptoProvider, Failure> {
    let groups: Result<Vec<_>, _> = tls.groups.iter().copied().map(group).collect();
    let mut provider = CryptoProvider {
        kx_groups: groups?,
        ..aws_lc_rs::default_provider()
    };
    if let Some(wanted) = tls.suite {
        provider.cipher_suites = vec![suite(wanted)];
    }
    Ok(provider)
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

/// Returns rustls's implementation of a group, or a failure that names those it has.
pub fn group(wanted: Group) -> Result<&'static dyn SupportedKxGroup, Failure> {
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
    for certificate in certificates(pem)? {
        roots.add(certificate)?;
    }
    Ok(Arc::new(roots))
}

type Chain = Vec<CertificateDer<'static>>;

fn identity(own: Identity<'_>) -> Result<(Chain, PrivateKeyDer<'static>), Failure> {
    let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes())?;
    Ok((certificates(own.chain)?, key))
}

fn certificates(pem: &str) -> Result<Chain, Failure> {
    let chain: Result<_, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    Ok(chain?)
}
