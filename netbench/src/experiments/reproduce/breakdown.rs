//! Time of a TLS 1.3 handshake by message, and the savings by tickets and early key shares.

use hybriq::tls::Suite;
use hybriq::{Backend, Group};

use super::Experiment;
use super::section::{Finding, Section, Source, ValueTable, three_digits};
use super::{Budget, Value};
use crate::handshake::{Gaps, Mode, Plan, measure, results};
use crate::report::results::{Breakdown, Side};
use crate::scenario::axes::Certificate;
use crate::system::failure::Failure;

const GROUPS: [Group; 3] = [Group::SECP256R1, Group::X25519, Group::X25519MLKEM768];
const SUITES: [Suite; 2] = [Suite::Aes128GcmSha256, Suite::ChaCha20Poly1305Sha256];
const MODES: [Mode; 4] = [
    Mode {
        psk: false,
        shares_ahead: false,
    },
    Mode {
        psk: false,
        shares_ahead: true,
    },
    Mode {
        psk: true,
        shares_ahead: false,
    },
    Mode {
        psk: true,
        shares_ahead: true,
    },
];

/// Rows of the published table, and the part of the handshake they belong to: only a full
/// handshake, or the key exchange.
const MESSAGES: [(&str, [f64; 4]); 7] = [
    ("ClientHello", [172.69, 23.15, 172.50, 22.77]),
    ("ServerHello", [176.55, 25.81, 176.15, 25.05]),
    ("EncryptedExtensions", [1.55, 1.14, 1.33, 1.33]),
    ("Certificate", [69.40, 67.81, 64.86, 62.82]),
    ("CertificateVerify", [30.16, 31.10, 29.60, 31.27]),
    ("Finished received", [5.06, 3.66, 5.04, 3.65]),
    ("Finished sent", [2.02, 2.00, 1.97, 1.92]),
];
const TOTALS: [f64; 4] = [457.43, 154.67, 451.45, 148.81];
/// Published expectation for a resumed handshake with key shares made ahead.
const PROPOSED: f64 = 31.95;

/// Messages that contain public-key cryptography.
const COSTLY: [&str; 4] = [
    "ClientHello",
    "ServerHello",
    "Certificate",
    "CertificateVerify",
];

/// Runs the experiment.
#[expect(clippy::unused_async, reason = "every experiment is a future")]
pub(super) async fn run(experiment: &Experiment, budget: &Budget) -> Result<Section, Failure> {
    let plans = plans();
    let iterations = budget.choose(50, 1000);
    let outcome = measure(&plans, iterations, || ());
    let results = results(&plans, iterations, outcome, Gaps::Refused)?;
    let measured = &results.breakdowns;
    let mut ours: Vec<ValueTable> = MODES
        .iter()
        .filter(|mode| !mode.shares_ahead)
        .map(|mode| messages(measured, *mode))
        .collect();
    ours.push(totals(measured, Side::Client));
    ours.push(totals(measured, Side::Server));
    Ok(Section {
        source: Source {
            text: "wolfSSL, 2018".to_owned(),
            experiment: "The client's time for each message of a handshake, on a Cortex-A9 with \
                         400 MHz, and what a ticket with key shares made ahead would come to."
                .to_owned(),
        },
        published: vec![published()],
        ours,
        finding: finding(measured),
        rule: "It agrees where P-256 costs more than X25519, the messages with public-key cryptography \
               are more than half of the time, and a ticket with shares made ahead leaves less than \
               60 %: processors of today spend relatively less on public keys, and more on the rest."
            .to_owned(),
        notes: notes(iterations),
        problems: results.problems.clone(),
        results: Some(Box::new(results)),
        ..Section::begin(experiment)
    })
}

fn plans() -> Vec<Plan> {
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
    plans
}

fn published() -> ValueTable {
    let columns = [
        ("AES128GCM secp256r1", "ms"),
        ("AES128GCM Curve25519", "ms"),
        ("CHACHA20 secp256r1", "ms"),
        ("CHACHA20 Curve25519", "ms"),
    ];
    let table = ValueTable::new("Client, full handshake", "message", &columns);
    let table = MESSAGES
        .into_iter()
        .fold(table, |table, (name, figures)| table.row(name, figures));
    table.row("total", TOTALS).row(
        "total as proposed: PSK, shares made ahead",
        [None, Some(PROPOSED), None, None],
    )
}

fn find(
    measured: &[Breakdown],
    side: Side,
    (group, suite): (Group, Suite),
    mode: Mode,
) -> Option<&Breakdown> {
    measured.iter().find(|it| {
        it.side == side && it.group == group && it.suite == suite && it.mode == mode.name()
    })
}

/// Returns the published table, for our client.
fn messages(measured: &[Breakdown], mode: Mode) -> ValueTable {
    let pairs = SUITES.map(|suite| GROUPS.map(|group| (group, suite)));
    let cells: Vec<_> = pairs.into_iter().flatten().collect();
    let heads: Vec<String> = cells
        .iter()
        .map(|(group, suite)| format!("{} {group}", short(*suite)))
        .collect();
    let columns: Vec<_> = heads.iter().map(|head| (head.as_str(), "µs")).collect();
    let title = format!("Client, {}", mode.name());
    let mut table = ValueTable::new(&title, "message", &columns);
    let found: Vec<_> = cells
        .iter()
        .map(|cell| find(measured, Side::Client, *cell, mode))
        .collect();
    let first = found.iter().flatten().next();
    let names = first.map(|it| it.messages.iter().map(|part| part.name.clone()));
    for name in names.into_iter().flatten() {
        let of = |it: &Breakdown| {
            let part = it.messages.iter().find(|part| part.name == name);
            part.map(|part| part.us)
        };
        table.push(name.clone(), found.iter().map(|it| it.and_then(of)));
    }
    table.push("total", found.iter().map(|it| it.map(|it| it.total_us)));
    table
}

fn short(suite: Suite) -> &'static str {
    match suite {
        Suite::Aes128GcmSha256 => "AES128GCM",
        Suite::Aes256GcmSha384 => "AES256GCM",
        Suite::ChaCha20Poly1305Sha256 => "CHACHA20",
    }
}

/// Returns all groups by the way handshakes begin.
fn totals(measured: &[Breakdown], side: Side) -> ValueTable {
    let columns = MODES.map(|mode| (mode.name(), "µs"));
    let title = format!("Total of the {side}, {}", SUITES[0]);
    let mut table = ValueTable::new(&title, "group", &columns);
    for group in Group::ALL {
        let total = |mode| find(measured, side, (group, SUITES[0]), mode).map(|it| it.total_us);
        table.push(group.to_string(), MODES.map(total).map(Value::from));
    }
    table
}

fn finding(measured: &[Breakdown]) -> Finding {
    let client = |group, mode| find(measured, Side::Client, (group, SUITES[0]), mode);
    let (Some(p256), Some(x25519), Some(ahead)) = (
        client(Group::SECP256R1, MODES[0]),
        client(Group::X25519, MODES[0]),
        client(Group::X25519, MODES[3]),
    ) else {
        return Finding::unknown("a handshake that is compared could not be measured");
    };
    let costly: f64 = x25519
        .messages
        .iter()
        .filter(|part| COSTLY.contains(&part.name.as_str()))
        .map(|part| part.us.median)
        .sum();
    let ours = Shape {
        curves: p256.total_us.median / x25519.total_us.median,
        costly: costly / x25519.total_us.median,
        proposal: ahead.total_us.median / x25519.total_us.median,
    };
    let published = Shape {
        curves: TOTALS[0] / TOTALS[1],
        costly: MESSAGES
            .iter()
            .filter(|(name, _)| COSTLY.contains(name))
            .map(|(_, figures)| figures[1])
            .sum::<f64>()
            / TOTALS[1],
        proposal: PROPOSED / TOTALS[1],
    };
    compare(&published, &ours)
}

/// Compared values, relative to X25519.
struct Shape {
    /// P-256's total relative to X25519's.
    curves: f64,
    /// Share of the messages with public-key cryptography.
    costly: f64,
    /// Share of the time that remains with a ticket and shares made ahead.
    proposal: f64,
}

fn compare(published: &Shape, ours: &Shape) -> Finding {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    // The rest of a handshake does not depend on the speed of public-key operations.
    let agrees = ours.curves > 1.0 && ours.costly > 0.5 && ours.proposal < 0.6;
    Finding::of(
        agrees,
        format!(
            "Hellos, Certificate and CertificateVerify take {} of the client's time (published {}); \
             secp256r1 costs {} times X25519 (published {}); a ticket and shares made ahead leave \
             {} of a full handshake (proposed {}).",
            percent(ours.costly),
            percent(published.costly),
            three_digits(ours.curves),
            three_digits(published.curves),
            percent(ours.proposal),
            percent(published.proposal),
        ),
    )
}

fn notes(iterations: usize) -> Vec<String> {
    vec![
        format!(
            "rustls with AWS-LC, both sides in one process without a network; medians of \
             {iterations} handshakes of each kind, which take turns."
        ),
        "rustls verifies the chain and the signature when the CertificateVerify is there, and not \
         with the Certificate."
            .to_owned(),
        "The published table has no NewSessionTicket; ours has, and it is part of the total."
            .to_owned(),
        "A server cannot make an ML-KEM share ahead: it is an encapsulation to the client's key."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::{Shape, compare, plans, published};
    use crate::experiments::reproduce::Verdict;
    use crate::handshake::{measure, results};

    #[test]
    fn the_published_messages_add_up_to_about_the_published_totals() {
        let table = published();
        assert_eq!(table.rows.len(), 9);
        for column in 0..4 {
            let sum: f64 = super::MESSAGES.iter().map(|(_, row)| row[column]).sum();
            assert!((sum / super::TOTALS[column] - 1.0).abs() < 0.01, "{sum}");
        }
    }

    #[test]
    fn every_cell_of_our_tables_is_measured() {
        let plans = plans();
        let results = results(
            &plans,
            1,
            measure(&plans, 1, || ()),
            crate::handshake::Gaps::Refused,
        )
        .unwrap();
        assert!(results.complete, "{:?}", results.problems);
        for side in [super::Side::Client, super::Side::Server] {
            let table = super::totals(&results.breakdowns, side);
            for row in &table.rows {
                assert!(row.figures.iter().all(|it| it.parts().0 != "–"), "{row:?}");
            }
        }
        let table = super::messages(&results.breakdowns, super::MODES[2]);
        assert_eq!(table.rows.len(), 7);
    }

    #[test]
    fn a_handshake_that_is_not_about_public_keys_differs() {
        let shape = |curves, costly, proposal| Shape {
            curves,
            costly,
            proposal,
        };
        let published = shape(3.0, 0.9, 0.2);
        let verdict = |ours| compare(&published, &ours).verdict;
        assert_eq!(verdict(shape(1.2, 0.8, 0.4)), Verdict::Agrees);
        assert_eq!(verdict(shape(0.9, 0.8, 0.4)), Verdict::Differs);
        assert_eq!(verdict(shape(1.2, 0.3, 0.4)), Verdict::Differs);
        assert_eq!(verdict(shape(1.2, 0.8, 0.9)), Verdict::Differs);
    }
}
