//! The command line of a server that is one of several behind a load balancer.

use std::{
    fs,
    path::{Path, PathBuf},
};

use base64ct::{Base64, Encoding as _};
use hybriq::{
    EndpointBuilder,
    fleet::{AddressValidation, FleetKeys, QuicLb},
    transport::SystemRandom,
};

use crate::Failure;

/// Configuration of the load balancer that is in use (its rotation codepoint).
const ROTATION: u8 = 0;

/// Bytes of the nonce in connection ids.
const NONCE: usize = 6;

/// Options of a server in a fleet. Secrets are files, so that no list of processes shows them.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "A server of a fleet")]
pub struct Fleet {
    /// File with the secret of the whole fleet: 32 random bytes or more, as they are or as digits.
    /// Servers with the same secret accept each other's tokens, resume each other's sessions and end
    /// each other's lost connections.
    #[arg(long)]
    pub fleet_secret: Option<PathBuf>,
    /// Number of this server in the load balancer. Connection ids contain it (QUIC-LB).
    #[arg(long)]
    pub server_id: Option<u64>,
    /// Bytes of server ids in the load balancer, 1 to 8.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub server_id_length: u8,
    /// The same as the bytes that load balancers hand out in base64.
    #[arg(long, conflicts_with = "server_id")]
    pub server_id_base64: Option<String>,
    /// File with the key by which connection ids are encrypted: 32 hexadecimal digits.
    #[arg(long)]
    pub lb_key: Option<PathBuf>,
    /// Makes every client prove its address by a Retry.
    #[arg(long)]
    pub always_retry: bool,
}

impl Fleet {
    /// Returns the keys that the fleet shares, if there is a secret.
    ///
    /// # Errors
    /// The file cannot be read, or is too short.
    pub fn keys(&self) -> Result<Option<FleetKeys>, Failure> {
        let keys = self.fleet_secret.as_ref().map(FleetKeys::from_file);
        Ok(keys.transpose()?)
    }

    /// Adds the options to an endpoint with these keys.
    ///
    /// # Errors
    /// A file cannot be read, or an option is not as described.
    pub fn apply(
        &self,
        mut builder: EndpointBuilder,
        keys: Option<&FleetKeys>,
    ) -> Result<EndpointBuilder, Failure> {
        if let Some(keys) = keys {
            builder = builder.fleet_keys(keys);
        }
        if let Some(id) = self.server_id()? {
            let mut random = SystemRandom::new();
            builder = builder.cid_generator(match &self.lb_key {
                Some(file) => QuicLb::encrypted(ROTATION, &id, NONCE, secret(file)?, &mut random)?,
                None => QuicLb::plaintext(ROTATION, &id, NONCE, &mut random)?,
            });
        } else if self.lb_key.is_some() {
            return Err("--lb-key needs --server-id".into());
        }
        if self.always_retry {
            builder = builder.address_validation(AddressValidation::Always);
        }
        Ok(builder)
    }

    /// Returns the server id, most significant byte first.
    fn server_id(&self) -> Result<Option<Vec<u8>>, Failure> {
        if let Some(text) = &self.server_id_base64 {
            let id = Base64::decode_vec(text);
            return Ok(Some(id.map_err(|_| "--server-id-base64 is not base64")?));
        }
        let Some(id) = self.server_id.map(u64::to_be_bytes) else {
            return Ok(None);
        };
        let (zeros, id) = id.split_at(id.len() - usize::from(self.server_id_length));
        if zeros.iter().any(|byte| *byte != 0) {
            return Err("--server-id is too large for --server-id-length".into());
        }
        Ok(Some(id.to_vec()))
    }
}

/// Reads a secret of hexadecimal digits.
fn secret<const N: usize>(file: &Path) -> Result<[u8; N], Failure> {
    let name = file.display();
    let text = fs::read_to_string(file).map_err(|error| format!("cannot read {name}: {error}"))?;
    let pairs = text.trim().as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    let is_whole = pairs.clone().all(|pair| pair.len() == 2);
    let bytes = pairs.map(byte).collect::<Option<Vec<u8>>>();
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    let wrong = || format!("{name} does not have {} hexadecimal digits", 2 * N);
    Ok(bytes.filter(|_| is_whole).ok_or_else(wrong)?)
}
