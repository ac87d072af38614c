//! `netbench sign` and `netbench verify`: detached signatures with ML-DSA over reports, scenarios
//! and other files (CMS `SignedData`, RFC 5652 and RFC 9882).
//!
//! ```text
//!  FILE ── SHA-512 ─► signed attributes ── ML-DSA ─► FILE.p7s: signature and certificates
//!                                                        │
//!  FILE ── digest ──► compared ◄── attributes ◄── checked ┘ ◄── certificates ◄── trusted root
//! ```
//! The cryptography is that of aws-lc-rs, by way of rustls and webpki; only the format is decoded
//! here.

mod algorithm;
mod error;
mod message;
mod signer;
mod verifier;

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use crate::system::failure::Failure;
use crate::system::{files, terminal};

pub(crate) use error::{EXIT_CODES, VerifyError};

/// Signs a file with ML-DSA. The signature is a file of its own, with the certificates in it.
#[derive(clap::Args)]
#[command(after_help = SIGN_EXAMPLE)]
pub(crate) struct Sign {
    /// File to sign.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// PEM file with the private key: ML-DSA-44, ML-DSA-65 or ML-DSA-87.
    #[arg(long, value_name = "KEY")]
    key: PathBuf,

    /// PEM file with the certificate of the key, then the intermediates.
    #[arg(long, value_name = "CHAIN")]
    certificate: PathBuf,

    /// File for the signature [default: FILE.p7s].
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,

    /// Writes PEM (-----BEGIN CMS-----) instead of DER.
    #[arg(long)]
    pem: bool,
}

const SIGN_EXAMPLE: &str = "\
Example, with a new hierarchy:
  netbench certificates pki
  netbench sign report.json --key pki/signer-key.pem --certificate pki/signer.pem
  netbench verify report.json --trust pki/root.pem

OpenSSL 3.5 checks the signature too:
  openssl cms -verify -binary -inform DER -in report.json.p7s -content report.json \\
      -CAfile pki/root.pem -out /dev/null";

/// Checks that a file is what somebody signed whose certificate leads to a trusted root.
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Verify {
    /// File that was signed.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// File with the signature, DER or PEM [default: FILE.p7s].
    #[arg(long, value_name = "PATH")]
    signature: Option<PathBuf>,

    /// PEM file with the roots that are trusted.
    #[arg(long, value_name = "ROOTS")]
    trust: PathBuf,
}

impl Sign {
    /// Runs the command.
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        let signer = signer::Signer::load(&self.certificate, &self.key)?;
        if let Some(problem) = signer.refused_as() {
            terminal::complain(&format!("`netbench verify` will refuse this: {problem}"));
        }
        let signature = signer.sign(&self.file, SystemTime::now())?;
        let signature = if self.pem {
            message::to_pem(&signature)?.into_bytes()
        } else {
            signature
        };
        let out = or_beside(self.out.as_deref(), &self.file);
        files::write(&out, &signature)
            .map_err(|error| format!("cannot write {}: {error}", out.display()))?;
        terminal::print(|to| writeln!(to, "{}: {}", out.display(), signer.describe()))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Verify {
    /// Runs the command.
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        let signature = or_beside(self.signature.as_deref(), &self.file);
        match verifier::verify(&self.file, &signature, &self.trust, SystemTime::now()) {
            Ok(signed) => {
                terminal::print(|to| writeln!(to, "{}: {signed}", self.file.display()))?;
                Ok(ExitCode::SUCCESS)
            }
            Err(error) => {
                terminal::complain(&error.to_string());
                Ok(ExitCode::from(error.exit_code()))
            }
        }
    }
}

/// Returns the path of a signature: the one that was asked for, or that of the file with `.p7s`.
fn or_beside(asked: Option<&Path>, file: &Path) -> PathBuf {
    asked.map_or_else(
        || {
            let mut name = OsString::from(file);
            name.push(".p7s");
            name.into()
        },
        Path::to_owned,
    )
}

/// Maximum size of a signature. Sixteen certificates with ML-DSA-87 are smaller; sorting what is
/// hostile takes the square of it.
const SIGNATURE: u64 = 1 << 17;

/// Maximum size of files with keys and certificates, which are ours.
const TRUSTED: u64 = 1 << 24;

/// Reads a file that is not larger than this.
fn read(path: &Path, largest: u64) -> Result<Vec<u8>, VerifyError> {
    let unreadable = |problem: String| VerifyError::Unreadable {
        path: path.to_owned(),
        problem,
    };
    // A pipe or a device does not tell how long it is.
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(largest + 1).read_to_end(&mut bytes))
        .map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > largest {
        return Err(unreadable(format!(
            "it is too long; this program reads {largest} bytes at most"
        )));
    }
    Ok(bytes)
}
