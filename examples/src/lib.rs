//! What the examples share: command lines, and certificates for a first try.
//!
//! A server without `--cert` and `--key` has a certificate for `localhost` that the first of them
//! made and wrote to a file beside the programs; a client trusts that file unless `--ca` names
//! another. That is good for trying things out on one machine and for nothing else.

pub mod qlog;

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use hybriq::tls::{ConfigError, Group, Identity, KeyExchange, Trust};

/// The command line of a server.
#[derive(Debug, clap::Parser)]
pub struct Server {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:4433")]
    pub listen: SocketAddr,
    /// PEM file with the certificate chain.
    #[arg(long, requires = "key")]
    pub cert: Option<PathBuf>,
    /// PEM file with the private key.
    #[arg(long, requires = "cert")]
    pub key: Option<PathBuf>,
    /// File of the self-made certificate, which clients trust; its key is beside it. Made where
    /// there is none. Default: beside this program.
    #[arg(long)]
    pub ca: Option<PathBuf>,
}

/// The command line of a client.
#[derive(Debug, clap::Parser)]
pub struct Client {
    /// The server's address.
    #[arg(default_value = "127.0.0.1:4433")]
    pub server: SocketAddr,
    /// The name the server's certificate must have.
    #[arg(long, default_value = "localhost")]
    pub name: String,
    /// PEM file with the certificates to trust. Default: what a server example wrote.
    #[arg(long)]
    pub ca: Option<PathBuf>,
}

impl Server {
    /// The given certificate and key, else a self-made one.
    ///
    /// # Errors
    /// Where a file cannot be read or written.
    pub fn identity(&self) -> Result<Identity, Failure> {
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            return Ok(Identity::from_pem_files(cert, key)?);
        }
        let ca = ca_file(self.ca.as_ref())?;
        let key = ca.with_extension("key");
        // A new one each time would take away what clients of a running server trust.
        let identity = match Identity::from_pem_files(&ca, &key) {
            Ok(identity) => identity,
            Err(error) if ca == key || ca.exists() || key.exists() => {
                return Err(refusal(&ca, &error));
            }
            Err(_) => make_identity(&ca, &key)?,
        };
        eprintln!(
            "NOT FOR PRODUCTION: self-made certificate for localhost in {}; clients trust it by --ca",
            ca.display()
        );
        Ok(identity)
    }
}

impl Client {
    /// The certificates of the given file, else those that a server example wrote.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn trust(&self) -> Result<Trust, Failure> {
        match Trust::roots_pem_file(ca_file(self.ca.as_ref())?) {
            Err(error @ ConfigError::Read { .. }) if self.ca.is_none() => {
                Err(format!("{error}; start a server example first, or give --ca").into())
            }
            trust => Ok(trust?),
        }
    }
}

/// The groups with these names, first choice first; without any, post-quantum is preferred.
///
/// # Errors
/// Names the group that is unknown, and those that are not.
pub fn policy(names: &[String]) -> Result<KeyExchange, Failure> {
    if names.is_empty() {
        return Ok(KeyExchange::PreferPostQuantum);
    }
    let group = |name: &String| {
        let valid = Group::ALL.map(|group| group.to_string()).join(", ");
        Group::from_name(name).ok_or(format!("unknown group '{name}'; valid: {valid}"))
    };
    let groups: Result<_, _> = names.iter().map(group).collect();
    Ok(KeyExchange::Exactly(groups?))
}

/// Why nothing was written over files that no server example made, or not whole.
fn refusal(ca: &Path, error: &ConfigError) -> Failure {
    let ca = ca.display();
    format!(
        "--ca {ca} is no certificate that a server example made, and is not overwritten: {error}; \
         remove it, or give the path of a new file"
    )
    .into()
}

fn make_identity(ca: &Path, key: &Path) -> Result<Identity, Failure> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    for (path, text) in [
        (key, made.signing_key.serialize_pem()),
        (ca, made.cert.pem()),
    ] {
        File::create_new(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| format!("cannot write {}: {error}; give --ca", path.display()))?;
    }
    Ok(Identity::from_pem_files(ca, key)?)
}

/// Programs built together lie in one folder that nobody else writes to.
fn ca_file(given: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    match given {
        Some(path) => Ok(path.clone()),
        None => Ok(std::env::current_exe()?.with_file_name("hybriq-example-ca.pem")),
    }
}

/// Any error; a `main` that returns it ends with one line that says what and how to mend it.
pub struct Failure(Box<dyn Error>);

impl<E: Into<Box<dyn Error>>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
