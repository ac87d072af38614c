//! What is varied: the axes of a matrix, and its cells.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The values of each axis; every combination is a cell. An axis without values has one, the
/// default of [`Cell`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Axes {
    /// Stacks (`netbench drivers`).
    pub driver: Vec<String>,
    /// The client's stack, where it is not the server's.
    pub client: Vec<String>,
    /// TLS provider of the server, where a stack has a choice: `rustls`, `s2n-tls`.
    pub provider: Vec<String>,
    /// Key-exchange groups by IANA name; `all` stands for all eight.
    pub group: Vec<String>,
    /// Whether the client is made to send another group's share first, so that the server answers
    /// with a HelloRetryRequest.
    pub hello_retry: Vec<bool>,
    /// What the server's certificate is signed with and holds.
    pub certificate: Vec<Certificate>,
    /// Certificates the server sends: 1 is the leaf alone, 3 a leaf and two intermediates.
    pub chain: Vec<u8>,
    /// Cipher suites by IANA name.
    pub suite: Vec<String>,
    /// How connections after a client's first begin.
    pub resumption: Vec<Resumption>,
    /// Whether the client shows a certificate of the same kind.
    pub client_auth: Vec<bool>,
    /// Links, as the arguments of `netbench link`: `"--delay 25ms --rate 20mbit"`. The empty text
    /// is no link: straight over the loopback interface.
    pub link: Vec<String>,
    /// Parameters of the scenario, such as `concurrency` or `request_size`.
    #[serde(flatten)]
    pub params: BTreeMap<String, Vec<u64>>,
}

/// One combination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cell {
    /// The server's stack.
    pub driver: String,
    /// The client's stack.
    pub client: String,
    /// TLS provider of the server.
    pub provider: String,
    /// The only group that a connection may negotiate.
    pub group: String,
    /// Whether the client sends another group's share first.
    pub hello_retry: bool,
    /// The server's certificate.
    pub certificate: Certificate,
    /// Certificates the server sends.
    pub chain: u8,
    /// The only cipher suite.
    pub suite: String,
    /// How connections begin.
    pub resumption: Resumption,
    /// Whether the client shows a certificate.
    pub client_auth: bool,
    /// Arguments of `netbench link`; empty: none.
    pub link: String,
    /// Parameters of the scenario.
    pub params: BTreeMap<String, u64>,
}

/// The key of a certificate and of those that sign it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certificate {
    /// ECDSA on P-256.
    #[default]
    EcdsaP256,
    /// ECDSA on P-384.
    EcdsaP384,
    /// RSA with 2048 bits.
    #[serde(rename = "rsa-2048")]
    Rsa2048,
    /// Ed25519.
    Ed25519,
    /// ML-DSA-44 (FIPS 204).
    #[serde(rename = "ml-dsa-44")]
    MlDsa44,
    /// ML-DSA-65 (FIPS 204).
    #[serde(rename = "ml-dsa-65")]
    MlDsa65,
    /// ML-DSA-87 (FIPS 204).
    #[serde(rename = "ml-dsa-87")]
    MlDsa87,
}

/// How a connection begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Resumption {
    /// A full handshake.
    #[default]
    #[serde(rename = "full")]
    Full,
    /// A handshake with a ticket of an earlier connection (RFC 8446 §2.2).
    #[serde(rename = "psk")]
    Psk,
    /// The same, with the first bytes in 0-RTT (RFC 8446 §2.3).
    #[serde(rename = "0-rtt")]
    ZeroRtt,
}

impl Axes {
    /// Whether nothing is varied.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Cell {
    fn default() -> Self {
        Self {
            driver: "hybriq".to_owned(),
            client: "hybriq".to_owned(),
            provider: "rustls".to_owned(),
            group: "X25519MLKEM768".to_owned(),
            hello_retry: false,
            certificate: Certificate::default(),
            chain: 1,
            suite: "TLS_AES_128_GCM_SHA256".to_owned(),
            resumption: Resumption::default(),
            client_auth: false,
            link: String::new(),
            params: BTreeMap::new(),
        }
    }
}
