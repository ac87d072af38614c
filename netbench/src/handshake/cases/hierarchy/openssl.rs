//! Checks by OpenSSL, if the machine has one that knows ML-DSA: version 3.5 and later.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Verified;
use crate::drivers::Certificates;
use crate::scenario::axes::Certificate;
use crate::system::failure::Failure;

const NEEDED: (u32, u32) = (3, 5);

/// Number of the next check, which has its own files.
static CHECKS: AtomicU32 = AtomicU32::new(0);

/// Lets OpenSSL verify the server's chain.
pub(super) fn verify(kind: Certificate, certificates: &Certificates) -> Verified {
    let outcome = match version() {
        Ok((version, text)) if version >= NEEDED => {
            check(certificates).map(|valid| (Some(valid), text))
        }
        Ok((_, text)) => Ok((
            None,
            format!("{text} has no ML-DSA; 3.5 is the first that has"),
        )),
        Err(failure) => Ok((None, format!("no openssl to ask: {failure}"))),
    };
    let (valid, detail) = outcome.unwrap_or_else(|failure| (None, failure.to_string()));
    Verified {
        certificate: kind.to_string(),
        by: "OpenSSL".to_owned(),
        valid,
        detail,
    }
}

fn version() -> Result<((u32, u32), String), Failure> {
    let output = Command::new("openssl").arg("version").output()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let version = parse(&text).ok_or_else(|| format!("`openssl version` says `{text}`"))?;
    Ok((version, text))
}

/// Parses `OpenSSL 3.5.1 1 Jul 2025 (…)`.
fn parse(text: &str) -> Option<(u32, u32)> {
    let mut words = text.split_whitespace();
    if words.next()? != "OpenSSL" {
        return None;
    }
    let mut numbers = words.next()?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn check(certificates: &Certificates) -> Result<bool, Failure> {
    let number = CHECKS.fetch_add(1, Ordering::Relaxed);
    let name = format!("netbench-hierarchy-{}-{number}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    fs::create_dir_all(&directory)?;
    let checked = check_in(&directory, certificates);
    fs::remove_dir_all(&directory)?;
    checked
}

fn check_in(directory: &Path, certificates: &Certificates) -> Result<bool, Failure> {
    let file = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::write(&path, text).map(|()| path)
    };
    let root = file("root.pem", &certificates.root)?;
    // `verify` takes the first certificate of the one file, and may use all of the other.
    let chain = file("chain.pem", &certificates.server_chain)?;
    let output = Command::new("openssl")
        .args(["verify", "-CAfile"])
        .arg(&root)
        .arg("-untrusted")
        .arg(&chain)
        .arg(&chain)
        .output()?;
    Ok(output.status.success())
}

#[cfg(test)]
mod tests {
    use super::{NEEDED, check, parse, version};
    use crate::handshake::certificates;
    use crate::scenario::axes::Certificate;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(parse("OpenSSL 3.5.1 1 Jul 2025 (Library: …)"), Some((3, 5)));
        assert!(parse("OpenSSL 3.10.0 1 Jan 2027").unwrap() > NEEDED);
        assert!(parse("OpenSSL 3.0.19 27 Jan 2026").unwrap() < NEEDED);
        assert_eq!(parse("LibreSSL 3.8.2"), None);
    }

    #[test]
    fn a_chain_that_openssl_knows_is_verified_and_another_root_is_not() {
        if version().is_err() {
            return;
        }
        let mut chain = certificates::of_server(Certificate::EcdsaP256, 2).unwrap();
        assert!(check(&chain).unwrap());
        chain.root = certificates::of_server(Certificate::EcdsaP256, 2)
            .unwrap()
            .root;
        assert!(!check(&chain).unwrap());
    }
}
