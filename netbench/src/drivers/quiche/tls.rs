//! BoringSSL, configured for a cell.

use boring::pkey::{PKey, Private};
use boring::ssl::{SslContextBuilder, SslMethod, SslOptions, SslSignatureAlgorithm, SslVerifyMode};
use boring::x509::X509;
use boring::x509::store::X509StoreBuilder;
use hybriq::tls::Suite;
use hybriq::{Backend, Group};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;

use crate::Failure;
use crate::axes::{Cell, Certificate, Resumption};
use crate::drivers::{ALPN, Role, Setup, first_share};

/// Groups, and their names in BoringSSL.
const GROUPS: [(Group, &str); 4] = [
    (Group::X25519MLKEM768, "X25519MLKEM768"),
    (Group::X25519, "X25519"),
    (Group::SECP256R1, "P-256"),
    (Group::SECP384R1, "P-384"),
];

/// Signature algorithms that clients accept from a server.
const SIGNATURES: [SslSignatureAlgorithm; 4] = [
    SslSignatureAlgorithm::ECDSA_SECP256R1_SHA256,
    SslSignatureAlgorithm::ECDSA_SECP384R1_SHA384,
    SslSignatureAlgorithm::ED25519,
    SslSignatureAlgorithm::RSA_PSS_RSAE_SHA256,
];

/// Checks that quiche can play that role.
pub(super) fn check(role: Role, cell: &Cell) -> Result<(), Failure> {
    curve(cell.group)?;
    if matches!(
        cell.certificate,
        Certificate::MlDsa44 | Certificate::MlDsa65 | Certificate::MlDsa87
    ) {
        return Err("quiche's BoringSSL has no ML-DSA certificates; use a classical one".into());
    }
    if role == Role::Server && cell.provider == Backend::S2nTls {
        return Err("quiche has BoringSSL, not s2n-tls; leave out the provider".into());
    }
    if role == Role::Client && cell.hello_retry && cell.group == Group::X25519MLKEM768 {
        return Err(
            "quiche's client sends its first classical and its first post-quantum share, so that \
             there is no HelloRetryRequest for X25519MLKEM768; use a classical group"
                .into(),
        );
    }
    check_suite(cell)
}

/// Checks the suite. BoringSSL takes no list; the other end allows only the wanted one.
fn check_suite(cell: &Cell) -> Result<(), Failure> {
    let only = Suite::Aes128GcmSha256;
    if cell.driver == cell.client && cell.suite != only {
        return Err(format!("two ends with quiche agree on {only}; use it for them").into());
    }
    Ok(())
}

fn curve(group: Group) -> Result<&'static str, Failure> {
    let known = GROUPS.iter().find(|(known, _)| *known == group);
    known.map(|(_, curve)| *curve).ok_or_else(|| {
        let valid = GROUPS.map(|(group, _)| group.to_string()).join(", ");
        format!("quiche's BoringSSL has no group {group}; it has {valid}").into()
    })
}

pub(super) fn config(setup: &Setup, role: Role) -> Result<quiche::Config, Failure> {
    let cell = &setup.cell;
    let pem = &setup.certificates;
    let mut tls = SslContextBuilder::new(SslMethod::tls())?;
    tls.set_session_id_context(ALPN.as_bytes())?;
    let first = match role {
        Role::Client => first_share(cell),
        Role::Server => None,
    };
    let groups: Result<Vec<_>, _> = first.into_iter().chain([cell.group]).map(curve).collect();
    tls.set_curves_list(&groups?.join(":"))?;
    tls.set_verify_algorithm_prefs(&SIGNATURES)?;
    match role {
        Role::Server => {
            show(&mut tls, &pem.server_chain, &pem.server_key)?;
            if cell.client_auth {
                trust(&mut tls, &pem.root)?;
                tls.set_verify(SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT);
            }
            if cell.resumption == Resumption::Full {
                tls.set_options(SslOptions::NO_TICKET);
            }
        }
        Role::Client => {
            trust(&mut tls, &pem.root)?;
            tls.set_verify(SslVerifyMode::PEER);
            if cell.client_auth {
                show(&mut tls, &pem.client_chain, &pem.client_key)?;
            }
        }
    }
    let mut config = quiche::Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls)?;
    config.set_application_protos(&[ALPN.as_bytes()])?;
    if cell.resumption == Resumption::ZeroRtt {
        config.enable_early_data();
    }
    Ok(config)
}

/// Configures the certificate of this end.
fn show(tls: &mut SslContextBuilder, chain: &str, key: &str) -> Result<(), Failure> {
    let mut chain = X509::stack_from_pem(chain.as_bytes())?.into_iter();
    let leaf = chain.next().ok_or("the certificate chain is empty")?;
    tls.set_certificate(&leaf)?;
    for issuer in chain {
        tls.add_extra_chain_cert(issuer)?;
    }
    let key = private_key(key)?;
    tls.set_private_key(&*key)?;
    Ok(())
}

/// Reads a key. BoringSSL cannot read an Ed25519 key with its public key attached (RFC 5958 §2), so
/// that part is removed.
fn private_key(pem: &str) -> Result<PKey<Private>, Failure> {
    const HEADER: [u8; 16] = [
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04,
        0x20,
    ];
    let der = PrivateKeyDer::from_pem_slice(pem.as_bytes())?;
    let der = der.secret_der();
    // The content after the two lengths and the version is the same in both forms.
    Ok(match der.get(5..48) {
        Some(rest) if rest.starts_with(&HEADER[5..]) => {
            PKey::private_key_from_der(&[&HEADER[..5], rest].concat())?
        }
        _ => PKey::private_key_from_der(der)?,
    })
}

fn trust(tls: &mut SslContextBuilder, roots: &str) -> Result<(), Failure> {
    let mut store = X509StoreBuilder::new()?;
    for root in X509::stack_from_pem(roots.as_bytes())? {
        store.add_cert(&root)?;
    }
    tls.set_cert_store_builder(store);
    Ok(())
}
