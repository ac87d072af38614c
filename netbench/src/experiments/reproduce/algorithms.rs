//! Cost of key exchanges and signatures alone.

use super::Experiment;
use super::section::{Finding, Section, Source, ValueTable, three_digits};
use super::{Budget, Value};
use crate::handshake::measure::algorithms::{Algorithm, Algorithms, measure};
use crate::system::failure::Failure;

/// Published name and ours, bytes, and thousands of operations a second of client and server.
const PUBLISHED: [(&str, &str, f64, f64, f64); 3] = [
    ("ECDH P-256", "secp256r1", 128.0, 17.0, 17.0),
    ("X25519", "X25519", 64.0, 31.0, 31.0),
    ("ML-KEM-768", "MLKEM768", 2272.0, 13.0, 25.0),
];

/// The two bytes that encode the form of a point (RFC 8446 §4.2.8.2).
const POINT_FORMS: f64 = 2.0;

/// Runs the experiment.
#[expect(clippy::unused_async, reason = "every experiment is a future")]
pub(super) async fn run(experiment: &Experiment, budget: &Budget) -> Result<Section, Failure> {
    let iterations = budget.choose(200, 4000);
    let measured = measure(iterations)?;
    Ok(Section {
        source: Source {
            text: "AWS, 2024".to_owned(),
            experiment: "Bytes transferred by key exchanges, and operations per second of either \
                         side."
                .to_owned(),
        },
        published: vec![published()],
        ours: vec![key_exchanges(&measured), signatures(&measured)],
        finding: finding(&measured.key_exchanges),
        rule:
            "It agrees where the bytes are the published ones, the order of the rates is the same \
               (X25519 before P-256 and ML-KEM-768), and ML-KEM-768 is faster on the server."
                .to_owned(),
        notes: vec![
            format!(
                "AWS-LC on one core; medians of {iterations} operations of each algorithm, which \
                 take turns."
            ),
            "Client: key generation, and the agreement or the decapsulation. Server: key \
             generation and agreement, or the encapsulation."
                .to_owned(),
            "TLS sends points with one byte for their form, which the published bytes of P-256 \
             leave out."
                .to_owned(),
        ],
        ..Section::begin(experiment)
    })
}

fn published() -> ValueTable {
    let columns = [
        ("bytes transferred", ""),
        ("client", "kops/s"),
        ("server", "kops/s"),
    ];
    let table = ValueTable::new("Key exchange", "algorithm", &columns);
    let rows = PUBLISHED.into_iter();
    rows.fold(table, |table, (name, _, bytes, client, server)| {
        table.row(name, [bytes, client, server])
    })
}

fn key_exchanges(measured: &Algorithms) -> ValueTable {
    let columns = [
        ("bytes transferred", ""),
        ("client", "kops/s"),
        ("server", "kops/s"),
    ];
    let mut table = ValueTable::new("Key exchange", "algorithm", &columns);
    for it in &measured.key_exchanges {
        let figures: [Value; 3] = [
            bytes(it).into(),
            it.client_kops.into(),
            it.server_kops.into(),
        ];
        table.push(it.name.clone(), figures);
    }
    table
}

fn signatures(measured: &Algorithms) -> ValueTable {
    let columns = [
        ("public key", "B"),
        ("signature", "B"),
        ("sign", "kops/s"),
        ("verify", "kops/s"),
    ];
    let mut table = ValueTable::new("Signature", "algorithm", &columns);
    for it in &measured.signatures {
        let figures: [Value; 4] = [
            (it.client_bytes as f64).into(),
            (it.server_bytes as f64).into(),
            it.server_kops.into(),
            it.client_kops.into(),
        ];
        table.push(it.name.clone(), figures);
    }
    table
}

fn bytes(of: &Algorithm) -> f64 {
    (of.client_bytes + of.server_bytes) as f64
}

/// Compared values: each algorithm's bytes and rates.
struct Rates {
    bytes: f64,
    client: f64,
    server: f64,
}

fn finding(measured: &[Algorithm]) -> Finding {
    let ours = PUBLISHED.map(|(_, name, ..)| {
        let found = measured.iter().find(|it| it.name == name);
        found.map(|it| Rates {
            bytes: bytes(it),
            client: it.client_kops.median,
            server: it.server_kops.median,
        })
    });
    match ours {
        [Some(p256), Some(x25519), Some(kem)] => compare(&p256, &x25519, &kem),
        _ => Finding::unknown("an algorithm that is compared could not be measured"),
    }
}

fn compare(p256: &Rates, x25519: &Rates, kem: &Rates) -> Finding {
    let same = |ours: f64, published: f64| (ours - published).abs() < 0.5;
    let same_bytes = same(p256.bytes - POINT_FORMS, PUBLISHED[0].2)
        && same(x25519.bytes, PUBLISHED[1].2)
        && same(kem.bytes, PUBLISHED[2].2);
    let (client, server) = (kem.client / x25519.client, kem.server / x25519.server);
    let asymmetry = kem.server / kem.client;
    let same_order = p256.client < x25519.client && client < 1.0 && server < 1.0;
    let ratio = three_digits;
    let published = |of: f64, to: f64| three_digits(of / to);
    let why = if client < 1.0 && server < 1.0 {
        ""
    } else {
        ": its code has overtaken that of the curve since"
    };
    let bytes = if same_bytes { "the published" } else { "other" };
    Finding::of(
        same_bytes && same_order && asymmetry > 1.0,
        format!(
            "Bytes are {bytes} ones; secp256r1 does {} times the rate of X25519 (published {}), \
             ML-KEM-768 {} times on the client (published {}) and {} times on the server \
             (published {}){why}.",
            ratio(p256.client / x25519.client),
            published(PUBLISHED[0].3, PUBLISHED[1].3),
            ratio(client),
            published(PUBLISHED[2].3, PUBLISHED[1].3),
            ratio(server),
            published(PUBLISHED[2].4, PUBLISHED[1].4),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::{Rates, compare, finding, key_exchanges, signatures};
    use crate::experiments::reproduce::Verdict;
    use crate::handshake::measure::algorithms::measure;

    fn rates(bytes: f64, client: f64, server: f64) -> Rates {
        Rates {
            bytes,
            client,
            server,
        }
    }

    #[test]
    fn the_published_figures_agree_with_themselves() {
        let (p256, x25519) = (rates(130.0, 17.0, 17.0), rates(64.0, 31.0, 31.0));
        let verdict = |kem| compare(&p256, &x25519, &kem).verdict;
        assert_eq!(verdict(rates(2272.0, 13.0, 25.0)), Verdict::Agrees);
        assert_eq!(verdict(rates(2272.0, 13.0, 35.0)), Verdict::Differs);
        assert_eq!(verdict(rates(2271.0, 13.0, 25.0)), Verdict::Differs);
    }

    #[test]
    fn ours_has_every_algorithm_and_a_finding() {
        let measured = measure(2).unwrap();
        assert_eq!(key_exchanges(&measured).rows.len(), 9);
        assert_eq!(signatures(&measured).rows.len(), 7);
        assert_ne!(finding(&measured.key_exchanges).verdict, Verdict::Unknown);
        assert_eq!(finding(&[]).verdict, Verdict::Unknown);
    }
}
