//! Plans: a kind of handshake each, and the two ends that perform it.

use std::{fmt, sync::Arc};

use hybriq::tls::Suite;
use hybriq::{Backend, Group, KeyExchange};
use hybriq::{
    Identity, Trust,
    tls::{ClientAuth, Side},
};
use hybriq_tls::rustls;
use hybriq_tls::{ClientOptions, Provider, ServerOptions};

use super::timed;
use crate::drivers::Certificates;
use crate::handshake::certificates::Wanted;
use crate::scenario::axes;
use crate::system::failure::Failure;

const ALPN: [&str; 1] = ["netbench"];

/// Suites that QUIC can use, in the order of most s2n-tls policies.
pub(super) const SUITES: [Suite; 3] = [
    Suite::Aes128GcmSha256,
    Suite::Aes256GcmSha384,
    Suite::ChaCha20Poly1305Sha256,
];

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

/// Kind of start of a handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mode {
    /// True with a ticket of an earlier connection (RFC 8446 §2.2).
    pub(crate) psk: bool,
    /// True with key shares that were made before the handshake.
    pub(crate) shares_ahead: bool,
}

impl Mode {
    /// Returns its name in results.
    pub(crate) const fn name(self) -> &'static str {
        match (self.psk, self.shares_ahead) {
            (false, false) => "full",
            (false, true) => "full, shares made ahead",
            (true, false) => "psk",
            (true, true) => "psk, shares made ahead",
        }
    }
}

/// Two ends, with the sides to be measured.
pub(super) struct Ends {
    pub(super) client: Arc<dyn Provider>,
    pub(super) server: Arc<dyn Provider>,
    pub(super) measured: &'static [Side],
}

impl Plan {
    /// Returns the certificates that its handshakes need.
    pub(crate) const fn certificates(&self) -> Wanted {
        Wanted {
            kind: self.certificate,
            chain: self.chain,
            client_auth: self.client_auth,
        }
    }

    /// Returns the name of the certificate in results, with its peculiarities.
    pub(super) fn certificate_name(&self) -> String {
        let mut name = self.certificate.to_string();
        if self.chain > 1 {
            name = format!("{name}, chain of {}", self.chain);
        }
        if self.client_auth {
            name += ", client too";
        }
        name
    }

    /// Returns the ends that perform it. rustls plays both roles at once. s2n-tls, which takes no
    /// list of groups, plays each role against rustls, so that group and suite are fixed.
    pub(super) fn ends(
        &self,
        certificates: &Certificates,
        left_out: &mut Vec<String>,
    ) -> Result<Vec<Ends>, Failure> {
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
        match self.s2n_client(&options.0) {
            Some(client) => ends.push(Ends {
                client,
                server: rustls_server()?,
                measured: &[Side::Client],
            }),
            None => left_out.push(format!(
                "{self}: no policy of s2n-tls has clients offer it first"
            )),
        }
        match self.s2n_server(&options.1) {
            Some(server) => ends.push(Ends {
                client: rustls_client()?,
                server,
                measured: &[Side::Server],
            }),
            None => left_out.push(format!(
                "{self}: no policy of s2n-tls has servers accept it"
            )),
        }
        Ok(ends)
    }

    /// Returns the maximum number of pairs of ends.
    pub(super) fn pairs(&self) -> usize {
        match self.provider {
            Backend::Rustls => 1,
            _ => 2,
        }
    }

    pub(super) fn options(
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

    /// Returns a client whose policy has the group first, so that its first share is of that group.
    fn s2n_client(&self, options: &ClientOptions) -> Option<Arc<dyn Provider>> {
        let first = |policy: &KeyExchange| policy.groups().first() == Some(&self.group);
        self.s2n_choices(first).find_map(|(policy, suites)| {
            let options = options.clone().key_exchange(policy).suites(suites);
            Backend::S2nTls.client(&options).ok()
        })
    }

    /// Returns a server whose policy has the group.
    fn s2n_server(&self, options: &ServerOptions) -> Option<Arc<dyn Provider>> {
        // rustls has the policy, but s2n-tls lacks the group.
        let has = |policy: &KeyExchange| {
            self.group != Group::MLKEM768 && policy.groups().contains(&self.group)
        };
        self.s2n_choices(has).find_map(|(policy, suites)| {
            let options = options.clone().key_exchange(policy).suites(suites);
            Backend::S2nTls.server(&options).ok()
        })
    }

    /// Returns such policies, with the lists of suites that contain ours.
    fn s2n_choices(
        &self,
        wanted: impl Fn(&KeyExchange) -> bool,
    ) -> impl Iterator<Item = (KeyExchange, Vec<Suite>)> {
        policies().filter(wanted).flat_map(|policy| {
            let lists = [&SUITES[..], &[Suite::Aes256GcmSha384]];
            let able = lists.into_iter().filter(|list| list.contains(&self.suite));
            able.map(move |list| (policy.clone(), list.to_vec()))
        })
    }
}

/// Returns policies of s2n-tls such that each of its groups comes first in one, the narrow ones
/// first.
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
