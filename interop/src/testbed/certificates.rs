//! Certificates of the runs, as the runner makes them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256,
};

use super::Failure;

/// Names of the server.
const NAMES: [&str; 4] = ["server", "server4", "server6", "server46"];
/// Certificates of the long chain, the root aside: as many as all TLS libraries follow.
const LONG_CHAIN: usize = 6;

/// Folders with `ca.pem`, `cert.pem` and `priv.key`.
#[derive(Debug)]
pub(super) struct Certificates {
    /// A certificate that the root signed.
    pub(super) short: PathBuf,
    /// A chain that is too long for the first flight of a server.
    pub(super) long: PathBuf,
}

impl Certificates {
    pub(super) fn make(folder: &Path) -> Result<Self, Failure> {
        let made = Self {
            short: folder.join("certs"),
            long: folder.join("certs-long"),
        };
        write(&made.short, 1)?;
        write(&made.long, LONG_CHAIN)?;
        Ok(made)
    }
}

/// Creates a chain of this many certificates below a root.
fn write(folder: &Path, length: usize) -> Result<(), Failure> {
    fs::create_dir_all(folder)?;
    let (mut issuer, root) = authority("interop root", None)?;
    let mut chain = Vec::new();
    for number in 1..length {
        // Names as long as those of real authorities.
        let name = format!(
            "intermediate {number} {}",
            "of the interop tests ".repeat(60)
        );
        let (next, pem) = authority(&name, Some(&issuer))?;
        chain.push(pem);
        issuer = next;
    }
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut leaf = CertificateParams::new(NAMES.map(str::to_owned))?;
    leaf.distinguished_name.push(DnType::CommonName, "server");
    chain.push(leaf.signed_by(&key, &issuer)?.pem());
    chain.reverse();
    let files: [(&str, String); 3] = [
        ("ca.pem", root),
        ("cert.pem", chain.concat()),
        ("priv.key", key.serialize_pem()),
    ];
    let written: io::Result<()> = files
        .iter()
        .try_for_each(|(name, contents)| fs::write(folder.join(name), contents));
    Ok(written?)
}

/// Makes an authority and its certificate.
fn authority(
    name: &str,
    by: Option<&Issuer<'_, KeyPair>>,
) -> Result<(Issuer<'static, KeyPair>, String), Failure> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    let pem = match by {
        Some(issuer) => params.signed_by(&key, issuer)?.pem(),
        None => params.self_signed(&key)?.pem(),
    };
    Ok((Issuer::new(params, key), pem))
}
