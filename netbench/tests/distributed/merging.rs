//! Results that do not belong together, and those of clients that were no fleet.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::agent::{Agent, only_line};
use crate::client::{Client, Ran, count, file, read, repetition, succeeded};
use crate::fleet::merge;

fn measure(name: &str) -> Ran {
    let agent = Agent::start(&[]);
    let small = ["--connections", "10", "--repetitions", "1"];
    Client::start(name, &agent.address.to_string(), &small).finish()
}

/// The same results with something else in them.
fn altered(ran: &Ran, name: &str, alter: impl FnOnce(&mut Value)) -> PathBuf {
    let mut results = read(&ran.json);
    alter(&mut results);
    let path = file(name);
    std::fs::write(&path, results.to_string()).unwrap();
    path
}

fn started(results: &mut Value) -> &mut Value {
    &mut results["cells"][0]["repetitions"][0]["unix_ms"]
}

#[test]
fn what_was_not_at_the_same_time_counts_as_further_repetitions() {
    let ran = ["one", "other"].map(measure);
    let files = ran.each_ref().map(|ran| &ran.json);
    let (output, merged) = merge("apart.json", &files);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let merged = merged.unwrap();
    assert_eq!(merged["complete"], true);
    for index in 0..2 {
        assert_eq!(succeeded(repetition(&merged, index)), 10);
    }
    assert_eq!(merged["cells"][0]["summary"]["handshake_p50_us"]["n"], 2);
}

#[test]
fn what_was_at_the_same_time_is_added_up_with_the_servers_of_each() {
    let ran = ["left", "right"].map(|name| measure(&format!("together-{name}")));
    let moment = started(&mut read(&ran[0].json)).clone();
    let at_once = altered(&ran[1], "at-once.json", |results| {
        *started(results) = moment;
    });
    let (output, merged) = merge("together.json", &[&ran[0].json, &at_once]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let merged = merged.unwrap();
    assert_eq!(
        merged["cells"][0]["repetitions"].as_array().unwrap().len(),
        1
    );
    let sum = repetition(&merged, 0);
    assert_eq!(succeeded(sum), 20);
    let each = ran.each_ref().map(|ran| read(&ran.json));
    for side in ["client", "server"] {
        let sent = |repetition: &Value| count(&repetition[side]["traffic"]["sent_bytes"]);
        let of_each = each.iter().map(|results| sent(repetition(results, 0)));
        assert_eq!(sent(sum), of_each.sum::<u64>(), "{side}");
        assert_eq!(sum[side]["completed"], 20, "{side}");
    }
}

#[test]
fn results_that_do_not_belong_together_are_refused_in_one_line() {
    let ran = measure("whole");
    let fleet = |size: u32, client: u32| json!({ "size": size, "client": client });
    let later = |results: &mut Value| *started(results) = json!(7.0);
    let others = [
        (
            "same",
            "are the same run",
            altered(&ran, "same.json", |_| {}),
        ),
        (
            "version",
            "netbench 99.0.0",
            altered(&ran, "version.json", |results| {
                results["about"]["netbench"] = json!("99.0.0");
            }),
        ),
        (
            "format",
            "format 2",
            altered(&ran, "format.json", |results| {
                results["netbench_results"] = json!(2);
            }),
        ),
        (
            "scenario",
            "the scenario",
            altered(&ran, "scenario.json", |results| {
                results["scenario_id"] = json!("other");
            }),
        ),
        (
            "cell",
            "has the cell",
            altered(&ran, "cell.json", |results| {
                results["cells"][0]["cell"]["group"] = json!("X25519MLKEM768");
            }),
        ),
        (
            "size",
            "fleets of",
            altered(&ran, "size.json", |results| {
                results["about"]["fleet"] = fleet(2, 0);
                later(results);
            }),
        ),
    ];
    for (name, complaint, other) in &others {
        let (output, merged) = merge(&format!("refused-{name}.json"), &[&ran.json, other]);
        assert!(!output.status.success() && merged.is_none(), "{name}");
        let line = only_line(&output.stderr);
        assert!(line.contains(complaint), "{line}");
    }

    let twins = ["twin", "twin-again"].map(|name| {
        altered(&ran, &format!("{name}.json"), |results| {
            results["about"]["fleet"] = fleet(2, 1);
            if name == "twin" {
                later(results);
            }
        })
    });
    let (output, merged) = merge("twins.json", &twins.each_ref());
    assert!(!output.status.success() && merged.is_none());
    assert!(only_line(&output.stderr).contains("both are client 1"));
}

#[test]
fn files_that_are_no_results_are_refused_in_one_line() {
    let ran = measure("beside");
    let text = file("no-results.log");
    for (content, complaint) in [
        ("", "not JSON"),
        ("netbench: a log without results\n", "not JSON"),
        ("{}", "netbench_results"),
        ("{\"netbench_results\":1}", "cannot be read"),
        ("{\"netbench_results\":1,\n", "not JSON"),
    ] {
        std::fs::write(&text, content).unwrap();
        let (output, merged) = merge("no-results.json", &[&ran.json, &text]);
        assert!(!output.status.success() && merged.is_none());
        let line = only_line(&output.stderr);
        assert!(
            line.contains("no-results.log") && line.contains(complaint),
            "{line}"
        );
    }
    let (output, _) = merge(
        "no-file.json",
        &[&ran.json, &PathBuf::from("/no/such.json")],
    );
    assert!(only_line(&output.stderr).contains("/no/such.json"));
}

#[test]
fn the_log_of_a_client_has_its_results() {
    let agent = Agent::start(&[]);
    let mut client = crate::agent::netbench();
    client
        .env("SERVER_0", agent.address.to_string())
        .args(["client", "--group", "X25519", "--connections", "10"])
        .args(["--repetitions", "1", "--print-json"]);
    let output = client.output().unwrap();
    assert!(output.status.success());
    let log = file("pod.log");
    let text = [output.stderr, output.stdout, b"a last word\n".to_vec()].concat();
    std::fs::write(&log, text).unwrap();
    let (output, merged) = merge("of-log.json", &[&log]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(succeeded(repetition(&merged.unwrap(), 0)), 10);
}
