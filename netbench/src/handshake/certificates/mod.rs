//! Self-made certificates of a run: a root, intermediates, and leaves.

pub(crate) mod pki;
pub(crate) mod sign;

use std::net::{Ipv4Addr, Ipv6Addr};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, RsaKeySize, SanType,
};

use crate::drivers::Certificates;
use crate::scenario::axes::{Cell, Certificate};
use crate::system::failure::Failure;

/// Server name that clients ask for and verify if the scenario names none.
pub(crate) const SERVER_NAME: &str = "localhost";

/// Parent of the names for kinds of connections and for tickets. A wildcard directly below
/// `localhost` would stand for a top-level domain, which clients refuse.
pub(crate) const NAMES: &str = "netbench.localhost";

/// Longest chain that every stack verifies.
const LONGEST_CHAIN: u8 = 8;

/// Certificates that a run needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wanted {
    /// Kind of the key at every level.
    pub(crate) kind: Certificate,
    /// Number of certificates that an end sends. The root that the other end trusts signs the last.
    pub(crate) chain: u8,
    /// True if clients send certificates too.
    pub(crate) client_auth: bool,
}

impl Wanted {
    /// Returns the certificates that both ends of a cell need.
    pub(crate) const fn of(cell: &Cell) -> Self {
        Self {
            kind: cell.certificate,
            chain: cell.chain,
            client_auth: cell.client_auth,
        }
    }
}

/// Makes the certificates that a server sends and clients trust.
pub(crate) fn of_server(kind: Certificate, chain: u8) -> Result<Certificates, Failure> {
    make(Wanted {
        kind,
        chain,
        client_auth: false,
    })
}

/// Makes the certificates that both ends send and trust.
pub(crate) fn make(wanted: Wanted) -> Result<Certificates, Failure> {
    let Wanted {
        kind,
        chain,
        client_auth,
    } = wanted;
    if !(1..=LONGEST_CHAIN).contains(&chain) {
        return Err(format!(
            "a chain of {chain} certificates cannot be had; use 1 to {LONGEST_CHAIN}"
        )
        .into());
    }
    let key_of_root = key(kind)?;
    let name = format!("netbench root {}", mark(&key_of_root));
    let root = CertifiedIssuer::self_signed(authority(&name), key_of_root)?;
    let trusted = root.pem();
    let mut sent = Vec::new();
    let mut issuer = root;
    for level in 1..chain {
        let name = format!("netbench intermediate {level}");
        issuer = CertifiedIssuer::signed_by(authority(&name), key(kind)?, &issuer)?;
        sent.insert(0, issuer.pem());
    }
    let intermediates = sent.concat();

    let leaf = |purpose| -> Result<(String, String), Failure> {
        let key = key(kind)?;
        let certificate = leaf(purpose)?.signed_by(&key, &issuer)?;
        Ok((certificate.pem() + &intermediates, key.serialize_pem()))
    };
    let (server_chain, server_key) = leaf(ExtendedKeyUsagePurpose::ServerAuth)?;
    let (client_chain, client_key) = if client_auth {
        leaf(ExtendedKeyUsagePurpose::ClientAuth)?
    } else {
        Default::default()
    };
    Ok(Certificates {
        root: trusted,
        server_chain,
        server_key,
        client_chain,
        client_key,
    })
}

/// Returns a text that differs between keys, because two roots with the same name would be
/// confused.
pub(crate) fn mark(key: &KeyPair) -> String {
    let public = key.public_key_raw();
    // The ends are the same in all keys of a kind.
    let middle = public.iter().skip(public.len() / 2).take(8);
    middle.fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn leaf(purpose: ExtendedKeyUsagePurpose) -> Result<CertificateParams, Failure> {
    let mut params = CertificateParams::new([SERVER_NAME.to_owned(), format!("*.{NAMES}")])?;
    params.subject_alt_names.extend([
        SanType::IpAddress(Ipv4Addr::LOCALHOST.into()),
        SanType::IpAddress(Ipv6Addr::LOCALHOST.into()),
    ]);
    params
        .distinguished_name
        .push(DnType::CommonName, SERVER_NAME);
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    Ok(params)
}

pub(crate) fn key(kind: Certificate) -> Result<KeyPair, Failure> {
    Ok(match kind {
        Certificate::Rsa2048 => {
            KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048)?
        }
        Certificate::EcdsaP256 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?,
        Certificate::EcdsaP384 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384)?,
        Certificate::Ed25519 => KeyPair::generate_for(&rcgen::PKCS_ED25519)?,
        Certificate::MlDsa44 => KeyPair::generate_for(&rcgen::PKCS_ML_DSA_44)?,
        Certificate::MlDsa65 => KeyPair::generate_for(&rcgen::PKCS_ML_DSA_65)?,
        Certificate::MlDsa87 => KeyPair::generate_for(&rcgen::PKCS_ML_DSA_87)?,
    })
}
