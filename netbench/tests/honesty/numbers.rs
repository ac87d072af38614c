//! Each number against those that it follows from, in results of every scenario; and their form
//! against the JSON Schemas.

use std::process::Command;

use jsonschema::Validator;
use serde_json::Value;

use crate::instrument::{
    ALL_MEASURED, Distribution, NETBENCH, cells, count, figure, file, list, number, run, succeeded,
};

fn close(stated: f64, expected: f64) -> bool {
    (stated - expected).abs() <= 1e-6 * expected.abs().max(1.0)
}

fn validator(text: &str) -> Validator {
    jsonschema::validator_for(&serde_json::from_str(text).unwrap()).unwrap()
}

fn assert_valid(schema: &Validator, value: &Value, what: &str) {
    let errors: Vec<String> = schema
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert_eq!(errors, [""; 0], "{what}");
}

/// Checks the figures of a histogram against its buckets.
fn check_histogram(histogram: &Value) {
    let own = Distribution::of(histogram);
    assert_eq!(count(&histogram["count"]), own.count());
    if own.count() == 0 {
        return;
    }
    for (name, quantile) in [
        ("p01_us", 0.01),
        ("p50_us", 0.5),
        ("p90_us", 0.9),
        ("p99_us", 0.99),
        ("p999_us", 0.999),
        ("max_us", 1.0),
    ] {
        let (stated, expected) = (number(&histogram[name]), own.us_at(quantile));
        assert!(close(stated, expected), "{name}: {stated}, not {expected}");
    }
    // A bucket is a thousandth wide, and stands for its middle.
    let (stated, expected) = (number(&histogram["mean_us"]), own.mean_us());
    assert!(
        (stated / expected - 1.0).abs() < 0.002,
        "{stated}, not {expected}"
    );
}

fn check_kind(kind: &Value) {
    let histograms = ["handshake", "first_byte", "connection", "datagrams"];
    for name in histograms {
        check_histogram(&kind[name]);
    }
    let requests = kind["requests"].as_object().unwrap();
    requests.values().for_each(check_histogram);
    let ok = kind["outcomes"].get("ok").map_or(0, count);
    assert_eq!(count(&kind["connection"]["count"]), ok);
    assert!(count(&kind["handshake"]["count"]) >= ok);
    assert!(count(&kind["first_byte"]["count"]) <= count(&kind["handshake"]["count"]));
}

fn kinds(repetition: &Value) -> impl Iterator<Item = &Value> {
    repetition["kinds"].as_object().unwrap().values()
}

/// Sums over all kinds of connections.
struct Sums {
    ok: u64,
    all: u64,
    requests: u64,
    sent: u64,
    received: u64,
}

impl Sums {
    fn of(repetition: &Value) -> Self {
        let sum = |of: &dyn Fn(&Value) -> u64| kinds(repetition).map(of).sum();
        let of_all = |values: &Value, of: &dyn Fn(&Value) -> u64| -> u64 {
            values.as_object().unwrap().values().map(of).sum()
        };
        Self {
            ok: sum(&|kind| kind["outcomes"].get("ok").map_or(0, count)),
            all: sum(&|kind| of_all(&kind["outcomes"], &count)),
            requests: sum(&|kind| of_all(&kind["requests"], &|r| count(&r["count"]))),
            sent: sum(&|kind| count(&kind["stream_bytes_sent"])),
            received: sum(&|kind| count(&kind["stream_bytes_received"])),
        }
    }
}

/// Samples are of the same things, one interval after the other.
fn check_samples(repetition: &Value, sums: &Sums) {
    let samples = list(&repetition["samples"]);
    let total = |name: &str| -> u64 { samples.iter().map(|sample| count(&sample[name])).sum() };
    assert_eq!(total("connections"), sums.all);
    assert_eq!(total("failures"), sums.all - sums.ok);
    assert_eq!(total("requests"), sums.requests);
    assert_eq!(total("bytes_sent"), sums.sent);
    assert_eq!(total("bytes_received"), sums.received);
    let cpu: f64 = samples.iter().map(|sample| number(&sample["cpu_us"])).sum();
    let client = &repetition["client"];
    let all = number(&client["user_us"]) + number(&client["system_us"]);
    assert!(cpu > 0.0 && cpu <= all + 1.0, "{cpu} of {all} µs");
    // Clients that work side by side may end an interval apart.
    let ends: Vec<f64> = samples
        .iter()
        .map(|sample| number(&sample["at_ms"]))
        .collect();
    assert!(
        ends.is_sorted_by(|earlier, later| earlier < later),
        "{ends:?}"
    );
    let lasted: f64 = samples
        .iter()
        .map(|sample| number(&sample["lasted_ms"]))
        .sum();
    assert!(
        lasted > 0.0 && lasted <= ends.last().unwrap() + 100.0,
        "{lasted} ms: {ends:?}"
    );
}

fn check_repetition(repetition: &Value) {
    kinds(repetition).for_each(check_kind);
    let sums = Sums::of(repetition);
    assert_eq!(count(&repetition["client"]["completed"]), sums.ok);
    assert_eq!(count(&repetition["client"]["failed"]), sums.all - sums.ok);
    check_samples(repetition, &sums);
    for (name, expected) in expected(repetition, &sums) {
        let stated = figure(repetition, name);
        assert!(close(stated, expected), "{name}: {stated}, not {expected}");
    }
    for (of, name) in [
        ("handshake", "handshake"),
        ("first_byte", "first_byte"),
        ("connection", "connection"),
        ("datagrams", "datagram"),
    ] {
        let all = Distribution::of_all(kinds(repetition).map(|kind| &kind[of]));
        check_quantiles(repetition, name, &all);
    }
    let requests =
        kinds(repetition).flat_map(|kind| kind["requests"].as_object().unwrap().values());
    check_quantiles(repetition, "request", &Distribution::of_all(requests));
}

fn check_quantiles(repetition: &Value, of: &str, distribution: &Distribution) {
    for (quantile, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
        let name = format!("{of}_{quantile}_us");
        if let Some(stated) = repetition["metrics"].get(&name) {
            let (stated, expected) = (number(stated), distribution.us_at(share));
            assert!(close(stated, expected), "{name}: {stated}, not {expected}");
        }
    }
}

/// Rates and costs, worked out again.
fn expected<'a>(repetition: &Value, sums: &Sums) -> Vec<(&'a str, f64)> {
    let seconds = number(&repetition["elapsed_us"]) / 1e6;
    let ok = sums.ok as f64;
    let of = |side: &str, field: &str| number(&repetition[side][field]);
    let cpu = |side| (of(side, "user_us") + of(side, "system_us")) / ok;
    let switches = |side| (of(side, "voluntary_switches") + of(side, "involuntary_switches")) / ok;
    let traffic = |from: &str, to: &str, what: &str| {
        let counter = |side: &str, way: &str| {
            number(&repetition[side]["traffic"][format!("{way}_{what}").as_str()])
        };
        counter(from, "sent").max(counter(to, "received")) / ok
    };
    let mut all = vec![
        ("connections_per_second", ok / seconds),
        (
            "failed_percent",
            (sums.all - sums.ok) as f64 * 100.0 / sums.all as f64,
        ),
        ("client_cpu_us", cpu("client")),
        ("server_cpu_us", cpu("server")),
        ("client_switches", switches("client")),
        ("server_switches", switches("server")),
        ("bytes_to_server", traffic("client", "server", "bytes")),
        ("bytes_to_client", traffic("server", "client", "bytes")),
        (
            "datagrams_to_server",
            traffic("client", "server", "datagrams"),
        ),
        (
            "datagrams_to_client",
            traffic("server", "client", "datagrams"),
        ),
    ];
    if sums.requests > 0 {
        all.push(("requests_per_second", sums.requests as f64 / seconds));
    }
    if sums.sent + sums.received > 0 {
        let bits = 8.0 * (sums.sent + sums.received) as f64;
        all.push(("goodput_bits_per_second", bits / seconds));
    }
    all
}

/// Student's t for 97.5 % and the variance of the median of standard normal values, by the number
/// of values: 2 and 3.
const SPREAD: [(f64, f64); 2] = [(12.706, 0.5), (4.303, 0.4487)];

/// Returns the largest distance of the median of as many other values, by Student's t.
fn half_width(values: &[f64]) -> f64 {
    let n = values.len();
    if n == 1 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let (student, variance) = SPREAD[n - 2];
    student * (squares / (n - 1) as f64 * 2.0 * variance).sqrt()
}

/// The median of the repetitions, and where that of a repeat would lie.
fn check_summary(cell: &Value) {
    let repetitions = list(&cell["repetitions"]);
    let summary = cell["summary"].as_object().unwrap();
    for (name, stated) in summary {
        let metrics = repetitions.iter().filter_map(|r| r["metrics"].get(name));
        let mut values: Vec<f64> = metrics.map(number).collect();
        values.sort_by(f64::total_cmp);
        let n = values.len();
        assert_eq!(count(&stated["n"]), n as u64, "{name}");
        let median = f64::midpoint(values[n / 2], values[(n - 1) / 2]);
        assert!(close(number(&stated["median"]), median), "{name}");
        let half = half_width(&values);
        assert!(
            close(number(&stated["high"]), median + half),
            "{name}: {stated}"
        );
        assert!(
            close(number(&stated["low"]), (median - half).max(0.0)),
            "{name}: {stated}"
        );
    }
    let names = |metrics: &Value| {
        metrics
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    if let Some(first) = repetitions.first() {
        assert!(
            names(&first["metrics"])
                .iter()
                .all(|name| summary.contains_key(name))
        );
    }
}

fn check(name: &str, args: &[&str]) {
    let results = run(&format!("numbers-{name}"), args);
    assert_valid(
        &validator(include_str!("../../schema/results.schema.json")),
        &results,
        name,
    );
    assert_eq!(results["complete"], true);
    for cell in cells(&results) {
        assert!(cell.get("left_out").is_none(), "{cell}");
        list(&cell["repetitions"]).iter().for_each(check_repetition);
        check_summary(cell);
    }
}

#[test]
fn numbers_of_requests_follow_from_each_other() {
    let flags = [
        "--connections",
        "10",
        "--concurrency",
        "3",
        "--repetitions",
        "3",
    ];
    check(
        "requests",
        &[&["request-response", "--requests", "3"], &flags[..]].concat(),
    );
    let flags = [
        "--connections",
        "10",
        "--clients",
        "2",
        "--repetitions",
        "2",
    ];
    check("clients", &[&["connect"], &flags[..]].concat());
}

#[test]
fn numbers_over_tcp_follow_from_each_other() {
    let flags = ["--driver", "tcp-tls", "--connections", "5"];
    check(
        "tcp",
        &[&["request-response"], &flags[..], &ALL_MEASURED].concat(),
    );
}

#[test]
fn numbers_of_transfers_and_datagrams_follow_from_each_other() {
    check(
        "bulk",
        &[
            &["bulk", "--bytes", "1MiB", "--upload", "100KiB"],
            &ALL_MEASURED[..],
        ]
        .concat(),
    );
    let flags = ["--datagrams", "100", "--connections", "2"];
    check(
        "datagrams",
        &[&["datagrams"], &flags[..], &ALL_MEASURED].concat(),
    );
    let flags = ["--requests", "200", "--connections", "2", "--streams", "10"];
    check(
        "streams",
        &[&["many-streams"], &flags[..], &ALL_MEASURED].concat(),
    );
}

#[test]
fn numbers_of_loops_that_time_ends_follow_from_each_other() {
    check("pool", &["pool", "--seconds", "1", "--repetitions", "2"]);
    let flood = [
        "--seconds",
        "2",
        "--head-start",
        "500",
        "--rate",
        "50",
        "--established",
        "3",
    ];
    check(
        "overload",
        &[&["overload", "--repetitions", "1"], &flood[..]].concat(),
    );
}

#[test]
fn numbers_of_resumed_and_of_dissected_handshakes_follow_from_each_other() {
    check(
        "resumption",
        &["resumption", "--connections", "4", "--repetitions", "1"],
    );
    check("breakdown", &["handshake-breakdown", "--connections", "3"]);
}

#[test]
fn scenarios_that_are_written_follow_the_schema() {
    let folder = file("scenarios");
    let output = Command::new(NETBENCH)
        .arg("scenarios")
        .arg(&folder)
        .args(["--request_response.connections", "10000"])
        .output()
        .unwrap();
    succeeded(&output);
    let schema = validator(include_str!("../../schema/scenario.schema.json"));
    let mut written = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let scenario: Value = serde_json::from_str(&text).unwrap();
        assert_valid(&schema, &scenario, &path.display().to_string());
        written += 1;
    }
    assert_eq!(written, 17);
}
