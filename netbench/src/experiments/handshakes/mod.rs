//! Experiments with handshakes in this process: where their time goes, what algorithms cost, and
//! what is negotiated and verified.

use hybriq::tls::Suite;
use hybriq::{Backend, Group};

use super::file::{Experiment, Handshakes};
use super::measured::{begin, fill};
use crate::handshake::cases::hierarchy::{self, Hierarchies, KINDS, Mutual};
use crate::handshake::cases::negotiation::{self, Case};
use crate::handshake::measure::algorithms::{self, Algorithm, Algorithms};
use crate::handshake::{Gaps, Mode, Plan, measure, results};
use crate::report::charts::{Table, Value, three_digits};
use crate::report::document::{Finding, Section, Verdict};
use crate::report::results::{Breakdown, Results, Side};
use crate::scenario::axes::Certificate;
use crate::system::failure::Failure;

/// What was measured: tables, what they come to, and the times behind them.
type Measured = (Vec<Table>, Finding, Option<Results>);

/// Measures, and returns the section.
pub(super) async fn section(
    experiment: &Experiment,
    what: Handshakes,
    quick: bool,
) -> Result<Section, Failure> {
    let iterations = match (what, quick) {
        (Handshakes::Algorithms, true) => 200,
        (Handshakes::Algorithms, false) => 4000,
        (_, true) => 50,
        (_, false) => 1000,
    };
    let (ours, finding, results) = match what {
        Handshakes::Breakdown => breakdown(iterations)?,
        Handshakes::Algorithms => {
            let measured = algorithms::measure(iterations)?;
            (costs(&measured), compared(&measured.key_exchanges), None)
        }
        Handshakes::Negotiation => {
            let cases = negotiation::run().await?;
            (vec![played(&cases)], agreed(&cases), None)
        }
        Handshakes::Hierarchy => {
            let connected = hierarchy::run().await?;
            let outcome = hierarchy::times(iterations);
            let results = results(&hierarchy::plans(), iterations, outcome, Gaps::Refused)?;
            let tables = vec![mutual(&connected), kinds(&results), verified(&connected)];
            (tables, hierarchies(&connected, &results), Some(results))
        }
    };
    let section = begin(experiment);
    let told = |name: &str| (name == "iterations").then(|| iterations.to_string());
    Ok(Section {
        ours,
        finding,
        notes: section.notes.iter().map(|it| fill(it, told)).collect(),
        problems: results.iter().flat_map(|it| it.problems.clone()).collect(),
        results: results.into_iter().collect(),
        ..section
    })
}

const GROUPS: [Group; 3] = [Group::SECP256R1, Group::X25519, Group::X25519MLKEM768];
const SUITES: [Suite; 2] = [Suite::Aes128GcmSha256, Suite::ChaCha20Poly1305Sha256];

const fn mode(psk: bool, shares_ahead: bool) -> Mode {
    Mode { psk, shares_ahead }
}

const MODES: [Mode; 4] = [
    mode(false, false),
    mode(false, true),
    mode(true, false),
    mode(true, true),
];

/// Messages that contain public-key cryptography.
const COSTLY: [&str; 4] = [
    "ClientHello",
    "ServerHello",
    "Certificate",
    "CertificateVerify",
];

fn breakdown(iterations: usize) -> Result<Measured, Failure> {
    let plan = |group, suite, mode| Plan {
        provider: Backend::Rustls,
        group,
        suite,
        certificate: Certificate::EcdsaP256,
        chain: 1,
        client_auth: false,
        mode,
    };
    let mut plans = Vec::new();
    for mode in MODES {
        plans.extend(Group::ALL.map(|group| plan(group, SUITES[0], mode)));
        plans.extend(GROUPS.map(|group| plan(group, SUITES[1], mode)));
    }
    let outcome = measure(&plans, iterations, || ());
    let results = results(&plans, iterations, outcome, Gaps::Refused)?;
    let all = &results.breakdowns;
    let tables = vec![
        messages(all, MODES[0]),
        messages(all, MODES[2]),
        totals(all, Side::Client),
        totals(all, Side::Server),
    ];
    Ok((tables, shape(all), Some(results)))
}

fn find(all: &[Breakdown], side: Side, of: (Group, Suite), mode: Mode) -> Option<&Breakdown> {
    all.iter()
        .find(|it| it.side == side && (it.group, it.suite) == of && it.mode == mode.name())
}

/// Returns the published table, for our client.
fn messages(all: &[Breakdown], mode: Mode) -> Table {
    let cells = SUITES.map(|suite| GROUPS.map(|group| (group, suite)));
    let cells: Vec<_> = cells.into_iter().flatten().collect();
    let head = |(group, suite): &(Group, Suite)| {
        let suite = match suite {
            Suite::Aes128GcmSha256 => "AES128GCM",
            Suite::Aes256GcmSha384 => "AES256GCM",
            Suite::ChaCha20Poly1305Sha256 => "CHACHA20",
        };
        format!("{suite} {group}")
    };
    let heads: Vec<String> = cells.iter().map(head).collect();
    let columns: Vec<_> = heads.iter().map(|head| (head.as_str(), "µs")).collect();
    let mut table = Table::new(&format!("Client, {}", mode.name()), "message", &columns);
    let found: Vec<_> = cells
        .iter()
        .map(|cell| find(all, Side::Client, *cell, mode))
        .collect();
    let first = found.iter().flatten().next();
    for name in first
        .into_iter()
        .flat_map(|it| &it.messages)
        .map(|part| &part.name)
    {
        let of = |it: &Breakdown| {
            let mut parts = it.messages.iter();
            Some(parts.find(|part| part.name == *name)?.us)
        };
        table.push(name.clone(), found.iter().map(|it| it.and_then(of)));
    }
    table.push("total", found.iter().map(|it| it.map(|it| it.total_us)));
    table
}

fn totals(all: &[Breakdown], side: Side) -> Table {
    let columns = MODES.map(|mode| (mode.name(), "µs"));
    let title = format!("Total of the {side}, {}", SUITES[0]);
    let mut table = Table::new(&title, "group", &columns);
    for group in Group::ALL {
        let total = |mode| find(all, side, (group, SUITES[0]), mode).map(|it| it.total_us);
        table.push(group.to_string(), MODES.map(total));
    }
    table
}

fn shape(all: &[Breakdown]) -> Finding {
    let client = |group, mode| find(all, Side::Client, (group, SUITES[0]), mode);
    let (Some(p256), Some(x25519), Some(ahead)) = (
        client(Group::SECP256R1, MODES[0]),
        client(Group::X25519, MODES[0]),
        client(Group::X25519, MODES[3]),
    ) else {
        let missing = "a handshake that is compared could not be measured";
        return Finding::of(Verdict::Unknown, missing);
    };
    let is_costly = |name: &str| COSTLY.contains(&name);
    let parts = x25519.messages.iter().filter(|part| is_costly(&part.name));
    let costly: f64 = parts.map(|part| part.us.median).sum();
    let total = x25519.total_us.median;
    split(
        p256.total_us.median / total,
        costly / total,
        ahead.total_us.median / total,
    )
}

/// Judges P-256's total relative to X25519's, the share of the messages with public-key
/// cryptography, and the share that remains with a ticket and shares made ahead. The rest of a
/// handshake does not depend on the speed of public-key operations.
fn split(curves: f64, costly: f64, proposal: f64) -> Finding {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    Finding::of(
        curves > 1.0 && costly > 0.5 && proposal < 0.6,
        format!(
            "Hellos, Certificate and CertificateVerify take {} of the client's time (published \
             96 %); secp256r1 costs {} times X25519 (published 2.96); a ticket and shares made \
             ahead leave {} of a full handshake (proposed 21 %).",
            percent(costly),
            three_digits(curves),
            percent(proposal),
        ),
    )
}

/// Returns the tables of key exchanges and of signatures.
fn costs(measured: &Algorithms) -> Vec<Table> {
    let columns = [
        ("bytes transferred", ""),
        ("client", "kops/s"),
        ("server", "kops/s"),
    ];
    let mut exchanges = Table::new("Key exchange", "algorithm", &columns);
    for it in &measured.key_exchanges {
        let figures: [Value; 3] = [
            bytes(it).into(),
            it.client_kops.into(),
            it.server_kops.into(),
        ];
        exchanges.push(it.name.clone(), figures);
    }
    let columns = [
        ("public key", "B"),
        ("signature", "B"),
        ("sign", "kops/s"),
        ("verify", "kops/s"),
    ];
    let mut signatures = Table::new("Signature", "algorithm", &columns);
    for it in &measured.signatures {
        let figures: [Value; 4] = [
            (it.client_bytes as f64).into(),
            (it.server_bytes as f64).into(),
            it.server_kops.into(),
            it.client_kops.into(),
        ];
        signatures.push(it.name.clone(), figures);
    }
    vec![exchanges, signatures]
}

fn bytes(of: &Algorithm) -> f64 {
    (of.client_bytes + of.server_bytes) as f64
}

/// Bytes of a key exchange, and thousands of operations a second of client and server.
#[derive(Clone, Copy)]
struct Rates {
    bytes: f64,
    client: f64,
    server: f64,
}

fn compared(measured: &[Algorithm]) -> Finding {
    let ours = ["secp256r1", "X25519", "MLKEM768"].map(|name| {
        let found = measured.iter().find(|it| it.name == name);
        found.map(|it| Rates {
            bytes: bytes(it),
            client: it.client_kops.median,
            server: it.server_kops.median,
        })
    });
    match ours {
        [Some(p256), Some(x25519), Some(kem)] => exchanged(p256, x25519, kem),
        _ => Finding::of(
            Verdict::Unknown,
            "an algorithm that is compared could not be measured",
        ),
    }
}

fn exchanged(p256: Rates, x25519: Rates, kem: Rates) -> Finding {
    let same = |ours: f64, published: f64| (ours - published).abs() < 0.5;
    // Two bytes encode the form of a point (RFC 8446 §4.2.8.2).
    let same_bytes =
        same(p256.bytes - 2.0, 128.0) && same(x25519.bytes, 64.0) && same(kem.bytes, 2272.0);
    let (client, server) = (kem.client / x25519.client, kem.server / x25519.server);
    let same_order = p256.client < x25519.client && client < 1.0 && server < 1.0;
    let why = if client < 1.0 && server < 1.0 {
        ""
    } else {
        ": its code has overtaken that of the curve since"
    };
    let bytes = if same_bytes { "the published" } else { "other" };
    Finding::of(
        same_bytes && same_order && kem.server > kem.client,
        format!(
            "Bytes are {bytes} ones; secp256r1 does {} times the rate of X25519 (published 0.548), \
             ML-KEM-768 {} times on the client (published 0.419) and {} times on the server \
             (published 0.806){why}.",
            three_digits(p256.client / x25519.client),
            three_digits(client),
            three_digits(server),
        ),
    )
}

fn played(cases: &[Case]) -> Table {
    let columns = ["client", "server", "expected", "happened", ""].map(|title| (title, ""));
    let mut table = Table::new("What happened", "case", &columns);
    for case in cases {
        let passed = if case.passed {
            "as expected"
        } else {
            "otherwise"
        };
        let texts = [
            case.client.as_str(),
            &case.server,
            &case.expected,
            &case.happened,
            passed,
        ];
        table.push(case.name.clone(), texts);
    }
    table
}

fn agreed(cases: &[Case]) -> Finding {
    let (passed, all) = (cases.iter().filter(|case| case.passed).count(), cases.len());
    if all == 0 {
        return Finding::of(Verdict::Unknown, "no case could be played");
    }
    Finding::of(
        passed == all,
        format!("{passed} of {all} connections agreed on the group that was published for them."),
    )
}

fn mutual(of: &Hierarchies) -> Table {
    let columns = [
        ("server signed with", ""),
        ("client sent", "B"),
        ("client received", "B"),
        ("mutually verified", ""),
    ];
    let mut table = Table::new("QUIC connections with mutual TLS", "certificates", &columns);
    for it in &of.connections {
        let signature = match it.signature.as_str() {
            "" => Value::Missing("the library does not tell".to_owned()),
            name => name.into(),
        };
        let bytes = |bytes: u64| Value::from(it.error.is_none().then_some(bytes as f64));
        let outcome = it.error.clone().unwrap_or_else(|| "yes".to_owned());
        let figures = [
            signature,
            bytes(it.sent_bytes),
            bytes(it.received_bytes),
            outcome.into(),
        ];
        let name = format!("{}, {} to {}", it.certificate, it.client, it.server);
        table.push(name, figures);
    }
    table
}

fn kinds(results: &Results) -> Table {
    let columns = [
        ("handshake messages", "B"),
        ("client", "µs"),
        ("server", "µs"),
        ("bytes", "×"),
        ("client", "×"),
        ("server", "×"),
    ];
    let title = "Cost of a handshake with mutual TLS, rustls, X25519MLKEM768";
    let mut table = Table::new(title, "certificates", &columns);
    let base = Cost::of(results, 0);
    for (index, kind) in KINDS.iter().enumerate() {
        let Some(cost) = Cost::of(results, index) else {
            continue;
        };
        let times = base.as_ref().map(|base| cost.times(base));
        let ratio =
            |index: usize| Value::from(times.map(|all| (all[index] * 100.0).round() / 100.0));
        let figures: [Value; 6] = [
            cost.bytes.into(),
            cost.client.total_us.into(),
            cost.server.total_us.into(),
            ratio(0),
            ratio(1),
            ratio(2),
        ];
        table.push(kind.to_string(), figures);
    }
    table
}

struct Cost<'a> {
    client: &'a Breakdown,
    server: &'a Breakdown,
    bytes: f64,
}

impl<'a> Cost<'a> {
    fn of(results: &'a Results, kind: usize) -> Option<Self> {
        let name = KINDS.get(kind)?.to_string();
        let side = |side| {
            let mut all = results.breakdowns.iter();
            all.find(|it| it.side == side && it.certificate.starts_with(&name))
        };
        let (client, server) = (side(Side::Client)?, side(Side::Server)?);
        let bytes = client.messages.iter().map(|part| part.bytes as f64).sum();
        Some(Self {
            client,
            server,
            bytes,
        })
    }

    /// Returns bytes and times of client and server, relative to those of another.
    fn times(&self, base: &Self) -> [f64; 3] {
        [
            self.bytes / base.bytes,
            self.client.total_us.median / base.client.total_us.median,
            self.server.total_us.median / base.server.total_us.median,
        ]
    }
}

fn verified(of: &Hierarchies) -> Table {
    let columns = [("OpenSSL", ""), ("", "")];
    let mut table = Table::new("Verified by others", "certificates", &columns);
    for it in &of.openssl {
        let valid = match it.valid {
            Some(true) => "valid",
            Some(false) => "not valid",
            None => "not asked",
        };
        table.push(it.certificate.clone(), [valid, &it.detail]);
    }
    table
}

fn hierarchies(connected: &Hierarchies, results: &Results) -> Finding {
    let is_ml_dsa = |it: &&Mutual| it.certificate.starts_with("ml-dsa");
    let ml_dsa: Vec<&Mutual> = connected.connections.iter().filter(is_ml_dsa).collect();
    let worked = ml_dsa.iter().filter(|it| it.error.is_none()).count();
    let refused = connected.openssl.iter().any(|it| it.valid == Some(false));
    let cost = match (Cost::of(results, 0), Cost::of(results, 2)) {
        (Some(base), Some(cost)) => {
            let [bytes, client, server] = cost.times(&base).map(three_digits);
            format!(
                "; ML-DSA-65 costs {bytes} times the bytes, {client} times the client's time and \
                 {server} times the server's of ECDSA P-256"
            )
        }
        _ => String::new(),
    };
    let all = ml_dsa.len();
    Finding::of(
        worked == all && all > 0 && !refused,
        format!(
            "{worked} of {all} connections with ML-DSA hierarchies were verified by both sides, \
             also where the other side is another library{cost}."
        ),
    )
}

#[cfg(test)]
mod tests;
