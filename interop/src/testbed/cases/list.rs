//! All cases.

use std::time::Duration;

use hybriq_sim::{
    link::{Blackouts, GilbertElliott, Settings},
    per_mille,
};

use super::{
    Case, Files,
    links::{both, corrupting, lossy, plain, rebinding, reordering, usual},
};
use crate::testbed::{
    link::{Conditions, Part},
    verdict,
};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
/// Time that most runs get.
const MINUTE: Duration = Duration::from_mins(1);

/// A case over the usual link; the others differ from it.
const PLAIN: Case = Case {
    name: "transfer",
    letters: "DC",
    client: "transfer",
    server: "transfer",
    client_groups: "",
    server_groups: "",
    files: Files::Sizes(&[2 * MIB, 3 * MIB, 5 * MIB]),
    host: "server4",
    link: plain,
    losses: &[],
    cross_traffic: false,
    long_chain: false,
    deadline: MINUTE,
    check: verdict::one_handshake,
};

/// All cases, in the order of the runner; those behind `crosstraffic` are our own.
pub(super) const CASES: [Case; 65] = [
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
        name: "qpack",
        letters: "QP",
        client: "qpack",
        server: "qpack",
        files: Files::Many(20, KIB),
        link: || lossy(per_mille(20)),
        check: verdict::qpack,
        ..PLAIN
    },
    Case {
        name: "webtransport",
        letters: "WT",
        client: "webtransport",
        server: "webtransport",
        files: Files::Many(20, 50 * KIB),
        link: || lossy(per_mille(20)),
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
        check: verdict::port_rebinding,
        ..PLAIN
    },
    Case {
        name: "rebind-addr",
        letters: "BA",
        files: Files::Sizes(&[10 * MIB]),
        link: || rebinding(Part::Address),
        check: verdict::address_rebinding,
        ..PLAIN
    },
    Case {
        name: "connectionmigration",
        letters: "CM",
        client: "connectionmigration",
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
        name: "crosstraffic",
        letters: "X",
        files: Files::Sizes(&[25 * MIB]),
        cross_traffic: true,
        deadline: Duration::from_mins(3),
        check: verdict::goodput,
        ..PLAIN
    },
    Case {
        name: "duplication",
        letters: "DU",
        files: Files::Sizes(&[2 * MIB]),
        link: || {
            both(Settings {
                duplicate: per_mille(100),
                ..usual()
            })
        },
        ..PLAIN
    },
    Case {
        name: "reordering",
        letters: "RO",
        files: Files::Sizes(&[2 * MIB]),
        link: || both(reordering()),
        ..PLAIN
    },
    Case {
        name: "bursts",
        letters: "LB",
        files: Files::Sizes(&[2 * MIB]),
        link: || {
            let bursts = GilbertElliott::new(per_mille(5), per_mille(250));
            both(Settings {
                bursts: Some(bursts),
                ..usual()
            })
        },
        ..PLAIN
    },
    Case {
        name: "truncation",
        letters: "T",
        files: Files::Sizes(&[2 * MIB]),
        link: || Conditions {
            truncate: per_mille(50),
            ..plain()
        },
        check: verdict::arrived,
        ..PLAIN
    },
    Case {
        name: "replay",
        letters: "RP",
        files: Files::Sizes(&[2 * MIB]),
        link: || Conditions {
            replay: per_mille(100),
            ..plain()
        },
        check: verdict::arrived,
        ..PLAIN
    },
    Case {
        name: "everything-broken",
        letters: "EB",
        client: "multiconnect",
        server: "multiconnect",
        files: Files::Many(20, 50 * KIB),
        link: || Conditions {
            truncate: per_mille(30),
            replay: per_mille(100),
            ..both(Settings {
                corrupt: per_mille(50),
                duplicate: per_mille(50),
                loss: per_mille(20),
                ..reordering()
            })
        },
        deadline: Duration::from_mins(3),
        check: verdict::arrived,
        ..PLAIN
    },
    POST_QUANTUM,
    Case {
        name: "postquantum-reordered",
        letters: "PR",
        link: || Conditions {
            up: reordering(),
            ..plain()
        },
        ..POST_QUANTUM
    },
    Case {
        name: "postquantum-retry",
        letters: "PS",
        client: "postquantum-retry",
        server: "postquantum-retry",
        check: verdict::post_quantum_retry,
        ..POST_QUANTUM
    },
    group("group-x25519mlkem768", "G1", "X25519MLKEM768"),
    group("group-secp256r1mlkem768", "G2", "SecP256r1MLKEM768"),
    group("group-secp384r1mlkem1024", "G3", "SecP384r1MLKEM1024"),
    group("group-x25519", "G4", "X25519"),
    group("group-secp256r1", "G5", "secp256r1"),
    retried(
        "helloretry-x25519mlkem768",
        "HR1",
        ["secp256r1,X25519MLKEM768", "X25519MLKEM768"],
    ),
    retried(
        "helloretry-secp256r1mlkem768",
        "HR2",
        ["X25519MLKEM768,SecP256r1MLKEM768", "SecP256r1MLKEM768"],
    ),
    retried(
        "helloretry-secp384r1mlkem1024",
        "HR3",
        ["X25519MLKEM768,SecP384r1MLKEM1024", "SecP384r1MLKEM1024"],
    ),
    retried(
        "helloretry-secp256r1",
        "HR4",
        ["X25519MLKEM768,secp256r1", "secp256r1"],
    ),
    lost("lost-1", "1", &[0]),
    lost("lost-2", "2", &[1]),
    lost("lost-3", "3rd", &[2]),
    lost("lost-4", "4", &[3]),
    lost("lost-5", "5", &[4]),
    lost("lost-6", "6th", &[5]),
    lost("lost-1-2", "12", &[0, 1]),
    lost("lost-1-3", "13", &[0, 2]),
    lost("lost-1-4", "14", &[0, 3]),
    lost("lost-1-5", "15", &[0, 4]),
    lost("lost-1-6", "16", &[0, 5]),
    lost("lost-2-3", "23", &[1, 2]),
    lost("lost-2-4", "24", &[1, 3]),
    lost("lost-2-5", "25", &[1, 4]),
    lost("lost-2-6", "26", &[1, 5]),
    lost("lost-3-4", "34", &[2, 3]),
    lost("lost-3-5", "35", &[2, 4]),
    lost("lost-3-6", "36", &[2, 5]),
    lost("lost-4-5", "45", &[3, 4]),
    lost("lost-4-6", "46", &[3, 5]),
    lost("lost-5-6", "56", &[4, 5]),
];

/// One handshake where only post-quantum groups are allowed.
const POST_QUANTUM: Case = Case {
    name: "postquantum",
    letters: "PQ",
    client: "postquantum",
    server: "postquantum",
    files: Files::Sizes(&[KIB]),
    check: verdict::post_quantum,
    ..PLAIN
};

/// One handshake with a certain group.
const fn group(name: &'static str, letters: &'static str, group: &'static str) -> Case {
    Case {
        name,
        letters,
        client: "handshake",
        server: "handshake",
        client_groups: group,
        server_groups: group,
        files: Files::Sizes(&[KIB]),
        check: verdict::group,
        ..PLAIN
    }
}

/// One handshake where the server's only group is not that of the client's key share.
const fn retried(
    name: &'static str,
    letters: &'static str,
    [client_groups, server_groups]: [&'static str; 2],
) -> Case {
    Case {
        client_groups,
        check: verdict::hello_retry,
        ..group(name, letters, server_groups)
    }
}

/// One post-quantum handshake without some of the first datagrams.
const fn lost(name: &'static str, letters: &'static str, losses: &'static [usize]) -> Case {
    Case {
        name,
        letters,
        losses,
        check: verdict::post_quantum_with_loss,
        ..POST_QUANTUM
    }
}
