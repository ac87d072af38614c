//! Code that the examples share: command lines, and certificates for first experiments.
//!
//! A server without `--cert` and `--key` makes a certificate for `localhost` and writes it to a
//! file next to the programs. A client trusts that file unless `--ca` names another. Use such
//! certificates only for experiments on one machine.

pub mod fleet;
pub mod health;
pub mod prometheus;
pub mod restart;

use std::{
    error::Error,
    fmt,
    fs::File,
    io::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use hybriq::{Group, Identity, KeyExchange, Trust, error::ConfigError};

/// The command line of a server.
#[derive(Debug, clap::Parser)]
pub struct Server {
    /// Address to listen on; port 0 selects a free port.
    #[arg(long, default_value = "127.0.0.1:4433")]
    pub listen: SocketAddr,
    /// PEM file with the certificate chain.
    #[arg(long, requires = "key")]
    pub cert: Option<PathBuf>,
    /// PEM file with the private key.
    #[arg(long, requires = "cert")]
    pub key: Option<PathBuf>,
    /// File of the self-signed certificate, which clients trust; its key is stored next to it. It is
    /// created if it does not exist. Default: next to this program.
    #[arg(long)]
    pub ca: Option<PathBuf>,
}

/// The command line of a server for production.
#[derive(Clone, Debug, clap::Parser)]
pub struct Service {
    /// Address to listen on, if systemd gives no sockets; port 0 selects a free port.
    #[arg(long, default_value = "[::]:4433")]
    pub listen: SocketAddr,
    /// PEM file with the certificate chain.
    #[arg(long)]
    pub cert: PathBuf,
    /// PEM file with the private key.
    #[arg(long)]
    pub key: PathBuf,
    /// Seconds that clients have to finish after SIGTERM.
    #[arg(long, default_value_t = 30)]
    pub drain: u64,
}

impl Service {
    /// Reads the certificate and the key.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn identity(&self) -> Result<Identity, ConfigError> {
        Identity::from_pem_files(&self.cert, &self.key)
    }

    /// Returns the time that clients have to finish after SIGTERM.
    pub fn drain(&self) -> Duration {
        Duration::from_secs(self.drain)
    }
}

/// The command line of a client.
#[derive(Debug, clap::Parser)]
pub struct Client {
    /// The server's address.
    #[arg(default_value = "127.0.0.1:4433")]
    pub server: SocketAddr,
    /// Name that the server's certificate must have.
    #[arg(long, default_value = "localhost")]
    pub name: String,
    /// PEM file with the certificates to trust. Default: the file that a server example wrote.
    #[arg(long)]
    pub ca: Option<PathBuf>,
}

impl Server {
    /// Returns the given certificate and key, or a self-signed one.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn identity(&self) -> Result<Identity, Failure> {
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            return Ok(Identity::from_pem_files(cert, key)?);
        }
        let ca = ca_file(self.ca.as_ref())?;
        let key = ca.with_extension("key");
        // Keeps an existing certificate: clients of a running server trust it.
        let identity = match Identity::from_pem_files(&ca, &key) {
            Ok(identity) => identity,
            Err(error) if ca == key || ca.exists() || key.exists() => {
                return Err(refusal(&ca, &error));
            }
            Err(_) => make_identity(&ca, &key)?,
        };
        eprintln!(
            "NOT FOR PRODUCTION: self-signed certificate for localhost in {}; clients trust it by --ca",
            ca.display()
        );
        Ok(identity)
    }
}

impl Server {
    /// Returns the certificate that clients of this server trust, for a client in the same program.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn trust(&self) -> Result<Trust, Failure> {
        let file = self.cert.as_ref().or(self.ca.as_ref());
        Ok(Trust::roots_pem_file(ca_file(file)?)?)
    }
}

impl Client {
    /// Returns the certificates of the given file, or those that a server example wrote.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn trust(&self) -> Result<Trust, Failure> {
        match Trust::roots_pem_file(ca_file(self.ca.as_ref())?) {
            Err(error @ ConfigError::Read { .. }) if self.ca.is_none() => {
                Err(format!("{error}; start a server example first, or give --ca").into())
            }
            trust => Ok(trust?),
        }
    }
}

/// Returns a policy of exactly the named groups, first choice first. Without names, post-quantum is
/// preferred.
///
/// # Errors
/// A group is unknown; the message lists the valid names.
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

/// Explains why files that no server example made are not overwritten.
fn refusal(ca: &Path, error: &ConfigError) -> Failure {
    let ca = ca.display();
    format!(
        "--ca {ca} is not a certificate that a server example made, and is not overwritten: {error}; \
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

/// Returns the given path, or the default: next to the program, where nobody else writes.
fn ca_file(given: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    match given {
        Some(path) => Ok(path.clone()),
        None => Ok(std::env::current_exe()?.with_file_name("hybriq-example-ca.pem")),
    }
}

/// Any error. A `main` that returns it prints one line with the problem and its remedy.
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
