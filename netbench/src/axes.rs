//! What is varied: the axes of a matrix, and its cells.

mod names;
mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use parse::NAMES;

/// The values of each axis; every combination is a cell. An axis without values has one, the
/// default of [`Cell`].
///
/// In a file a value may stand alone, or as the text that the command line takes: `"all"`,
/// `"X25519,MLKEM768"`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Axes {
    /// Stacks (`netbench drivers`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub driver: Vec<String>,
    /// The client's stack, where it is not the server's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub client: Vec<String>,
    /// TLS provider of the server, where a stack has a choice: `rustls`, `s2n-tls`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub provider: Vec<String>,
    /// Key-exchange groups by IANA name; `all` stands for all eight.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<String>,
    /// Whether the client is made to send another group's share first, so that the server answers
    /// with a HelloRetryRequest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hello_retry: Vec<bool>,
    /// What the server's certificate is signed with and holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificate: Vec<Certificate>,
    /// Certificates the server sends: 1 is the leaf alone, 3 a leaf and two intermediates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<u8>,
    /// Cipher suites by IANA name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suite: Vec<String>,
    /// How connections after a client's first begin.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resumption: Vec<Resumption>,
    /// Whether the client shows a certificate of the same kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub client_auth: Vec<bool>,
    /// Links, as the arguments of `netbench link`: `"--delay 25ms --rate 20mbit"`. The empty text
    /// is no link: straight over the loopback interface.
    #[serde(skip_serializing_if = "Vec::is_empty")]
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

    /// Whether the groups are not named but all, so that one which a stack has not is left out
    /// rather than refused.
    pub fn has_all_groups(&self) -> bool {
        self.group.iter().any(|group| group == ALL)
    }

    /// Takes over the axes that `other` varies.
    pub fn override_with(&mut self, other: Self) {
        fn take<T>(mine: &mut Vec<T>, other: Vec<T>) {
            if !other.is_empty() {
                *mine = other;
            }
        }
        take(&mut self.driver, other.driver);
        take(&mut self.client, other.client);
        take(&mut self.provider, other.provider);
        take(&mut self.group, other.group);
        take(&mut self.hello_retry, other.hello_retry);
        take(&mut self.certificate, other.certificate);
        take(&mut self.chain, other.chain);
        take(&mut self.suite, other.suite);
        take(&mut self.resumption, other.resumption);
        take(&mut self.client_auth, other.client_auth);
        take(&mut self.link, other.link);
        self.params.extend(other.params);
    }

    /// How many cells there are.
    pub fn size(&self) -> usize {
        let lengths = [
            self.driver.len(),
            self.client.len(),
            self.provider.len(),
            self.groups().len(),
            self.hello_retry.len(),
            self.certificate.len(),
            self.chain.len(),
            self.suite.len(),
            self.resumption.len(),
            self.client_auth.len(),
            self.link.len(),
        ];
        let params = self.params.values().map(Vec::len);
        (lengths.into_iter().chain(params)).fold(1, |cells: usize, values| {
            cells.saturating_mul(values.max(1))
        })
    }

    /// Every combination, the last axis varying fastest; `params` are those that do not vary.
    pub fn cells(&self, params: &BTreeMap<String, u64>) -> Vec<Cell> {
        let mut cells = vec![Cell {
            params: params.clone(),
            ..Cell::default()
        }];
        // A client is of the server's stack unless it is said which.
        vary(&mut cells, &self.driver, |cell, driver| {
            cell.driver.clone_from(driver);
            cell.client.clone_from(driver);
        });
        vary(&mut cells, &self.client, |cell, client| {
            cell.client.clone_from(client);
        });
        vary(&mut cells, &self.provider, |cell, provider| {
            cell.provider.clone_from(provider);
        });
        vary(&mut cells, &self.groups(), |cell, group| {
            cell.group.clone_from(group);
        });
        vary(&mut cells, &self.hello_retry, |cell, retry| {
            cell.hello_retry = *retry;
        });
        vary(&mut cells, &self.certificate, |cell, certificate| {
            cell.certificate = *certificate;
        });
        vary(&mut cells, &self.chain, |cell, chain| cell.chain = *chain);
        vary(&mut cells, &self.suite, |cell, suite| {
            cell.suite.clone_from(suite);
        });
        vary(&mut cells, &self.resumption, |cell, resumption| {
            cell.resumption = *resumption;
        });
        vary(&mut cells, &self.client_auth, |cell, auth| {
            cell.client_auth = *auth;
        });
        vary(&mut cells, &self.link, |cell, link| {
            cell.link.clone_from(link);
        });
        for (name, values) in &self.params {
            vary(&mut cells, values, |cell, value| {
                cell.params.insert(name.clone(), *value);
            });
        }
        cells
    }

    fn groups(&self) -> Vec<String> {
        if self.has_all_groups() {
            hybriq::Group::ALL.map(|group| group.to_string()).to_vec()
        } else {
            self.group.clone()
        }
    }
}

/// Replaces each cell by one for each value.
fn vary<T>(cells: &mut Vec<Cell>, values: &[T], set: impl Fn(&mut Cell, &T)) {
    if values.is_empty() {
        return;
    }
    let varied = |cell: &Cell| {
        values
            .iter()
            .map(|value| {
                let mut cell = cell.clone();
                set(&mut cell, value);
                cell
            })
            .collect::<Vec<_>>()
    };
    *cells = cells.iter().flat_map(varied).collect();
}

/// The value that stands for every one there is.
const ALL: &str = "all";

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
