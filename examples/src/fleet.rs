//! The command line of a server that is one of several behind a load balancer.

use std::fs;
use std::path::{Path, PathBuf};

use hybriq::{AddressValidation, EndpointBuilder, QuicLb, ResetKey, SystemRandom, TokenKeys};

use crate::Failure;

/// Configuration of the load balancer that is in use (its rotation codepoint).
const ROTATION: u8 = 0;

/// Bytes of the nonce in connection ids.
const NONCE: usize = 6;

/// Options of a server in a fleet. Secrets are files, so that no list of processes shows them.
#[derive(Debug, clap::Args)]
pub struct Fleet {
    /// File with the secret of the whole fleet: 64 hexadecimal digits. Servers with the same secret
    /// accept each other's tokens and end each other's lost connections.
    #[arg(long)]
    pub fleet_secret: Option<PathBuf>,
    /// Number of this server in the load balancer, as hexadecimal digits. Connection ids contain it.
    #[arg(long)]
    pub server_id: Option<String>,
    /// File with the key by which connection ids are encrypted: 32 hexadecimal digits.
    #[arg(long, requires = "server_id")]
    pub lb_key: Option<PathBuf>,
    /// Makes every client prove its address by a Retry.
    #[arg(long)]
    pub always_retry: bool,
}

impl Fleet {
    /// Adds the options to an endpoint.
    ///
    /// # Errors
    /// A file cannot be read, or an option is not as described.
    pub fn apply(&self, mut builder: EndpointBuilder) -> Result<EndpointBuilder, Failure> {
        if let Some(file) = &self.fleet_secret {
            let secret = from_hex::<32>(&read(file)?)?;
            builder = builder
                .token_keys(TokenKeys::from_secret(secret))
                .reset_key(ResetKey::from_secret(secret));
        }
        if let Some(id) = &self.server_id {
            let id = bytes(id)?;
            let mut random = SystemRandom::new();
            builder = builder.cid_generator(match &self.lb_key {
                Some(file) => {
                    let key = from_hex::<16>(&read(file)?)?;
                    QuicLb::encrypted(ROTATION, &id, NONCE, key, &mut random)?
                }
                None => QuicLb::plaintext(ROTATION, &id, NONCE, &mut random)?,
            });
        }
        if self.always_retry {
            builder = builder.address_validation(AddressValidation::Always);
        }
        Ok(builder)
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file)
        .map_err(|error| format!("cannot read {}: {error}", file.display()).into())
}

fn bytes(digits: &str) -> Result<Vec<u8>, Failure> {
    let digits = digits.trim();
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = pairs
        .map(|pair| byte(pair).filter(|_| pair.len() == 2))
        .collect();
    bytes.ok_or_else(|| "use an even number of hexadecimal digits".into())
}

fn from_hex<const N: usize>(digits: &str) -> Result<[u8; N], Failure> {
    let wrong = |bytes: Vec<u8>| format!("{} bytes where {N} are needed", bytes.len());
    Ok(bytes(digits)?.try_into().map_err(wrong)?)
}
