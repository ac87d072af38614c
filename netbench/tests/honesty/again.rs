//! The same scenario on the same machine, twice.

use serde_json::Value;

use crate::instrument::{cells, count, kind, list, number, run};

const RUN: [&str; 7] = [
    "request-response",
    "--connections",
    "20",
    "--requests",
    "3",
    "--repetitions",
    "5",
];

/// Returns the counts of each repetition that depend on the scenario alone.
fn certain(results: &Value) -> Vec<(u64, u64, u64, u64)> {
    let repetitions = list(&cells(results)[0]["repetitions"]).iter();
    let counts = repetitions.map(|repetition| {
        let kind = kind(repetition);
        (
            count(&kind["outcomes"]["ok"]),
            count(&kind["requests"][""]["count"]),
            count(&kind["stream_bytes_sent"]),
            count(&kind["stream_bytes_received"]),
        )
    });
    counts.collect()
}

/// Returns true if a median of the second run lies in the range that the first predicts for a
/// repetition.
fn lies_within(first: &Value, second: &Value, name: &str) -> bool {
    let summary = |results: &Value| cells(results)[0]["summary"][name].clone();
    let (stated, again) = (summary(first), number(&summary(second)["median"]));
    let range = number(&stated["low"])..=number(&stated["high"]);
    println!("{name}: {again} within {range:?}");
    range.contains(&again)
}

/// An interval of 95 % does not hold a repeat's median one time of 20, so that a try fails with
/// one of three figures in at most 3 of 20 cases, and five tries in a row, each with both of its
/// runs made afresh, in one of 13,000. Load that changes meanwhile makes that more, which is why
/// there are as many tries; intervals that are too narrow to be true fail most of them.
#[test]
fn the_medians_of_a_repeat_lie_within_the_interval_that_the_first_run_states() {
    let figures = ["handshake_p50_us", "client_cpu_us", "server_cpu_us"];
    let holds = (0..5).any(|_| {
        let [first, second] = ["first", "second"].map(|name| run(name, &RUN));
        assert_eq!(certain(&first), [(20, 60, 60, 60); 5]);
        assert_eq!(certain(&first), certain(&second));
        figures
            .iter()
            .filter(|name| lies_within(&first, &second, name))
            .count()
            == figures.len()
    });
    assert!(holds);
}
