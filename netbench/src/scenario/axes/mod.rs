//! Axes of a matrix: the values that a run varies, and the cells they form.

pub(crate) mod link;
pub(crate) mod named;
mod names;
mod parse;
mod profile;
mod stack;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use hybriq::tls::Suite;
use hybriq::{Backend, Group, Profile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use named::{Name, Named};
pub(crate) use parse::NAMES;
pub(crate) use stack::Stack;

/// Values of each axis; every combination is a cell. An axis without values has one value, the
/// default of [`Cell`].
///
/// In a file, a value may stand alone or in the form of the command line: `"all"`,
/// `"X25519,MLKEM768"`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Axes {
    /// Stacks of the server, and of the client unless that has its own (`netbench drivers`).
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "named::serialize_list"
    )]
    pub(crate) driver: Vec<Stack>,
    /// Stacks of the client, if they differ from the server's.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "named::serialize_list"
    )]
    pub(crate) client: Vec<Stack>,
    /// TLS providers of the server, where a stack has a choice.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "named::serialize_list"
    )]
    pub(crate) provider: Vec<Backend>,
    /// Key-exchange groups.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "named::serialize_list"
    )]
    pub(crate) group: Vec<Group>,
    /// `true` if the client first sends the share of another group, so that the server answers with
    /// a HelloRetryRequest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) hello_retry: Vec<bool>,
    /// Keys of the server's certificate and of those that sign it.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "named::serialize_list"
    )]
    pub(crate) certificate: Vec<Certificate>,
    /// Numbers of certificates that the server sends: 1 is the leaf alone, 3 a leaf and two
    /// intermediates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) chain: Vec<u8>,
    /// Numbers of the server's workers, where a stack has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) workers: Vec<u8>,
    /// Cipher suites.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "named::serialize_list"
    )]
    pub(crate) suite: Vec<Suite>,
    /// Kinds of handshake after a client's first connection.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "named::serialize_list"
    )]
    pub(crate) resumption: Vec<Resumption>,
    /// Congestion controllers; the empty text means the stack's default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) congestion: Vec<String>,
    /// `true` if the client shows a certificate of the same kind as the server's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) client_auth: Vec<bool>,
    /// Links, by name or as arguments of `netbench link`: `"lossy"`, `"--delay 25ms --rate 20mbit"`.
    /// The empty text means no link: directly over the loopback interface.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) link: Vec<String>,
    /// Rules of an authority. Groups, suites and certificates that do not vary are its first choice, and
    /// cells that it forbids are not measured.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "named::serialize_optional"
    )]
    pub(crate) profile: Option<Profile>,
    /// Parameters of the scenario, such as `concurrency` or `request_size`.
    #[serde(flatten)]
    pub(crate) params: BTreeMap<String, Vec<u64>>,
}

/// One combination of the values of all axes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Cell {
    /// The server's stack.
    #[schemars(with = "Name<Stack>")]
    #[serde(with = "named")]
    pub(crate) driver: Stack,
    /// The client's stack.
    #[schemars(with = "Name<Stack>")]
    #[serde(with = "named")]
    pub(crate) client: Stack,
    /// TLS provider of the server.
    #[schemars(with = "Name<Backend>")]
    #[serde(with = "named")]
    pub(crate) provider: Backend,
    /// The only group that a connection may negotiate, by its IANA name.
    #[schemars(with = "Name<Group>")]
    #[serde(with = "named")]
    pub(crate) group: Group,
    /// True if the client sends another group's share first.
    pub(crate) hello_retry: bool,
    /// Key of the server's certificate.
    #[schemars(with = "Name<Certificate>")]
    #[serde(with = "named")]
    pub(crate) certificate: Certificate,
    /// Number of certificates that the server sends.
    pub(crate) chain: u8,
    /// Number of the server's workers: sockets and threads that share its address. 1: its stack runs
    /// where its application does.
    #[schemars(range(min = 1))]
    pub(crate) workers: u8,
    /// The only cipher suite, by its IANA name.
    #[schemars(with = "Name<Suite>")]
    #[serde(with = "named")]
    pub(crate) suite: Suite,
    /// Kind of handshake.
    #[schemars(with = "Name<Resumption>")]
    #[serde(with = "named")]
    pub(crate) resumption: Resumption,
    /// True if the client shows a certificate.
    pub(crate) client_auth: bool,
    /// Name of the congestion controller; empty for the stack's default.
    pub(crate) congestion: String,
    /// Name of a link, or arguments of `netbench link`; empty for none.
    pub(crate) link: String,
    /// Parameters of the scenario.
    pub(crate) params: BTreeMap<String, u64>,
}

/// The key of a certificate and of those that sign it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Certificate {
    /// ECDSA on P-256.
    #[default]
    EcdsaP256,
    /// ECDSA on P-384.
    EcdsaP384,
    /// RSA with 2048 bits.
    Rsa2048,
    /// Ed25519.
    Ed25519,
    /// ML-DSA-44 (FIPS 204).
    MlDsa44,
    /// ML-DSA-65 (FIPS 204).
    MlDsa65,
    /// ML-DSA-87 (FIPS 204).
    MlDsa87,
}

/// Kind of handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Resumption {
    /// A full handshake.
    #[default]
    Full,
    /// A handshake with a ticket of an earlier connection (RFC 8446 §2.2).
    Psk,
    /// A handshake with a ticket, and with the first bytes in 0-RTT (RFC 8446 §2.3).
    ZeroRtt,
}

impl Axes {
    /// Returns true if nothing varies.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes the values of every axis that `other` varies.
    pub(crate) fn override_with(&mut self, other: Self) {
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
        take(&mut self.workers, other.workers);
        take(&mut self.suite, other.suite);
        take(&mut self.resumption, other.resumption);
        take(&mut self.client_auth, other.client_auth);
        take(&mut self.congestion, other.congestion);
        take(&mut self.link, other.link);
        self.profile = other.profile.or(self.profile);
        self.params.extend(other.params);
    }

    /// Returns the number of cells.
    pub(crate) fn size(&self) -> usize {
        let lengths = [
            self.driver.len(),
            self.client.len(),
            self.provider.len(),
            self.group.len(),
            self.hello_retry.len(),
            self.certificate.len(),
            self.chain.len(),
            self.workers.len(),
            self.suite.len(),
            self.resumption.len(),
            self.client_auth.len(),
            self.congestion.len(),
            self.link.len(),
        ];
        let params = self.params.values().map(Vec::len);
        (lengths.into_iter().chain(params)).fold(1, |cells: usize, values| {
            cells.saturating_mul(values.max(1))
        })
    }

    /// Returns every combination, the last axis varying fastest; `params` are the parameters that
    /// do not vary.
    pub(crate) fn cells(&self, params: &BTreeMap<String, u64>) -> Vec<Cell> {
        let mut cells = vec![Cell {
            params: params.clone(),
            ..Cell::default()
        }];
        for cell in &mut cells {
            self.follow_profile(cell);
        }
        // A client uses the server's stack unless the axes name another.
        vary(&mut cells, &self.driver, |cell, driver| {
            cell.driver = *driver;
            cell.client = *driver;
        });
        vary(&mut cells, &self.client, |cell, client| {
            cell.client = *client;
        });
        vary(&mut cells, &self.provider, |cell, provider| {
            cell.provider = *provider;
        });
        vary(&mut cells, &self.group, |cell, group| {
            cell.group = *group;
        });
        vary(&mut cells, &self.hello_retry, |cell, retry| {
            cell.hello_retry = *retry;
        });
        vary(&mut cells, &self.certificate, |cell, certificate| {
            cell.certificate = *certificate;
        });
        vary(&mut cells, &self.chain, |cell, chain| cell.chain = *chain);
        vary(&mut cells, &self.workers, |cell, workers| {
            cell.workers = *workers;
        });
        vary(&mut cells, &self.suite, |cell, suite| {
            cell.suite = *suite;
        });
        vary(&mut cells, &self.resumption, |cell, resumption| {
            cell.resumption = *resumption;
        });
        vary(&mut cells, &self.client_auth, |cell, auth| {
            cell.client_auth = *auth;
        });
        vary(&mut cells, &self.congestion, |cell, congestion| {
            cell.congestion.clone_from(congestion);
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
}

/// Replaces each cell by one cell for each value.
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

impl Default for Cell {
    fn default() -> Self {
        Self {
            driver: Stack::Hybriq,
            client: Stack::Hybriq,
            provider: Backend::Rustls,
            group: Group::X25519MLKEM768,
            hello_retry: false,
            certificate: Certificate::default(),
            chain: 1,
            workers: 1,
            suite: Suite::Aes128GcmSha256,
            resumption: Resumption::default(),
            client_auth: false,
            congestion: String::new(),
            link: String::new(),
            params: BTreeMap::new(),
        }
    }
}
