//! TLS: groups, secrets, certificates.

use std::{
    env,
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::Write as _,
    path::PathBuf,
};

use msquic::{AllowedCipherSuiteFlags, Api, Connection, CredentialConfig, QuicTlsSecrets, Status};

use crate::{Failure, read};

pub(crate) const NO_ML_KEM: &str = "quictls has no ML-KEM";

/// `QUIC_PARAM_CONN_TLS_SECRETS`.
const SECRETS: u32 = 0x0500_0013;

/// Returns the reason why the groups of `GROUPS` cannot be had, if they cannot.
pub(crate) fn lack() -> Option<String> {
    let groups = read("GROUPS");
    if groups.contains("MLKEM") {
        return Some(NO_ML_KEM.to_owned());
    }
    let mut names = groups.split(',').filter(|name| !name.is_empty());
    let unknown = names.find(|name| !matches!(*name, "X25519" | "secp256r1"));
    unknown.map(|name| format!("quictls has no {name}"))
}

/// msquic knows nothing of groups: OpenSSL takes them from a file.
pub(crate) fn write_groups() -> Result<(), Failure> {
    let groups = read("GROUPS");
    if groups.is_empty() {
        return Ok(());
    }
    let mut path = PathBuf::from(read("SSLKEYLOGFILE"));
    path.set_file_name("openssl.cnf");
    let groups = groups.replace("secp256r1", "P-256").replace(',', ":");
    let text = format!(
        "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = default\n\
         [default]\nGroups = {groups}\n"
    );
    fs::write(&path, text)?;
    // SAFETY: no other thread runs yet.
    unsafe { env::set_var("OPENSSL_CONF", path) };
    Ok(())
}

/// Limits the cipher suites, where a case names one.
pub(crate) fn suites(case: &str, config: CredentialConfig) -> CredentialConfig {
    if case == "chacha20" {
        config.set_allowed_cipher_suites(AllowedCipherSuiteFlags::CHACHA20_POLY1305_SHA256)
    } else {
        config
    }
}

/// The secrets of a connection, into which msquic writes.
///
/// They are never freed: msquic keeps the address until the handshake is over.
#[derive(Clone, Copy)]
pub(crate) struct Secrets(*const QuicTlsSecrets);

impl Secrets {
    /// Has msquic write the secrets of a connection that has not begun.
    pub(crate) fn of(connection: &Connection) -> Result<Self, Status> {
        // SAFETY: all zeros are a value of these plain bytes.
        let secrets: QuicTlsSecrets = unsafe { std::mem::zeroed() };
        let secrets = Box::into_raw(Box::new(secrets));
        let length = size_of::<QuicTlsSecrets>() as u32;
        // SAFETY: the secrets live until the program ends.
        unsafe { Api::set_param(connection.as_raw(), SECRETS, length, secrets.cast())? };
        Ok(Self(secrets))
    }

    /// Adds the secrets to the key log, after the handshake.
    pub(crate) fn write(self) {
        // SAFETY: msquic writes no more once the handshake is over.
        let secrets = unsafe { &*self.0 };
        let length = usize::from(secrets.secret_length);
        let hex = |bytes: &[u8]| {
            bytes.iter().fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
        };
        let random = hex(&secrets.client_random);
        let mut lines = String::new();
        for (label, secret) in [
            (
                "CLIENT_EARLY_TRAFFIC_SECRET",
                &secrets.client_early_traffic_secret,
            ),
            (
                "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
                &secrets.client_handshake_traffic_secret,
            ),
            (
                "SERVER_HANDSHAKE_TRAFFIC_SECRET",
                &secrets.server_handshake_traffic_secret,
            ),
            ("CLIENT_TRAFFIC_SECRET_0", &secrets.client_traffic_secret0),
            ("SERVER_TRAFFIC_SECRET_0", &secrets.server_traffic_secret0),
        ] {
            let secret = secret.get(..length).unwrap_or_default();
            if secret.iter().any(|&byte| byte != 0) {
                let _ = writeln!(lines, "{label} {random} {}", hex(secret));
            }
        }
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(read("SSLKEYLOGFILE"));
        let _ = log.and_then(|mut log| log.write_all(lines.as_bytes()));
    }
}
