//! `netbench certificates`: writes a hierarchy of certificates with their keys.

mod authority;
mod write;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use rustls::pki_types::ServerName;

use crate::scenario::axes::{Certificate, Named as _};
use crate::system::failure::Failure;
use crate::system::terminal;

pub(crate) use authority::{File, Plan, make};

/// Writes a hierarchy of certificates with their keys: a root, intermediates, and certificates for
/// a server, a client and a signer of files.
#[derive(clap::Args)]
#[command(after_help = FILES)]
pub(crate) struct Args {
    /// Folder to write into. It is made if it is missing, and no file in it is replaced.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// Kind of all keys: ecdsa-p256, ecdsa-p384, rsa-2048, ed25519, ml-dsa-44, ml-dsa-65, ml-dsa-87.
    #[arg(long, value_name = "KIND", default_value = "ml-dsa-65", value_parser = kind)]
    certificate: Certificate,

    /// Kind of the root's key, if it differs.
    #[arg(long, value_name = "KIND", value_parser = kind)]
    root: Option<Certificate>,

    /// Kind of the intermediates' keys, if it differs.
    #[arg(long, value_name = "KIND", value_parser = kind)]
    intermediate: Option<Certificate>,

    /// Kind of the keys of server, client and signer, if it differs.
    #[arg(long, value_name = "KIND", value_parser = kind)]
    leaf: Option<Certificate>,

    /// Number of intermediates between the root and the others.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u8).range(0..=6))]
    intermediates: u8,

    /// Host names and addresses of the server.
    #[arg(
        long = "name",
        value_name = "NAMES",
        value_delimiter = ',',
        value_parser = server_name,
        default_value = "localhost,127.0.0.1,::1"
    )]
    names: Vec<String>,

    /// Days for which server, client and signer are valid. Authorities are valid for ten years.
    #[arg(long, value_name = "DAYS", default_value = "365", value_parser = clap::value_parser!(u16).range(1..=3650))]
    days: u16,
}

const FILES: &str = "\
Files, all PEM; keys are PKCS #8 and readable by their owner only:
  root.pem          what the other end trusts
  server.pem        for servers: its certificate, then the intermediates
  client.pem        for clients that show a certificate (mutual TLS)
  signer.pem        for `netbench sign`
  intermediate.pem  the intermediates alone, the one that signed the others first
  root-key.pem, intermediate-key.pem, server-key.pem, client-key.pem, signer-key.pem

Example, an ECDSA server below a post-quantum root:
  netbench certificates pki --root ml-dsa-87 --intermediate ml-dsa-65 --leaf ecdsa-p256 \\
      --name example.test,192.0.2.1";

fn kind(text: &str) -> Result<Certificate, String> {
    Certificate::from_text(text)
}

/// Takes a name that clients can ask for, or a wildcard over such names.
fn server_name(text: &str) -> Result<String, String> {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_name = match ServerName::try_from(name) {
        Ok(ServerName::DnsName(_)) => true,
        Ok(ServerName::IpAddress(_)) => name == text,
        _ => false,
    };
    if is_name {
        Ok(text.to_owned())
    } else {
        Err(
            "not a host name or address, such as example.test, *.example.test or 192.0.2.1"
                .to_owned(),
        )
    }
}

impl Args {
    fn plan(&self, now: SystemTime) -> Plan {
        Plan {
            root: self.root.unwrap_or(self.certificate),
            intermediate: self.intermediate.unwrap_or(self.certificate),
            leaf: self.leaf.unwrap_or(self.certificate),
            intermediates: self.intermediates,
            names: self.names.clone(),
            days: self.days,
            now,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let files = make(&args.plan(SystemTime::now()))?;
    let written = write::all(&args.folder, &files)?;
    terminal::print(|out| {
        let mut written = written.iter();
        written.try_for_each(|path| writeln!(out, "{}", path.display()))
    })?;
    Ok(ExitCode::SUCCESS)
}
