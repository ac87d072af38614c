//! Experiment 1: the number of connections a second for each key-exchange group.

use super::measure::repetitions as repetitions_of;
use super::measure::{cell, change, connections, figure, measure, percent, ratio, scaled};
use super::section::{Finding, Section, Source, Value, ValueTable, Verdict};
use super::{Budget, Experiment};
use hybriq::Group;

use crate::report::results::Results;
use crate::scenario::Template;
use crate::system::failure::Failure;

const HYBRID: Group = Group::X25519MLKEM768;

/// Number of groups.
const GROUPS: u32 = 8;

/// Published rate of X25519+Kyber512, in percent of X25519's.
const PUBLISHED: f64 = 92.0;

/// Points by which a hybrid of today may differ from the published one within the same shape:
/// ML-KEM-768 is half as large again as Kyber512, and key exchange has become faster.
const TOLERANCE: f64 = 10.0;

pub(super) async fn run(experiment: &Experiment, budget: &Budget) -> Result<Section, Failure> {
    let (wanted, repetitions) = budget.choose(("200", 5), ("10000", 5));
    let template = Template::load("request-response")?.ending_after(budget.cell(GROUPS));
    let axes = [("group", "all"), ("connections", wanted)];
    let results = measure(template, &axes, repetitions, budget).await?;
    Ok(Section {
        source: Source {
            text: "AWS, blog on s2n-quic and netbench, 2023".to_owned(),
            experiment:
                "10,000 connections one after the other, each with a byte to the server, a \
                         byte back and a close, with an ECDSA P-256 certificate."
                    .to_owned(),
        },
        published: vec![published()],
        ours: vec![ours(&results)],
        finding: finding(&results),
        rule: format!(
            "It agrees where {HYBRID}, of X25519's rate, is within {TOLERANCE:.0} points of the \
             {PUBLISHED:.0} % that X25519+Kyber512 made: ML-KEM-768 has half as many bytes again, \
             and its arithmetic has become faster since."
        ),
        notes: vec![
            format!(
                "{} of {} connections for each group, in turn; request and response of one byte, one \
                 connection at a time, over the loopback interface. Ratios are those of the same \
                 turn.",
                repetitions_of(&results),
                connections(&results)
            ),
            "BIKE-1 has no row of ours: NIST did not choose it, and no library ships it."
                .to_owned(),
            "SIKEp434 has no row of ours: it was broken in 2022 and withdrawn.".to_owned(),
        ],
        problems: results.problems.clone(),
        results: Some(Box::new(results)),
        ..Section::begin(experiment)
    })
}

fn finding(results: &Results) -> Finding {
    let base = cell(results, Group::X25519, &[]);
    let hybrid = ratio(cell(results, HYBRID, &[]), base, "connections_per_second");
    let Some(hybrid) = hybrid else {
        return Finding::unknown("neither group's rate is known");
    };
    let share = scaled(hybrid, 100.0);
    let verdict = Verdict::within(share, PUBLISHED - TOLERANCE, PUBLISHED + TOLERANCE);
    Finding::of(
        verdict,
        format!(
            "{HYBRID} makes {:.0} % of the connections of X25519 ({}); X25519+Kyber512 made \
             {PUBLISHED:.0} % (−8 %).",
            share.median,
            percent(change(hybrid))
        ),
    )
}

fn published() -> ValueTable {
    ValueTable::new(
        "Published",
        "group",
        &[("rate, of X25519's", "%"), ("today", "")],
    )
    .row("X25519", [Value::from(100.0), "X25519".into()])
    .row(
        "X25519+Kyber512",
        [Value::from(PUBLISHED), HYBRID.to_string().into()],
    )
    .row(
        "X25519+BIKE-1",
        [Value::from(63.0), "withdrawn: no library ships it".into()],
    )
    .row(
        "X25519+SIKEp434",
        [Value::from(5.0), "withdrawn: broken in 2022".into()],
    )
}

fn ours(results: &Results) -> ValueTable {
    let columns = [
        ("rate, of X25519's", "%"),
        ("connections", "1/s"),
        ("handshake, median", "µs"),
        ("server CPU", "µs"),
        ("client CPU", "µs"),
        ("to the server", "B"),
        ("to the client", "B"),
    ];
    let base = cell(results, Group::X25519, &[]);
    let mut table = ValueTable::new("Here", "group", &columns);
    for result in &results.cells {
        let own = Some(result);
        let relative = ratio(own, base, "connections_per_second");
        let names = [
            "connections_per_second",
            "handshake_p50_us",
            "server_cpu_us",
            "client_cpu_us",
            "bytes_to_server",
            "bytes_to_client",
        ];
        let mut figures = vec![Value::from(relative.map(|ratio| scaled(ratio, 100.0)))];
        figures.extend(names.iter().map(|name| Value::from(figure(own, name))));
        table.push(result.cell.group.to_string(), figures);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{Group, HYBRID, finding, ours};
    use crate::experiments::reproduce::Verdict;
    use crate::experiments::reproduce::fixed::{cell, results};
    use crate::report::results::Results;

    fn rates(classical: &[f64], hybrid: &[f64]) -> Results {
        let metric = "connections_per_second";
        results(vec![
            cell(Group::X25519, &[], &[(metric, classical)]),
            cell(HYBRID, &[], &[(metric, hybrid)]),
        ])
    }

    #[test]
    fn ten_points_about_the_published_rate_agree() {
        let verdict = |share: f64| {
            // Both were slower in the second turn.
            let hybrid = [2000.0, 1000.0, 2000.0].map(|rate| rate * share);
            finding(&rates(&[2000.0, 1000.0, 2000.0], &hybrid)).verdict
        };
        for (share, expected) in [
            (0.92, Verdict::Agrees),
            (0.83, Verdict::Agrees),
            (1.01, Verdict::Agrees),
            (0.81, Verdict::Differs),
            (1.05, Verdict::Differs),
        ] {
            assert_eq!(verdict(share), expected, "{share}");
        }
    }

    #[test]
    fn one_repetition_of_a_noisy_machine_is_no_verdict() {
        assert_eq!(
            finding(&rates(&[100.0], &[154.0])).verdict,
            Verdict::Unclear
        );
        assert_eq!(finding(&rates(&[100.0], &[92.0])).verdict, Verdict::Unclear);
    }

    #[test]
    fn the_sentence_has_both_figures_and_the_interval() {
        let measured = rates(&[100.0, 100.0, 100.0], &[89.0, 90.0, 91.0]);
        let sentence = finding(&measured).sentence;
        assert!(
            sentence.contains("90 %") && sentence.contains("92 %"),
            "{sentence}"
        );
        assert!(sentence.contains("−10.0 % [−14.1, −5.9]"), "{sentence}");
        assert_eq!(ours(&measured).rows.len(), 2);
        assert_eq!(finding(&results(Vec::new())).verdict, Verdict::Unknown);
    }
}
