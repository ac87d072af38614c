//! What is measured: one kind of handshake, and the two ends that do it.

use std::fmt;
use std::sync::Arc;

use hybriq::tls::{ClientAuth, ClientOptions, Identity, Provider, ServerOptions, Side, Trust};
use hybriq::tls::{Suite, rustls};
use hybriq::{Backend, Group, KeyExchange};

use super::timed;
use crate::Failure;
use crate::axes;
use crate::drivers::Certificates;

const ALPN: [&str; 1] = ["netbench"];

/// One kind of handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) provider: Backend,
    pub(crate) group: Group,
    pub(crate) suite: Suite,
    pub(crate) certificate: axes::Certificate,
    pub(crate) chain: u8,
    pub(crate) client_auth: bool,
    pub(crate) mode: Mode,
}

/// How a handshake begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mode {
    /// With a ticket of an earlier one (RFC 8446 §2.2).
    pub(crate) psk: bool,
    /// With key shares that were made before it began.
    pub(crate) shares_ahead: bool,
}

impl Mode {
    /// As results name it.
    pub(crate) const fn name(self) -> &'static str {
        match (self.psk, self.shares_ahead) {
            (false, false) => "full",
            (false, true) => "full, shares made ahead",
            (true, false) => "psk",
            (true, true) => "psk, shares made ahead",
        }
    }
}

/// Two ends, and which of them are measured.
pub(super) struct Ends {
    pub(super) client: Arc<dyn Provider>,
    pub(super) server: Arc<dyn Provider>,
    pub(super) measured: &'static [Side],
}

impl Plan {
    /// The certificate as results name it, with what is special about it.
    pub(super) fn certificate_name(&self) -> String {
        let mut name = super::args::name_of(self.certificate);
        if self.chain > 1 {
            name = format!("{name}, chain of {}", self.chain);
        }
        if self.client_auth {
            name += ", client too";
        }
        name
    }

    /// The ends that do it. rustls plays both roles at once. s2n-tls, which has no list of groups
    /// of its own, plays each against rustls, so that the group and the suite are never left to
    /// chance.
    pub(super) fn ends(&self, certificates: &Certificates) -> Result<Vec<Ends>, Failure> {
        let options = self.options(certificates)?;
        let rustls_client = || -> Result<Arc<dyn Provider>, Failure> {
            let timed = rustls::Client::with_crypto(&options.0, timed::crypto)?;
            Ok(Arc::new(timed))
        };
        let rustls_server = || -> Result<Arc<dyn Provider>, Failure> {
            let timed = rustls::Server::with_crypto(&options.1, timed::crypto)?;
            Ok(Arc::new(timed))
        };
        if self.provider == Backend::Rustls {
            return Ok(vec![Ends {
                client: rustls_client()?,
                server: rustls_server()?,
                measured: &[Side::Client, Side::Server],
            }]);
        }
        if self.mode.shares_ahead {
            return Err(
                "s2n-tls makes its key shares itself; use --shares fresh, or --provider rustls"
                    .into(),
            );
        }
        let mut ends = Vec::new();
        if let Some(client) = self.s2n_client(options.0.clone()) {
            ends.push(Ends {
                client,
                server: rustls_server()?,
                measured: &[Side::Client],
            });
        }
        if let Some(server) = self.s2n_server(options.1.clone()) {
            ends.push(Ends {
                client: rustls_client()?,
                server,
                measured: &[Side::Server],
            });
        }
        if ends.is_empty() {
            let (group, suite) = (self.group, self.suite);
            return Err(format!(
                "no policy of s2n-tls has {group} with {suite}; use --provider rustls for it"
            )
            .into());
        }
        Ok(ends)
    }

    fn options(
        &self,
        certificates: &Certificates,
    ) -> Result<(ClientOptions, ServerOptions), Failure> {
        let group = KeyExchange::Exactly(vec![self.group]);
        let identity =
            |chain: &str, key: &str| Identity::from_pem(chain.as_bytes(), key.as_bytes());
        let trust = || Trust::roots_pem(certificates.root.as_bytes());
        let server = identity(&certificates.server_chain, &certificates.server_key)?;
        let mut server = ServerOptions::new(server)
            .alpn(ALPN)
            .key_exchange(group.clone())
            .suites(vec![self.suite]);
        let mut client = ClientOptions::new()
            .alpn(ALPN)
            .trust(trust()?)
            .key_exchange(group)
            .suites(vec![self.suite]);
        if self.client_auth {
            server = server.client_auth(ClientAuth::Required(trust()?));
            client = client.identity(identity(
                &certificates.client_chain,
                &certificates.client_key,
            )?);
        }
        Ok((client, server))
    }

    /// A client whose policy has the group first, so that its first share is of that group.
    fn s2n_client(&self, options: ClientOptions) -> Option<Arc<dyn Provider>> {
        let mut able = policies().filter(|policy| policy.groups().first() == Some(&self.group));
        able.find_map(|policy| {
            let options = options.clone().key_exchange(policy);
            self.with_suites(|suites| Backend::S2nTls.client(&options.clone().suites(suites)).ok())
        })
    }

    /// A server whose policy has the group.
    fn s2n_server(&self, options: ServerOptions) -> Option<Arc<dyn Provider>> {
        let mut able = policies().filter(|policy| policy.groups().contains(&self.group));
        able.find_map(|policy| {
            let options = options.clone().key_exchange(policy);
            self.with_suites(|suites| Backend::S2nTls.server(&options.clone().suites(suites)).ok())
        })
    }

    /// Tries the lists of suites that policies of s2n-tls have, where ours is among them.
    fn with_suites(
        &self,
        make: impl Fn(Vec<Suite>) -> Option<Arc<dyn Provider>>,
    ) -> Option<Arc<dyn Provider>> {
        const ALL: [Suite; 3] = [
            Suite::Aes128GcmSha256,
            Suite::Aes256GcmSha384,
            Suite::ChaCha20Poly1305Sha256,
        ];
        let lists = [ALL.to_vec(), vec![Suite::Aes256GcmSha384]];
        let mut able = lists.into_iter().filter(|list| list.contains(&self.suite));
        able.find_map(make)
    }
}

/// Policies that s2n-tls has between them with each of its groups first, the narrow ones first.
fn policies() -> impl Iterator<Item = KeyExchange> {
    [
        KeyExchange::Exactly(vec![Group::SECP384R1]),
        KeyExchange::OnlyClassical,
        KeyExchange::Exactly(vec![Group::SECP256R1, Group::X25519, Group::SECP384R1]),
        KeyExchange::PreferPostQuantum,
        KeyExchange::RequirePostQuantum,
        KeyExchange::Exactly(vec![Group::MLKEM1024, Group::SECP384R1]),
    ]
    .into_iter()
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let certificate = self.certificate_name();
        let (provider, mode) = (self.provider, self.mode.name());
        let (group, suite) = (self.group, self.suite);
        write!(f, "{provider}, {group}, {suite}, {certificate}, {mode}")
    }
}
