//! Experiment 2: the cost of a hybrid group with and without reused connections.

use super::measure::repetitions as repetitions_of;
use super::measure::{cell, change, measure, of_each, percent, ratio};
use super::section::{Finding, Section, Source, Value, ValueTable, Verdict};
use super::{Budget, Experiment};
use hybriq::Group;

use crate::report::results::{CellResult, Repetition, Results, Summary};
use crate::scenario::Template;
use crate::system::failure::Failure;

const CLASSICAL: Group = Group::SECP256R1;
const HYBRID: Group = Group::X25519MLKEM768;

/// Scenario with a service like the published one: 2 ms away, with 2.4 ms of work for a request, so
/// that a thread makes about 216 requests a second on a kept connection.
const SCENARIO: &str = r#"{
  "netbench": 1,
  "name": "reuse",
  "description": "Serial requests of one thread to a service that takes a while for each",
  "params": {
    "requests": {"default": 1, "help": "requests on each connection"},
    "seconds": {"default": 100, "help": "how long"}
  },
  "phases": {"warm_up": {"connections": 1}, "measure": "$seconds s", "drain": "1s"},
  "clients": [{"name": "client", "ops": [{"connect": {
    "connections": "unlimited",
    "timeout": "60s",
    "ops": [{"iterate": {"times": "$requests", "ops": [{"request": {"ops": [
      {"open_bidi": {"peer": ["receive_all", {"sleep": "2400us"}, {"send": 300}, "finish"]}},
      {"send": 300}, "finish", "receive_all"
    ]}}]}}]
  }}]}]
}"#;
const LINK: &str = "--delay 1ms";

/// Published changes of the rate by the hybrid group, in percent, without and with reuse, and the
/// points by which ours may differ. Our handshakes are a larger part of a connection, because there
/// is no HTTP and no service behind them.
const PUBLISHED_WITHOUT: f64 = -2.3;
const PUBLISHED_WITH: f64 = -0.05;
const WITHOUT_TOLERANCE: f64 = 10.0;
const WITH_TOLERANCE: f64 = 2.0;

const QUANTILES: [(f64, &str); 7] = [
    (0.01, "p01"),
    (0.10, "p10"),
    (0.25, "p25"),
    (0.50, "p50"),
    (0.75, "p75"),
    (0.90, "p90"),
    (0.99, "p99"),
];

pub(super) async fn run(experiment: &Experiment, budget: &Budget) -> Result<Section, Failure> {
    let (seconds, repetitions) = budget.choose(("1", 5), ("100", 5));
    // Enough requests to make the handshake's share small, and few enough for several connections
    // to complete.
    let reused = budget.choose(100, 1000);
    let requests = format!("1,{reused}");
    let axes = [
        ("group", "secp256r1,X25519MLKEM768"),
        ("requests", requests.as_str()),
        ("seconds", seconds),
        ("link", LINK),
    ];
    let template = Template::parse("reuse", SCENARIO)?;
    let results = measure(template, &axes, repetitions, budget).await?;
    Ok(Section {
        source: Source {
            text: "AWS, blog on ML-KEM in KMS, 2025".to_owned(),
            experiment: "Requests of one thread, one after the other; rates of 500 samples of one \
                         second each."
                .to_owned(),
        },
        published: vec![published()],
        ours: vec![ours(&results, reused)],
        finding: finding(&results, reused),
        rule: format!(
            "It agrees where the hybrid's change of the rate is within {WITHOUT_TOLERANCE:.0} points of \
             the published one without reuse, and within {WITH_TOLERANCE:.0} with: reuse has to hide \
             the cost."
        ),
        notes: vec![
            format!(
                "{} of {seconds} s for each row, in turn. The service is emulated: its link has a \
                 delay of 1 ms each way, and its server takes 2.4 ms for a request, so that a \
                 thread comes to about the published rate with reuse, where a connection carries \
                 {reused} requests.",
                repetitions_of(&results)
            ),
            budget.choose(
                "Samples are of a tenth of a second, and their rates are scaled to one: a quick \
                 run has not enough seconds for p01.",
                "Samples are of one second.",
            )
            .to_owned(),
            "The published requests went over TCP, which takes one more round trip to connect than \
             QUIC."
                .to_owned(),
        ],
        problems: results.problems.clone(),
        results: Some(Box::new(results)),
        ..Section::begin(experiment)
    })
}

fn finding(results: &Results, reused: u64) -> Finding {
    let of = |requests: u64| {
        let params = [("requests", requests)];
        let ratio = ratio(
            cell(results, HYBRID, &params),
            cell(results, CLASSICAL, &params),
            "requests_per_second",
        );
        ratio.map(change)
    };
    let (Some(without), Some(with)) = (of(1), of(reused)) else {
        return Finding::unknown("a rate is missing");
    };
    let verdict = near(without, PUBLISHED_WITHOUT, WITHOUT_TOLERANCE).and(near(
        with,
        PUBLISHED_WITH,
        WITH_TOLERANCE,
    ));
    Finding::of(
        verdict,
        format!(
            "{HYBRID} changes the rate of P-256 by {} without reuse (published −2.3 %) and by {} \
             with (published −0.05 %).",
            percent(without),
            percent(with)
        ),
    )
}

fn near(change: Summary, published: f64, tolerance: f64) -> Verdict {
    Verdict::within(change, published - tolerance, published + tolerance)
}

fn columns() -> Vec<(&'static str, &'static str)> {
    let mut columns = vec![("reuse", ""), ("requests", ""), ("mean", "1/s")];
    columns.extend(QUANTILES.iter().map(|(_, name)| (*name, "1/s")));
    columns
}

fn published() -> ValueTable {
    let rows = [
        (
            "P-256",
            "no",
            [
                54_367.0, 108.7, 78.0, 86.0, 96.0, 102.0, 129.0, 137.0, 145.0,
            ],
        ),
        (
            "X25519MLKEM768",
            "no",
            [
                53_106.0, 106.2, 76.0, 85.0, 93.0, 100.0, 126.0, 134.0, 141.0,
            ],
        ),
        (
            "P-256",
            "yes",
            [
                108_052.0, 216.1, 181.0, 194.0, 200.0, 216.0, 233.0, 240.0, 245.0,
            ],
        ),
        (
            "X25519MLKEM768",
            "yes",
            [
                107_994.0, 216.0, 177.0, 194.0, 200.0, 216.0, 233.0, 239.0, 245.0,
            ],
        ),
    ];
    let mut table = ValueTable::new("Published", "group", &columns());
    for (group, reuse, figures) in rows {
        let figures = figures.map(Value::from);
        table.push(group, std::iter::once(reuse.into()).chain(figures));
    }
    table
}

fn ours(results: &Results, reused: u64) -> ValueTable {
    let mut table = ValueTable::new("Here", "group", &columns());
    for (requests, reuse) in [(1, "no"), (reused, "yes")] {
        for (group, name) in [
            (CLASSICAL, "P-256".to_owned()),
            (HYBRID, HYBRID.to_string()),
        ] {
            let own = cell(results, group, &[("requests", requests)]);
            let total = of_each(own, |repetition| Some(requests_of(repetition)));
            let total = total.map(|each| each.median * each.n as f64);
            let mean = own.and_then(|own| own.summary.get("requests_per_second").copied());
            let rates = own.map(rates).unwrap_or_default();
            let mut figures = vec![
                Value::from(reuse),
                total.map(f64::round).into(),
                mean.into(),
            ];
            figures.extend(
                QUANTILES
                    .iter()
                    .map(|(quantile, _)| Value::from(at(&rates, *quantile))),
            );
            table.push(name, figures);
        }
    }
    table
}

fn requests_of(repetition: &Repetition) -> f64 {
    let samples = repetition.samples.iter();
    samples.map(|sample| sample.requests as f64).sum()
}

/// Returns the requests a second in each sample of each repetition, in order, without a shorter
/// last one.
fn rates(cell: &CellResult) -> Vec<f64> {
    let samples = cell
        .repetitions
        .iter()
        .flat_map(|repetition| &repetition.samples);
    let mut lengths: Vec<f64> = samples.clone().map(|sample| sample.lasted_ms).collect();
    lengths.sort_by(f64::total_cmp);
    let usual = at(&lengths, 0.5).map_or(0.0, |length| length.median);
    let mut rates: Vec<f64> = samples
        .filter(|sample| sample.lasted_ms > usual / 2.0)
        .map(|sample| sample.requests as f64 * 1e3 / sample.lasted_ms)
        .collect();
    rates.sort_by(f64::total_cmp);
    rates
}

/// Returns the nearest rank.
fn at(sorted: &[f64], quantile: f64) -> Option<Summary> {
    let index = (quantile * sorted.len() as f64).ceil() as usize;
    let value = *sorted.get(index.saturating_sub(1))?;
    Summary::of(&[value])
}

#[cfg(test)]
mod tests {
    use super::{CLASSICAL, HYBRID, SCENARIO, at, finding};
    use crate::experiments::reproduce::Verdict;
    use crate::experiments::reproduce::fixed::{cell, results};
    use crate::scenario::Template;

    #[test]
    fn reuse_has_to_hide_the_cost() {
        let verdict = |without: f64, with: f64| {
            let cell = |group, requests, rate: f64| {
                let rates = [rate, rate, rate];
                cell(
                    group,
                    &[("requests", requests)],
                    &[("requests_per_second", &rates)],
                )
            };
            let cells = vec![
                cell(CLASSICAL, 1, 100.0),
                cell(HYBRID, 1, 100.0 + without),
                cell(CLASSICAL, 100, 200.0),
                cell(HYBRID, 100, 200.0 + 2.0 * with),
            ];
            finding(&results(cells), 100).verdict
        };
        assert_eq!(verdict(-2.3, -0.05), Verdict::Agrees);
        assert_eq!(verdict(-8.0, 1.0), Verdict::Agrees);
        assert_eq!(verdict(-15.0, 0.0), Verdict::Differs);
        assert_eq!(verdict(-8.0, -8.0), Verdict::Differs);
        assert_eq!(finding(&results(Vec::new()), 100).verdict, Verdict::Unknown);
    }

    #[test]
    fn percentiles_are_the_nearest_rank() {
        let sorted: Vec<f64> = (1..=100).map(f64::from).collect();
        for (quantile, expected) in [(0.01, 1.0), (0.5, 50.0), (0.99, 99.0), (1.0, 100.0)] {
            let found = at(&sorted, quantile).unwrap().median;
            assert!((found - expected).abs() < 1e-9, "{quantile}: {found}");
        }
        assert!(at(&[], 0.5).is_none());
    }

    #[test]
    fn the_scenario_is_one() {
        let template = Template::parse("reuse", SCENARIO).unwrap();
        template
            .resolve(&std::collections::BTreeMap::default())
            .unwrap();
    }
}
