//! Cases of the runner: what passes over which link, and what the capture must show.

use std::time::Duration;

use hybriq_sim::{
    Chance,
    link::{Blackouts, Line, Settings},
    one_in, per_mille,
};

use super::{
    Failure,
    link::{Conditions, Part, Rebinding},
    verdict::{self, Check},
};

/// A case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    /// Letters of the public matrix.
    pub(super) letters: &'static str,
    /// `TESTCASE` of each end.
    pub(super) client: &'static str,
    pub(super) server: &'static str,
    /// Sizes of the files.
    pub(super) files: Files,
    /// Name by which the client finds the server.
    pub(super) host: &'static str,
    pub(super) link: fn() -> Conditions,
    /// True if the server has the chain that is too long for its first flight.
    pub(super) long_chain: bool,
    /// Time after which the run has failed.
    pub(super) deadline: Duration,
    pub(super) check: Check,
}

/// Files of a case.
#[derive(Clone, Copy, Debug)]
pub(super) enum Files {
    /// Of these sizes.
    Sizes(&'static [usize]),
    /// So many of the same size.
    Many(usize, usize),
    /// So many of the same size, with names of so many letters.
    LongNames(usize, usize, usize),
}

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
/// Time that most runs get.
const MINUTE: Duration = Duration::from_mins(1);

/// The runner's usual link: 15 ms each way, 10 Mbit/s, a queue of 25 packets.
fn usual() -> Settings {
    Settings {
        delay: Duration::from_millis(15),
        line: Some(Line::new(10_000_000, 25 * 1500)),
        ..Settings::default()
    }
}

fn both(settings: Settings) -> Conditions {
    Conditions {
        up: settings.clone(),
        down: settings,
        ..Conditions::default()
    }
}

fn plain() -> Conditions {
    both(usual())
}

fn lossy(loss: Chance) -> Conditions {
    both(Settings { loss, ..usual() })
}

fn corrupting(corrupt: Chance) -> Conditions {
    both(Settings { corrupt, ..usual() })
}

fn rebinding(part: Part) -> Conditions {
    let every = Duration::from_secs(3);
    Conditions {
        rebinding: Some(Rebinding { every, part }),
        ..plain()
    }
}

/// A case over the usual link; the others differ from it.
const PLAIN: Case = Case {
    name: "transfer",
    letters: "DC",
    client: "transfer",
    server: "transfer",
    files: Files::Sizes(&[2 * MIB, 3 * MIB, 5 * MIB]),
    host: "server4",
    link: plain,
    long_chain: false,
    deadline: MINUTE,
    check: verdict::one_handshake,
};

/// All cases, in the order of the runner; those behind `goodput` are our own.
const CASES: [Case; 27] = [
    Case {
        name: "handshake",
        letters: "H",
        client: "handshake",
        server: "handshake",
        files: Files::Sizes(&[KIB]),
        check: verdict::handshake,
        ..PLAIN
    },
    PLAIN,
    Case {
        name: "longrtt",
        letters: "LR",
        client: "handshake",
        server: "handshake",
        files: Files::Sizes(&[KIB]),
        link: || {
            both(Settings {
                delay: Duration::from_millis(750),
                ..usual()
            })
        },
        check: verdict::long_rtt,
        ..PLAIN
    },
    Case {
        name: "chacha20",
        letters: "C20",
        client: "chacha20",
        server: "chacha20",
        files: Files::Sizes(&[3 * MIB]),
        check: verdict::chacha20,
        ..PLAIN
    },
    Case {
        name: "multiplexing",
        letters: "M",
        files: Files::Many(1999, 32),
        check: verdict::multiplexing,
        ..PLAIN
    },
    Case {
        name: "retry",
        letters: "S",
        client: "retry",
        server: "retry",
        files: Files::Sizes(&[10 * KIB]),
        check: verdict::retry,
        ..PLAIN
    },
    Case {
        name: "resumption",
        letters: "R",
        client: "resumption",
        server: "resumption",
        files: Files::Sizes(&[5 * KIB, 10 * KIB]),
        check: verdict::resumption,
        ..PLAIN
    },
    Case {
        name: "zerortt",
        letters: "Z",
        client: "zerortt",
        server: "zerortt",
        files: Files::LongNames(40, 32, 250),
        check: verdict::zero_rtt,
        ..PLAIN
    },
    Case {
        name: "http3",
        letters: "3",
        client: "http3",
        server: "http3",
        files: Files::Sizes(&[5 * KIB, 10 * KIB, 500 * KIB]),
        ..PLAIN
    },
    Case {
        name: "blackhole",
        letters: "B",
        files: Files::Sizes(&[10 * MIB]),
        link: || {
            // Two seconds of nothing after each five.
            let spans = (1..20).map(|turn| {
                let at = Duration::from_secs(turn * 7 - 2);
                (at, at + Duration::from_secs(2))
            });
            both(Settings {
                blackouts: Blackouts::new(spans),
                ..usual()
            })
        },
        ..PLAIN
    },
    Case {
        name: "keyupdate",
        letters: "U",
        client: "keyupdate",
        files: Files::Sizes(&[3 * MIB]),
        check: verdict::key_update,
        ..PLAIN
    },
    Case {
        name: "ecn",
        letters: "E",
        client: "ecn",
        server: "ecn",
        files: Files::Sizes(&[100 * KIB]),
        check: verdict::ecn,
        ..PLAIN
    },
    Case {
        name: "amplificationlimit",
        letters: "A",
        files: Files::Sizes(&[5 * KIB]),
        link: || Conditions {
            client_losses: (1..7).collect(),
            ..plain()
        },
        long_chain: true,
        check: verdict::amplification,
        ..PLAIN
    },
    Case {
        name: "handshakeloss",
        letters: "L1",
        client: "multiconnect",
        server: "multiconnect",
        files: Files::Many(50, KIB),
        link: || lossy(per_mille(300)),
        deadline: Duration::from_mins(5),
        check: verdict::fifty_handshakes,
        ..PLAIN
    },
    Case {
        name: "transferloss",
        letters: "L2",
        files: Files::Sizes(&[2 * MIB]),
        link: || lossy(per_mille(20)),
        ..PLAIN
    },
    Case {
        name: "handshakecorruption",
        letters: "C1",
        client: "multiconnect",
        server: "multiconnect",
        files: Files::Many(50, KIB),
        link: || corrupting(per_mille(300)),
        deadline: Duration::from_mins(5),
        check: verdict::fifty_handshakes,
        ..PLAIN
    },
    Case {
        name: "transfercorruption",
        letters: "C2",
        files: Files::Sizes(&[2 * MIB]),
        link: || corrupting(per_mille(20)),
        ..PLAIN
    },
    Case {
        name: "ipv6",
        letters: "6",
        host: "server6",
        files: Files::Sizes(&[5 * KIB, 10 * KIB]),
        check: verdict::ipv6,
        ..PLAIN
    },
    Case {
        name: "v2",
        letters: "V2",
        client: "v2",
        server: "v2",
        files: Files::Sizes(&[KIB]),
        check: verdict::version_2,
        ..PLAIN
    },
    Case {
        name: "rebind-port",
        letters: "BP",
        files: Files::Sizes(&[10 * MIB]),
        link: || rebinding(Part::Port),
        check: verdict::rebinding,
        ..PLAIN
    },
    Case {
        name: "rebind-addr",
        letters: "BA",
        files: Files::Sizes(&[10 * MIB]),
        link: || rebinding(Part::Address),
        check: verdict::rebinding,
        ..PLAIN
    },
    Case {
        name: "connectionmigration",
        letters: "CM",
        server: "connectionmigration",
        files: Files::Sizes(&[2 * MIB]),
        check: verdict::migration,
        ..PLAIN
    },
    Case {
        name: "goodput",
        letters: "G",
        files: Files::Sizes(&[10 * MIB]),
        check: verdict::goodput,
        ..PLAIN
    },
    Case {
        name: "postquantum",
        letters: "PQ",
        client: "handshake",
        server: "handshake",
        files: Files::Sizes(&[KIB]),
        check: verdict::post_quantum,
        ..PLAIN
    },
    Case {
        name: "hello-reordered",
        letters: "PR",
        client: "handshake",
        server: "handshake",
        files: Files::Sizes(&[KIB]),
        link: || Conditions {
            up: Settings {
                reorder: Some(hybriq_sim::link::Reorder {
                    chance: one_in(2),
                    wait: Duration::from_millis(5),
                }),
                ..usual()
            },
            ..plain()
        },
        check: verdict::post_quantum,
        ..PLAIN
    },
    Case {
        name: "hello-first-lost",
        letters: "P1",
        client: "handshake",
        server: "handshake",
        files: Files::Sizes(&[KIB]),
        link: || Conditions {
            client_losses: vec![0],
            ..plain()
        },
        check: verdict::post_quantum_with_loss,
        ..PLAIN
    },
    Case {
        name: "hello-second-lost",
        letters: "P2",
        client: "handshake",
        server: "handshake",
        files: Files::Sizes(&[KIB]),
        link: || Conditions {
            client_losses: vec![1],
            ..plain()
        },
        check: verdict::post_quantum_with_loss,
        ..PLAIN
    },
];

/// Returns the names of all cases.
pub fn names() -> Vec<&'static str> {
    CASES.iter().map(|case| case.name).collect()
}

/// Returns the cases of these names, or all.
pub(super) fn select(wanted: &[String]) -> Result<Vec<&'static Case>, Failure> {
    if wanted.is_empty() {
        return Ok(CASES.iter().collect());
    }
    let find = |name: &String| {
        let found = CASES
            .iter()
            .find(|case| case.name == name || case.letters == name);
        found.ok_or_else(|| {
            let names = names().join(", ");
            format!("there is no case '{name}'; there are {names}").into()
        })
    };
    wanted.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::TestCase;

    #[test]
    fn every_case_is_one_that_the_endpoint_knows() {
        for case in &CASES {
            for name in [case.client, case.server] {
                assert!(TestCase::from_name(name).is_some(), "{name}");
            }
        }
        let mut letters: Vec<_> = CASES.iter().map(|case| case.letters).collect();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), CASES.len());
    }

    #[test]
    fn cases_are_found_by_name_and_letters() {
        let found = select(&["retry".to_owned(), "V2".to_owned()]).expect("two cases");
        assert_eq!(found.len(), 2);
        let error = select(&["nonsense".to_owned()]).expect_err("no case");
        assert!(error.to_string().contains("handshake"), "{error}");
    }
}
