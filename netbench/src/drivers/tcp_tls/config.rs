//! rustls as a cell wants it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::{
    ClientSessionStore, Resumption as Resuming, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, ALL_KX_GROUPS};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, NamedGroup, RootCertStore, ServerConfig};

use crate::Failure;
use crate::axes::{Cell, Resumption};
use crate::drivers::{ALPN, Setup};

/// Early data of one connection.
const EARLY_DATA: u32 = 64 * 1024;
/// Tickets a client keeps.
const TICKETS: usize = 64;

pub(super) fn server(setup: &Setup) -> Result<Arc<ServerConfig>, Failure> {
    let (cell, pem) = (&setup.cell, &setup.certificates);
    let provider = provider(cell, &[&cell.group])?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])?;
    let builder = if cell.client_auth {
        let roots = Arc::new(roots(&pem.root)?);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build()?;
        builder.with_client_cert_verifier(verifier)
    } else {
        builder.with_no_client_auth()
    };
    let key = PrivateKeyDer::from_pem_slice(pem.server_key.as_bytes())?;
    let mut config = builder.with_single_cert(chain(&pem.server_chain)?, key)?;
    config.alpn_protocols = vec![ALPN.into()];
    match cell.resumption {
        Resumption::Full => config.send_tls13_tickets = 0,
        Resumption::Psk => {}
        Resumption::ZeroRtt => {
            config.max_early_data_size = EARLY_DATA;
            config.send_half_rtt_data = true;
        }
    }
    Ok(Arc::new(config))
}

pub(super) fn client(setup: &Setup) -> Result<(Arc<ClientConfig>, Tickets), Failure> {
    let (cell, pem) = (&setup.cell, &setup.certificates);
    let first = match cell.group.as_str() {
        "X25519" => "secp256r1",
        _ => "X25519",
    };
    let groups = [first, &cell.group];
    let groups = &groups[usize::from(!cell.hello_retry)..];
    let builder = ClientConfig::builder_with_provider(provider(cell, groups)?)
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots(&pem.root)?);
    let mut config = if cell.client_auth {
        let key = PrivateKeyDer::from_pem_slice(pem.client_key.as_bytes())?;
        builder.with_client_auth_cert(chain(&pem.client_chain)?, key)?
    } else {
        builder.with_no_client_auth()
    };
    config.alpn_protocols = vec![ALPN.into()];
    config.enable_early_data = cell.resumption == Resumption::ZeroRtt;
    let tickets = Tickets::default();
    config.resumption = match cell.resumption {
        Resumption::Full => Resuming::disabled(),
        _ => Resuming::store(Arc::new(tickets.clone())),
    };
    Ok((Arc::new(config), tickets))
}

/// Whether rustls has what the cell asks for.
pub(super) fn check(cell: &Cell) -> Result<(), Failure> {
    provider(cell, &[&cell.group]).map(drop)
}

fn provider(cell: &Cell, groups: &[&str]) -> Result<Arc<CryptoProvider>, Failure> {
    let all = aws_lc_rs::default_provider();
    let kx_groups = groups.iter().map(|name| {
        let named = |group: NamedGroup| hybriq::Group(group.into()).to_string();
        let mut known = ALL_KX_GROUPS.iter();
        let group = known.find(|group| named(group.name()) == **name);
        group
            .copied()
            .ok_or_else(|| format!("rustls has no {name}"))
    });
    let kx_groups = kx_groups.collect::<Result<_, _>>()?;
    let named = |suite: &rustls::SupportedCipherSuite| {
        let name = suite.suite().as_str().unwrap_or_default();
        name.replace("TLS13_", "TLS_") == cell.suite
    };
    let cipher_suites = all.cipher_suites.iter().copied().filter(named).collect();
    Ok(Arc::new(CryptoProvider {
        cipher_suites,
        kx_groups,
        ..all
    }))
}

fn roots(pem: &str) -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(pem)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

fn chain(pem: &str) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let chain: Result<_, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    Ok(chain?)
}

/// What a client resumes with. Which group a server asked for is forgotten, so that there is a
/// HelloRetryRequest each time.
#[derive(Clone, Default)]
pub(super) struct Tickets(Arc<Mutex<VecDeque<Tls13ClientSessionValue>>>);

impl Tickets {
    pub(super) fn any(&self) -> bool {
        !self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").finish_non_exhaustive()
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tickets.len() == TICKETS {
            tickets.pop_front();
        }
        tickets.push_back(ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_back()
    }
}
