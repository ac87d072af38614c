//! Certificates with ML-DSA, from the root to both ends.

use super::Experiment;
use super::section::{Finding, Section, Source, ValueTable, three_digits};
use super::{Budget, Value};
use crate::handshake::cases::hierarchy;
use crate::handshake::cases::hierarchy::{Hierarchies, KINDS, Mutual};
use crate::handshake::{Gaps, results};
use crate::report::results::{Breakdown, Results, Side};
use crate::system::failure::Failure;

/// Runs the experiment.
pub(super) async fn run(experiment: &Experiment, budget: &Budget) -> Result<Section, Failure> {
    let connected = hierarchy::run().await?;
    let iterations = budget.choose(50, 1000);
    let outcome = hierarchy::times(iterations);
    let results = results(&hierarchy::plans(), iterations, outcome, Gaps::Refused)?;
    Ok(Section {
        source: Source {
            text: "AWS, 2025".to_owned(),
            experiment: "A hierarchy of root, subordinate and leaf of ML-DSA-65, and mutual TLS \
                         with such leaves, verified by OpenSSL 3.5 on the other side."
                .to_owned(),
        },
        published: Vec::new(),
        ours: vec![
            connections(&connected),
            costs(&results),
            verified(&connected),
        ],
        finding: finding(&connected, &results),
        rule:
            "It agrees where every connection with ML-DSA is verified by both sides, and OpenSSL \
               refuses no chain."
                .to_owned(),
        notes: notes(iterations),
        problems: results.problems.clone(),
        results: Some(Box::new(results)),
        ..Section::begin(experiment)
    })
}

fn connections(of: &Hierarchies) -> ValueTable {
    let columns = [
        ("server signed with", ""),
        ("client sent", "B"),
        ("client received", "B"),
        ("mutually verified", ""),
    ];
    let mut table = ValueTable::new("QUIC connections with mutual TLS", "certificates", &columns);
    for it in &of.connections {
        let name = format!("{}, {} to {}", it.certificate, it.client, it.server);
        let signature = if it.signature.is_empty() {
            Value::Missing("the library does not tell".to_owned())
        } else {
            it.signature.clone().into()
        };
        let outcome = it.error.clone().unwrap_or_else(|| "yes".to_owned());
        let figures = match it.error {
            None => [
                signature,
                (it.sent_bytes as f64).into(),
                (it.received_bytes as f64).into(),
                outcome.into(),
            ],
            Some(_) => [
                signature,
                Value::Missing(String::new()),
                Value::Missing(String::new()),
                outcome.into(),
            ],
        };
        table.push(name, figures);
    }
    table
}

/// Returns a table of each kind's cost, and its ratio to the classical one.
fn costs(results: &Results) -> ValueTable {
    let columns = [
        ("handshake messages", "B"),
        ("client", "µs"),
        ("server", "µs"),
        ("bytes", "×"),
        ("client", "×"),
        ("server", "×"),
    ];
    let title = "Cost of a handshake with mutual TLS, rustls, X25519MLKEM768";
    let mut table = ValueTable::new(title, "certificates", &columns);
    let base = Cost::of(results, 0);
    for (index, kind) in KINDS.iter().enumerate() {
        let Some(cost) = Cost::of(results, index) else {
            continue;
        };
        let times = |of: fn(&Cost) -> f64| base.as_ref().map(|base| round(of(&cost) / of(base)));
        let figures: [Value; 6] = [
            cost.bytes.into(),
            cost.client.total_us.into(),
            cost.server.total_us.into(),
            times(|it| it.bytes).into(),
            times(|it| it.client.total_us.median).into(),
            times(|it| it.server.total_us.median).into(),
        ];
        table.push(kind.to_string(), figures);
    }
    table
}

fn round(ratio: f64) -> f64 {
    (ratio * 100.0).round() / 100.0
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
        Some(Self {
            bytes: client.messages.iter().map(|part| part.bytes as f64).sum(),
            client,
            server,
        })
    }
}

fn verified(of: &Hierarchies) -> ValueTable {
    let mut table = ValueTable::new(
        "Verified by others",
        "certificates",
        &[("OpenSSL", ""), ("", "")],
    );
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

fn finding(connected: &Hierarchies, results: &Results) -> Finding {
    let ml_dsa: Vec<&Mutual> = connected
        .connections
        .iter()
        .filter(|it| it.certificate.starts_with("ml-dsa"))
        .collect();
    let worked = ml_dsa.iter().filter(|it| it.error.is_none()).count();
    let refused = connected.openssl.iter().any(|it| it.valid == Some(false));
    let cost = match (Cost::of(results, 0), Cost::of(results, 2)) {
        (Some(base), Some(cost)) => format!(
            "; ML-DSA-65 costs {} times the bytes, {} times the client's time and {} times the \
             server's of ECDSA P-256",
            three_digits(cost.bytes / base.bytes),
            three_digits(cost.client.total_us.median / base.client.total_us.median),
            three_digits(cost.server.total_us.median / base.server.total_us.median),
        ),
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

fn notes(iterations: usize) -> Vec<String> {
    vec![
        "Root, subordinate and leaf have keys of the same kind; both sides send leaf and \
         subordinate. rustls and s2n-tls verify each other, over AWS-LC both."
            .to_owned(),
        "Bytes of connections are UDP payload of the client until the first answer came, with \
         acknowledgements and padding."
            .to_owned(),
        format!("Times are medians of {iterations} handshakes of each kind without a network."),
    ]
}

#[cfg(test)]
mod tests {
    use super::{costs, finding, run};
    use crate::experiments::reproduce::{Budget, Verdict, experiments};
    use crate::handshake::cases::hierarchy::Hierarchies;

    #[tokio::test]
    async fn the_section_agrees_only_where_connections_were_made() {
        let budget = Budget {
            quick: true,
            time: std::time::Duration::from_secs(10),
        };
        let chosen = experiments::choose(&["ml-dsa".to_owned()]).unwrap();
        let section = run(chosen[0], &budget).await.unwrap();
        assert_eq!(section.finding.verdict, Verdict::Agrees, "{section:?}");
        let results = section.results.unwrap();
        assert_eq!(costs(&results).rows.len(), super::KINDS.len());
        assert_eq!(section.ours[0].rows.len(), 16);
        let nothing = Hierarchies {
            connections: Vec::new(),
            openssl: Vec::new(),
        };
        assert_eq!(finding(&nothing, &results).verdict, Verdict::Differs);
    }
}
