//! Negotiation of the group between sides that disagree at first: the published cases, as
//! connections of this stack over either TLS library.

mod drafts;

use std::sync::Arc;

use hybriq::{Backend, Group, Identity, KeyExchange, Trust};
use hybriq_tls::{ClientOptions, Provider, ServerOptions, rustls};
use serde::{Deserialize, Serialize};

use crate::handshake::certificates;
use crate::handshake::exchange::loopback::{Connected, connect};
use crate::scenario::axes::Certificate;
use crate::system::failure::Failure;
use drafts::Shares;

const ALPN: [&str; 1] = ["netbench"];

/// One case between two providers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Case {
    /// Groups that the client offers and that the server accepts.
    pub(crate) name: String,
    pub(crate) client: String,
    pub(crate) server: String,
    pub(crate) expected: String,
    pub(crate) happened: String,
    pub(crate) passed: bool,
}

/// Expected outcome of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Expected {
    group: Group,
    hello_retry: bool,
}

/// Providers and groups of both ends.
struct Play {
    name: String,
    client: (Backend, Offer),
    server: (Backend, KeyExchange),
    expected: Expected,
}

/// Groups and shares that a client offers.
#[derive(Clone)]
enum Offer {
    Groups(KeyExchange),
    /// Code points of drafts, then X25519.
    Drafts(Shares),
}

/// Runs every case between every two providers that support it.
pub(crate) async fn run() -> Result<Vec<Case>, Failure> {
    let certificates = certificates::of_server(Certificate::EcdsaP256, 1)?;
    let identity = Identity::from_pem(
        certificates.server_chain.as_bytes(),
        certificates.server_key.as_bytes(),
    )?;
    let trust = Trust::roots_pem(certificates.root.as_bytes())?;
    let mut cases = Vec::new();
    for play in plays() {
        let client = ClientOptions::new().alpn(ALPN).trust(trust.clone());
        let client = play.client.1.provider(play.client.0, client)?;
        let server = ServerOptions::new(identity.clone())
            .alpn(ALPN)
            .key_exchange(play.server.1.clone());
        let server = play.server.0.server(&server)?;
        let outcome = connect(client, server, identity.clone()).await;
        cases.push(play.case(outcome));
    }
    Ok(cases)
}

impl Offer {
    fn provider(
        &self,
        backend: Backend,
        options: ClientOptions,
    ) -> Result<Arc<dyn Provider>, Failure> {
        Ok(match self {
            Self::Groups(policy) => backend.client(&options.key_exchange(policy.clone()))?,
            // s2n-tls takes no custom groups.
            Self::Drafts(shares) => {
                let options = options.key_exchange(exactly(&[Group::X25519]));
                Arc::new(rustls::Client::with_crypto(&options, |crypto| {
                    drafts::offer(crypto, *shares)
                })?)
            }
        })
    }
}

fn exactly(groups: &[Group]) -> KeyExchange {
    KeyExchange::Exactly(groups.to_vec())
}

fn plays() -> Vec<Play> {
    let mut plays = hybrid_before_classical();
    for client in Backend::ALL {
        for server in Backend::ALL {
            plays.push(Play {
                name: "no post-quantum group offered, post-quantum preferred".to_owned(),
                client: (client, Offer::Groups(KeyExchange::OnlyClassical)),
                server: (server, KeyExchange::PreferPostQuantum),
                expected: Expected {
                    group: Group::X25519,
                    hello_retry: false,
                },
            });
        }
    }
    for server in Backend::ALL {
        for (shares, hello_retry) in [
            (Shares::DraftAndClassical, false),
            (Shares::DraftAlone, true),
        ] {
            plays.push(Play {
                name: format!("only drafts of Kyber beside X25519, {}", shares.text()),
                client: (Backend::Rustls, Offer::Drafts(shares)),
                server: (server, KeyExchange::PreferPostQuantum),
                expected: Expected {
                    group: Group::X25519,
                    hello_retry,
                },
            });
        }
    }
    plays
}

/// Returns the case of a client with a hybrid and a classical share, and a server with the
/// classical group and another hybrid that the client also lists.
///
/// s2n-tls has fixed lists, so other hybrids are used there.
fn hybrid_before_classical() -> Vec<Play> {
    let name = |sent: Group, classical: Group, other: Group| {
        format!("shares of {sent} and {classical}, the server has {classical} and {other}")
    };
    let play = |backends: (Backend, Backend), offer: KeyExchange, sent, classical, other| Play {
        name: name(sent, classical, other),
        client: (backends.0, Offer::Groups(offer)),
        server: (backends.1, exactly(&[other, classical])),
        expected: Expected {
            group: other,
            hello_retry: true,
        },
    };
    let (x25519, p256, p384) = (
        Group::X25519MLKEM768,
        Group::SECP256R1MLKEM768,
        Group::SECP384R1MLKEM1024,
    );
    let rustls = Backend::Rustls;
    let mut plays = vec![
        play(
            (rustls, rustls),
            exactly(&[p256, x25519, Group::SECP256R1]),
            p256,
            Group::SECP256R1,
            x25519,
        ),
        play(
            (Backend::S2nTls, rustls),
            KeyExchange::PreferPostQuantum,
            x25519,
            Group::SECP256R1,
            p256,
        ),
    ];
    let lists = [
        x25519,
        p256,
        Group::X25519,
        Group::SECP256R1,
        Group::SECP384R1,
    ];
    plays.push(Play {
        server: (Backend::S2nTls, exactly(&lists)),
        ..play(
            (rustls, Backend::S2nTls),
            exactly(&[p384, x25519, Group::SECP384R1]),
            p384,
            Group::SECP384R1,
            x25519,
        )
    });
    plays
}

impl Play {
    fn case(self, outcome: Result<Connected, Failure>) -> Case {
        let (happened, passed) = match outcome {
            Ok(connected) => {
                let client = connected.client.key_exchange;
                let found = Expected {
                    group: client.group,
                    hello_retry: client.hello_retry,
                };
                let same = client == connected.server.key_exchange;
                (found.text(), same && found == self.expected)
            }
            Err(failure) => (format!("failed: {failure}"), false),
        };
        Case {
            name: self.name,
            client: self.client.0.name().to_owned(),
            server: self.server.0.name().to_owned(),
            expected: self.expected.text(),
            happened,
            passed,
        }
    }
}

impl Expected {
    fn text(self) -> String {
        let retry = if self.hello_retry {
            "after a HelloRetryRequest"
        } else {
            "at once"
        };
        format!("{} {retry}", self.group)
    }
}

#[cfg(test)]
mod tests {
    use super::{Backend, run};

    #[tokio::test]
    async fn every_published_case_comes_out_as_published() {
        let cases = run().await.unwrap();
        for case in &cases {
            assert!(case.passed, "{case:?}");
        }
        let of = |part: &str| {
            cases
                .iter()
                .filter(|case| case.name.starts_with(part))
                .count()
        };
        assert_eq!(of("shares of"), 3);
        assert_eq!(
            of("no post-quantum"),
            Backend::ALL.len() * Backend::ALL.len()
        );
        assert_eq!(of("only drafts"), 4);
    }
}
