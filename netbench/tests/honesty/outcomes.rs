//! Outcomes, against failures that happen at a known rate.

use serde_json::{Value, json};

use crate::instrument::{
    Distribution, count, figure, kind, only, run, run_with_failures, scenario,
};

/// Connections that each ask once. The script of the server that answers is given.
fn asking(connections: u64, peer: &Value) -> Value {
    json!({"connect": {"connections": connections, "ops": [
        {"open_bidi": {"peer": peer}}, {"send": 1}, "finish", {"receive": 2}
    ]}})
}

fn well(connections: u64) -> Value {
    asking(connections, &json!(["receive_all", {"send": 2}, "finish"]))
}

/// Returns the outcomes of a scenario's connections, after checking the figures that follow from
/// them.
fn outcomes(name: &str, ops: &Value, told: &str) -> Value {
    let flags = [&scenario(name, ops), "--repetitions", "1"];
    let results = run_with_failures(name, &flags, told);
    let repetition = only(&results);
    let kind = kind(repetition);
    let outcomes = kind["outcomes"].as_object().unwrap();
    let all: u64 = outcomes.values().map(count).sum();
    let ok = outcomes.get("ok").map_or(0, count);
    let percent = 100.0 * (all - ok) as f64 / all as f64;
    assert!((figure(repetition, "failed_percent") - percent).abs() < 1e-9);
    // Nobody who failed is timed as one who did not.
    assert_eq!(Distribution::of(&kind["connection"]).count(), ok);
    kind["outcomes"].clone()
}

#[test]
fn every_fourth_stream_that_is_reset_is_counted() {
    let reset = asking(1, &json!(["receive_all", {"reset": {"code": 7}}]));
    let ops = json!([{"iterate": {"times": 5, "ops": [well(3), reset]}}]);
    assert_eq!(
        outcomes("resets", &ops, "5 of 20 connections failed: 5 reset"),
        json!({"ok": 15, "reset": 5})
    );
}

#[test]
fn every_answer_that_is_too_short_is_counted() {
    let short = asking(2, &json!(["receive_all", {"send": 1}, "finish"]));
    let ops = json!([{"iterate": {"times": 3, "ops": [well(2), short]}}]);
    assert_eq!(
        outcomes("short", &ops, "6 of 12 connections failed: 6 mismatch"),
        json!({"ok": 6, "mismatch": 6})
    );
}

#[test]
fn every_answer_that_takes_longer_than_it_may_is_counted() {
    let mut late = asking(
        2,
        &json!(["receive_all", {"sleep": "1m"}, {"send": 2}, "finish"]),
    );
    late["connect"]["timeout"] = json!("300ms");
    let ops = json!([{"iterate": {"times": 2, "ops": [well(3), late]}}]);
    assert_eq!(
        outcomes("late", &ops, "4 of 10 connections failed: 4 timeout"),
        json!({"ok": 6, "timeout": 4})
    );
}

#[test]
fn nobody_gets_through_a_link_that_loses_everything() {
    let mut ops = json!([well(3)]);
    ops[0]["connect"]["timeout"] = json!("300ms");
    let path = scenario("lost", &ops);
    let link = ["--link", "--up loss=100%", "--repetitions", "1"];
    let told = "3 of 3 connections failed: 3 timeout";
    let results = run_with_failures("lost", &[&[&path[..]], &link[..]].concat(), told);
    let kind = kind(only(&results));
    assert_eq!(kind["outcomes"], json!({"timeout": 3}));
    assert_eq!(count(&kind["handshake"]["count"]), 0);
    assert!((figure(only(&results), "failed_percent") - 100.0).abs() < 1e-9);
}

#[test]
fn datagrams_that_a_link_loses_are_counted_as_lost() {
    let work = [
        "datagrams",
        "--datagrams",
        "500",
        "--rate",
        "500",
        "--warm-up",
        "0",
    ];
    let link = ["--link", "--down loss=20%", "--repetitions", "1"];
    let results = run("datagrams-lost", &[&work[..], &link].concat());
    let repetition = only(&results);
    let kind = kind(repetition);
    let (came, lost) = (
        count(&kind["datagrams"]["count"]),
        count(&kind["datagrams_lost"]),
    );
    assert_eq!(came + lost, 500);
    // The link's chance is that of its seed: a fifth of 500 is 100, give or take 9. The server's
    // congestion controller, which sees the losses, may have it give up more of them itself.
    assert!((55..500).contains(&lost), "{lost}");
    assert!((figure(repetition, "datagrams_lost_percent") - lost as f64 / 5.0).abs() < 1e-9);
}

#[test]
fn an_open_loop_has_as_many_arrivals_as_there_is_time_for() {
    // One each 50 ms, the first at the beginning. The 21st would begin when the time is over.
    let work = [
        "pool",
        "--rate",
        "20",
        "--seconds",
        "1",
        "--repetitions",
        "1",
    ];
    let results = run("arrivals", &work);
    let kind = kind(only(&results));
    let unfinished = kind["outcomes"].get("unfinished").map_or(0, count);
    assert_eq!(count(&kind["requests"][""]["count"]) + unfinished, 20);
}
