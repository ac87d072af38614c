//! Tests of experiments: their files, and what their formulas make of results.

use super::Experiment;
use super::budget::Budget;
use super::file::{Filter, Size, axes};
use super::measured::{Measured, template};
use crate::report::charts::Value;
use crate::report::document::{Section, Verdict};
use crate::report::results::{CellResult, Repetition, Results};
use crate::scenario::Template;
use crate::system::machine::Machine;

const SIZES: [Size; 3] = [Size::Tiny, Size::Quick, Size::Full];
const PEERS: &str = include_str!("../../experiments/peers.json");

fn experiment(id: &str) -> Experiment {
    let mut all = super::all(Size::Full).unwrap().into_iter();
    all.find(|it| it.id == id).unwrap()
}

/// Returns a cell with as many repetitions as there are values of each metric.
fn cell(filter: &[(&str, &str)], metrics: &[(&str, &[f64])]) -> CellResult {
    let filter: Filter = filter
        .iter()
        .map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned()))
        .collect();
    let turns = metrics.iter().map(|(_, values)| values.len()).max();
    let mut result = CellResult {
        cell: axes(&filter).unwrap().cells(&[].into()).remove(0),
        repetitions: vec![Repetition::default(); turns.unwrap_or(0)],
        ..CellResult::default()
    };
    for (name, values) in metrics {
        for (repetition, value) in result.repetitions.iter_mut().zip(*values) {
            if *name == "completed" {
                let kind = repetition.kinds.entry(String::new()).or_default();
                kind.outcomes.insert("ok".to_owned(), *value as u64);
            } else {
                repetition.metrics.insert((*name).to_owned(), *value);
            }
        }
    }
    result.summarize();
    result
}

fn results(cells: Vec<CellResult>) -> Results {
    let template = Template::load("request-response").unwrap();
    let mut results = Results::of(template.resolve(&[].into()).unwrap(), Machine::detect());
    results.cells = cells;
    results
}

fn section(id: &str, cells: Vec<CellResult>) -> Section {
    let experiment = experiment(id);
    let measured = Measured {
        experiment: &experiment,
        results: &[results(cells)],
    };
    measured.section()
}

fn verdict(id: &str, cells: Vec<CellResult>) -> Verdict {
    section(id, cells).finding.verdict
}

#[test]
fn every_file_can_be_read_and_measured_in_every_size() {
    for size in SIZES {
        let mut all = super::all(size).unwrap();
        all.push(Experiment::read(PEERS, size).unwrap());
        for (index, experiment) in all.iter().enumerate() {
            let id = &experiment.id;
            assert!(
                all[..index].iter().all(|other| other.id != *id),
                "{id} twice"
            );
            assert_eq!(experiment.parts.is_empty(), experiment.handshakes.is_some());
            for part in &experiment.parts {
                let template = template(part, &Budget::default()).unwrap();
                let axes = axes(&part.axes).unwrap();
                template.check_axes(&axes).unwrap();
                for cell in axes.cells(&[].into()) {
                    template.resolve(&cell.params).unwrap();
                }
            }
            let figures = experiment.figures.keys();
            for range in &experiment.agrees {
                assert!(figures.clone().any(|name| *name == range.figure), "{id}");
            }
            if experiment.handshakes.is_none() && experiment.versus.is_none() {
                let nothing = Measured {
                    experiment,
                    results: &[results(Vec::new())],
                };
                let section = nothing.section();
                assert_eq!(section.finding.verdict, Verdict::Unknown, "{id}");
                let texts = [&section.title, &section.rule, &section.source.experiment];
                assert!(
                    texts
                        .iter()
                        .all(|text| !text.is_empty() && !text.contains('$'))
                );
                assert!(
                    section.notes.iter().all(|note| !note.contains(['$', '{'])),
                    "{id}"
                );
            }
        }
    }
}

#[test]
fn the_rate_agrees_within_ten_points_of_the_published_one() {
    let rates = |classical: &[f64], hybrid: &[f64]| {
        let metric = "connections_per_second";
        vec![
            cell(&[("group", "X25519")], &[(metric, classical)]),
            cell(&[("group", "X25519MLKEM768")], &[(metric, hybrid)]),
        ]
    };
    let of = |share: f64| {
        // Both were slower in the second turn.
        let hybrid = [2000.0, 1000.0, 2000.0].map(|rate| rate * share);
        verdict("rate", rates(&[2000.0, 1000.0, 2000.0], &hybrid))
    };
    assert_eq!([0.92, 0.83, 1.01].map(of), [Verdict::Agrees; 3]);
    assert_eq!([0.81, 1.05].map(of), [Verdict::Differs; 2]);
    let once = |rate: f64| verdict("rate", rates(&[100.0], &[rate]));
    assert_eq!([154.0, 92.0].map(once), [Verdict::Unclear; 2]);
    let section = section("rate", rates(&[100.0; 3], &[89.0, 90.0, 91.0]));
    let sentence = &section.finding.sentence;
    assert!(
        sentence.contains("makes 90 %") && sentence.contains("92 %"),
        "{sentence}"
    );
    assert!(
        sentence.contains("−10\u{202f}% [−14 … −5.9\u{202f}%]"),
        "{sentence}"
    );
    assert_eq!(section.ours[0].rows[1].name, "X25519MLKEM768");
    assert_eq!(section.ours[0].rows[1].figures[0].text(), "90");
    assert!(
        section.notes[0].starts_with("3 repetitions of 0 connections"),
        "{:?}",
        section.notes
    );
}

#[test]
fn reuse_has_to_hide_the_cost() {
    let of = |without: f64, with: f64| {
        let cell = |group, requests, rate: f64| {
            let rates: [(&str, &[f64]); 1] = [("requests_per_second", &[rate; 3])];
            cell(&[("group", group), ("requests", requests)], &rates)
        };
        let cells = vec![
            cell("secp256r1", "1", 100.0),
            cell("X25519MLKEM768", "1", 100.0 + without),
            cell("secp256r1", "1000", 200.0),
            cell("X25519MLKEM768", "1000", 200.0 + 2.0 * with),
        ];
        verdict("reuse", cells)
    };
    assert_eq!(of(-2.3, -0.05), Verdict::Agrees);
    assert_eq!(of(-8.0, 1.0), Verdict::Agrees);
    assert_eq!(of(-15.0, 0.0), Verdict::Differs);
    assert_eq!(of(-8.0, -8.0), Verdict::Differs);
}

#[test]
fn the_network_hides_what_the_hybrid_costs() {
    let of = |client_us: f64, bytes: f64, handshake_us: f64| {
        let cell = |group, cpu: f64, bytes: f64| {
            let metrics: [(&str, &[f64]); 5] = [
                ("client_cpu_us", &[cpu; 3]),
                ("server_cpu_us", &[900.0; 3]),
                ("handshake_p50_us", &[handshake_us; 3]),
                ("handshake_bytes_to_server", &[1300.0 + bytes / 2.0; 3]),
                ("handshake_bytes_to_client", &[1300.0 + bytes / 2.0; 3]),
            ];
            cell(&[("group", group)], &metrics)
        };
        let section = section(
            "latency",
            vec![
                cell("secp256r1", 800.0, 0.0),
                cell("SecP256r1MLKEM768", client_us, bytes),
            ],
        );
        assert_eq!(section.ours[0].rows.len(), 3);
        let added = section.ours[0].rows[2].figures[0].text();
        assert_eq!(
            added,
            format!("{:.3}", (client_us - 800.0) / 1e3).replace('-', "−")
        );
        section.finding.verdict
    };
    assert_eq!(of(900.0, 2356.0, 70_000.0), Verdict::Agrees);
    assert_eq!(
        of(700.0, 2356.0, 70_000.0),
        Verdict::Differs,
        "less CPU time"
    );
    assert_eq!(of(900.0, 5000.0, 70_000.0), Verdict::Differs, "many bytes");
    assert_eq!(of(900.0, 2356.0, 3000.0), Verdict::Differs, "no network");
}

#[test]
fn the_second_connection_has_to_bring_most_of_the_gain() {
    let of = |latencies: [f64; 3]| {
        let cells = ["1", "2", "16"].into_iter().zip(latencies);
        let cells = cells.map(|(size, latency)| {
            cell(
                &[("connections", size)],
                &[("request_p50_us", &[latency; 3])],
            )
        });
        section("pool", cells.collect()).finding
    };
    let agrees = of([20_000.0, 6000.0, 5000.0]);
    assert_eq!(agrees.verdict, Verdict::Agrees);
    assert!(agrees.sentence.contains("93 %"), "{agrees:?}");
    assert_eq!(of([20_000.0, 6000.0, 6100.0]).verdict, Verdict::Agrees);
    assert_eq!(of([20_000.0, 19_000.0, 5000.0]).verdict, Verdict::Differs);
    assert_eq!(of([5000.0, 5000.0, 5000.0]).verdict, Verdict::Differs);
}

#[test]
fn connections_that_outlast_the_pause_are_fewer_and_faster() {
    let of = |short: (f64, f64), long: (f64, f64)| {
        let cell = |limit, (connections, latency): (f64, f64)| {
            let metrics: [(&str, &[f64]); 2] = [
                ("request_p50_us", &[latency; 3]),
                ("completed", &[connections; 3]),
            ];
            cell(&[("idle_timeout", limit)], &metrics)
        };
        verdict("idle-timeout", vec![cell("1s", short), cell("10s", long)])
    };
    assert_eq!(of((100.0, 20_300.0), (10.0, 5900.0)), Verdict::Agrees);
    assert_eq!(of((100.0, 20_300.0), (60.0, 5900.0)), Verdict::Differs);
    assert_eq!(of((100.0, 6000.0), (10.0, 5900.0)), Verdict::Differs);
}

#[test]
fn a_ticket_has_to_save_more_than_the_hybrid_costs() {
    let of = |resumed: [f64; 3]| {
        let cell = |group, resumption, cpu: [f64; 3]| {
            let metrics: [(&str, &[f64]); 2] = [("server_cpu_us", &cpu), ("client_cpu_us", &cpu)];
            cell(&[("group", group), ("resumption", resumption)], &metrics)
        };
        let cells = vec![
            cell("X25519", "full", [300.0; 3]),
            cell("X25519MLKEM768", "full", [350.0; 3]),
            cell("X25519MLKEM768", "psk", resumed),
        ];
        let section = section("resumption", cells);
        assert_eq!(section.ours[0].rows[2].name, "X25519MLKEM768, psk");
        section.finding.verdict
    };
    assert_eq!(of([250.0, 255.0, 260.0]), Verdict::Agrees);
    assert_eq!(of([320.0, 325.0, 330.0]), Verdict::Differs);
    assert_eq!(of([280.0, 305.0, 330.0]), Verdict::Unclear);
}

#[test]
fn percentiles_of_samples_are_the_nearest_rank() {
    use super::expression::Expression;
    use super::measured::figure;
    use crate::report::results::Sample;

    let mut result = cell(&[], &[("completed", &[1.0])]);
    let sample = |requests, lasted_ms| Sample {
        lasted_ms,
        requests,
        ..Sample::default()
    };
    let mut samples: Vec<Sample> = (1..=100).map(|rate| sample(rate, 1000.0)).collect();
    samples.push(sample(1000, 10.0));
    result.repetitions[0].samples = samples;
    let at = |metric: &str| {
        let of = Expression::parse(&format!("it.{metric}")).unwrap();
        figure(&of, |_| Some(&result)).unwrap().median
    };
    for (percentile, rate) in [(1, 1.0), (50, 50.0), (99, 99.0)] {
        assert!((at(&format!("request_rate_p{percentile}")) - rate).abs() < 1e-9);
    }
    assert!((at("requests") - 6050.0).abs() < 1e-9);
}

/// Returns the section of a comparison in which this part alone was measured.
fn peers(part: &str, cells: &[CellResult]) -> (Section, String) {
    let experiment = Experiment::read(PEERS, Size::Full).unwrap();
    let nothing = || results(Vec::new());
    let measured: Vec<Results> = experiment
        .parts
        .iter()
        .map(|it| {
            if it.id == part {
                results(cells.to_vec())
            } else {
                nothing()
            }
        })
        .collect();
    let measured = Measured {
        experiment: &experiment,
        results: &measured,
    };
    let versus = experiment.versus.as_ref().unwrap();
    let chart = versus.chart(&measured);
    let svg = chart
        .svg(crate::report::charts::Place::Document)
        .into_string();
    (versus.section(&measured), svg)
}

fn rates(ours: &[f64], peer: &[f64]) -> Vec<CellResult> {
    let cell = |stack, provider, values: &[f64]| {
        let filter = [("driver", stack), ("provider", provider)];
        cell(&filter, &[("connections_per_second", values)])
    };
    vec![
        cell("hybriq", "rustls", ours),
        cell("hybriq", "s2n-tls", &[1.0; 3]),
        cell("s2n-quic", "rustls", peer),
        cell("quinn", "rustls", &[500.0; 3]),
        cell("tcp-tls", "rustls", &[9000.0; 3]),
    ]
}

#[test]
#[cfg(all(feature = "quinn", feature = "s2n-quic"))]
fn our_best_is_compared_with_the_best_quic_peer_and_the_goal() {
    let row = |ours: &[f64], peer: &[f64]| {
        let (section, _) = peers("connect-256", &rates(ours, peer));
        let rows = section.ours[0].rows.iter();
        let mut row = rows.filter(|row| row.name.contains("/s, 256")).cloned();
        let texts = row.next().unwrap().figures.split_off(8);
        texts.iter().map(Value::text).collect::<Vec<_>>()
    };
    let peer = [999.0, 1000.0, 1001.0];
    let met = row(&[1699.0, 1700.0, 1701.0], &peer);
    assert!(met[0].starts_with("1.70 ("), "TCP is no peer: {met:?}");
    assert_eq!(met[1..], ["≥ 1.5", "met"]);
    assert_eq!(row(&[1199.0, 1200.0, 1201.0], &peer)[2], "not met");
    assert_eq!(row(&[1100.0, 1700.0, 2300.0], &peer)[2], "unclear");
    assert_eq!(row(&[1700.0], &[1000.0])[2], "unclear", "one repetition");
    let (section, svg) = peers("connect-256", &rates(&[1500.0, 1500.0], &[1000.0, 1000.0]));
    assert_eq!(
        section.finding.verdict,
        Verdict::Unclear,
        "one row is not all"
    );
    assert!(svg.contains("connections/s, 256 at once") && svg.ends_with("</svg>"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
#[cfg(all(feature = "quinn", feature = "s2n-quic"))]
fn a_disturbed_row_is_unclear_and_marked() {
    let mut noisy = rates(&[1699.0, 1700.0, 1701.0], &[999.0, 1000.0, 1001.0]);
    noisy[2].repetitions[1].other_cores = Some(0.9);
    noisy[2].summarize();
    let (section, _) = peers("connect-256", &noisy);
    let text = section.ours[0].markdown();
    assert!(
        text.contains("| **1,700** |") && text.contains(" 1,000 ! |"),
        "{text}"
    );
    let notes = section.notes.join("\n");
    assert!(
        notes.contains("Unclear in this run: connections/s, 256"),
        "{notes}"
    );
    assert!(
        notes.contains("Disturbed: connect-256: other work"),
        "{notes}"
    );
}

#[test]
fn memory_is_the_growth_between_few_and_many() {
    let held = |held, kib| {
        let mut cell = cell(&[("held", held)], &[("completed", &[1.0, 1.0])]);
        for repetition in &mut cell.repetitions {
            repetition.server.rss_at_start_kib = kib;
        }
        cell
    };
    let (section, _) = peers("held", &[held("200", 10_000), held("10200", 30_000)]);
    let rows = &section.ours[0].rows;
    let row = rows
        .iter()
        .find(|row| row.name.starts_with("server memory"));
    assert_eq!(row.unwrap().figures[0].text(), "2,048");
}
