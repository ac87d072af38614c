//! BoringSSL's configuration.

use boring::pkey::{PKey, Private};
use boring::ssl::{SslContextBuilder, SslMethod, SslOptions, SslSignatureAlgorithm, SslVerifyMode};
use boring::x509::X509;
use boring::x509::store::X509StoreBuilder;
use hybriq::Group;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;

use crate::stacks::{Failure, Identity, Tickets, Tls};

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

/// Returns BoringSSL's name of a group, or a failure that names those it has.
pub fn curve(group: Group) -> Result<&'static str, Failure> {
    let known = GROUPS.iter().find(|(known, _)| *known == group);
    known.map(|(_, curve)| *curve).ok_or_else(|| {
        let valid = GROUPS.map(|(group, _)| group.to_string()).join(", ");
        format!("quiche's BoringSSL has no group {group}; it has {valid}").into()
    })
}

pub(super) fn server(tls: &Tls<'_>) -> Result<SslContextBuilder, Failure> {
    let mut config = either(tls)?;
    let own = tls.identity.ok_or("a server needs a certificate")?;
    show(&mut config, own)?;
    if let Some(roots) = tls.roots {
        trust(&mut config, roots)?;
        config.set_verify(SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT);
    }
    if tls.tickets == Tickets::Off {
        config.set_options(SslOptions::NO_TICKET);
    }
    Ok(config)
}

pub(super) fn client(tls: &Tls<'_>) -> Result<SslContextBuilder, Failure> {
    let mut config = either(tls)?;
    trust(
        &mut config,
        tls.roots.ok_or("a client needs certificates to trust")?,
    )?;
    config.set_verify(SslVerifyMode::PEER);
    if let Some(own) = tls.identity {
        show(&mut config, own)?;
    }
    Ok(config)
}

/// Returns the part that both roles have. BoringSSL takes no list of suites.
fn either(tls: &Tls<'_>) -> Result<SslContextBuilder, Failure> {
    let mut config = SslContextBuilder::new(SslMethod::tls())?;
    config.set_session_id_context(tls.alpn.as_bytes())?;
    let groups: Result<Vec<_>, _> = tls.groups.iter().copied().map(curve).collect();
    config.set_curves_list(&groups?.join(":"))?;
    config.set_verify_algorithm_prefs(&SIGNATURES)?;
    Ok(config)
}

/// Configures the certificate of this end.
fn show(tls: &mut SslContextBuilder, own: Identity<'_>) -> Result<(), Failure> {
    let mut chain = X509::stack_from_pem(own.chain.as_bytes())?.into_iter();
    let leaf = chain.next().ok_or("the certificate chain is empty")?;
    tls.set_certificate(&leaf)?;
    for issuer in chain {
        tls.add_extra_chain_cert(issuer)?;
    }
    let key = private_key(own.key)?;
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
