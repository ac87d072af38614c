//! `netbench report` on results that nobody measured.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn netbench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netbench"))
        .args(args)
        .output()
        .unwrap()
}

/// Writes results to a file of this name, and says where.
fn file(name: &str, results: &Value) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, results.to_string()).unwrap();
    path
}

/// Makes the page of results, and returns where it is and its text.
fn page(name: &str, results: &Value) -> (PathBuf, String) {
    let json = file(&format!("{name}.json"), results);
    let html = json.with_extension("html");
    let output = netbench(&[
        "report",
        json.to_str().unwrap(),
        "--out",
        html.to_str().unwrap(),
    ]);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    let text = std::fs::read_to_string(&html).unwrap();
    (html, text)
}

#[test]
fn a_page_has_every_section_that_the_results_allow() {
    let (_, page) = page("groups", &crate::synthetic::groups());
    for id in [
        "change-group-0",
        "rate-0",
        "handshake-latency-0",
        "time-0",
        "bytes-0",
        "handshake-messages-0",
        "handshake-operations-0",
        "outcomes-0",
        "everything-0",
        "method-0",
    ] {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
}

#[test]
fn sixty_cells_make_a_page_below_two_megabytes() {
    let (_, page) = page("sixty", &crate::synthetic::sixty());
    assert!(page.len() < 2 << 20, "{} bytes", page.len());
}

#[test]
fn stacks_are_compared_beside_each_other() {
    let (_, page) = page("stacks", &crate::synthetic::stacks());
    for stack in ["hybriq", "s2n-quic", "quinn", "quiche"] {
        assert!(page.contains(stack), "{stack}");
    }
}

/// The one line of a call that fails.
fn complaint(args: &[&str]) -> String {
    let output = netbench(args);
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn files_that_are_no_results_are_refused_in_one_line() {
    let mut newer = crate::synthetic::groups();
    newer["netbench_results"] = 99.into();
    let mut broken = crate::synthetic::groups();
    broken["cells"][0]["repetitions"][0]["elapsed_us"] = "long".into();
    let cases = [
        ("no-json", Value::from("x").to_string() + "{", "not JSON"),
        (
            "other",
            r#"{"hello": 1}"#.to_owned(),
            "no results of netbench",
        ),
        ("list", "[]".to_owned(), "no results of netbench"),
        (
            "links",
            r#"{"netbench_report": 2, "sections": []}"#.to_owned(),
            "a report of several runs",
        ),
        ("newer", newer.to_string(), "format 99"),
        ("broken", broken.to_string(), "cannot be read"),
    ];
    for (name, text, expected) in cases {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bad-{name}.json"));
        std::fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        for command in [
            &["report", path, "--out", "/dev/null"][..],
            &["csv", path],
            &["compare", path, path],
        ] {
            let line = complaint(command);
            assert!(line.contains(expected) && line.contains(path), "{line}");
        }
    }
    assert!(complaint(&["csv", "/does/not/exist.json"]).contains("cannot read"));
}

#[test]
fn a_regression_fails_and_results_are_the_same_as_themselves() {
    let before = crate::synthetic::groups();
    let mut after = before.clone();
    for cell in after["cells"].as_array_mut().unwrap() {
        for end in ["median", "low", "high"] {
            let value = &mut cell["summary"]["server_cpu_us"][end];
            *value = (value.as_f64().unwrap() * 1.3).into();
        }
    }
    let (before, after) = (file("before.json", &before), file("after.json", &after));
    let (before, after) = (before.to_str().unwrap(), after.to_str().unwrap());

    let same = netbench(&["compare", before, before]);
    let text = String::from_utf8(same.stdout).unwrap();
    assert!(same.status.success(), "{text}");
    assert!(
        text.contains("0 better, 0 worse") && text.contains("0 cannot be told"),
        "{text}"
    );

    let worse = netbench(&["compare", before, after, "--json"]);
    assert!(!worse.status.success());
    let json: Value = serde_json::from_slice(&worse.stdout).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let is_worse = |row: &&Value| row["verdict"] == "worse";
    assert_eq!(rows.iter().filter(is_worse).count(), 8);

    assert!(
        netbench(&["compare", before, after, "--threshold", "50%"])
            .status
            .success()
    );
    assert!(netbench(&["compare", after, before]).status.success());
    let unknown = netbench(&["compare", before, after, "--metric", "speed"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("server_cpu_us"));
}

#[test]
fn charts_are_written_beside_the_page() {
    let json = file("charts.json", &crate::synthetic::groups());
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("charts");
    let html = json.with_extension("html");
    let output = netbench(&[
        "report",
        json.to_str().unwrap(),
        "--out",
        html.to_str().unwrap(),
        "--charts",
        directory.to_str().unwrap(),
    ]);
    assert!(output.status.success());
    for name in String::from_utf8(output.stdout).unwrap().lines() {
        assert!(
            std::fs::metadata(name).is_ok_and(|file| file.len() > 500),
            "{name}"
        );
    }
    assert!(directory.join("rate.svg").exists());
}

#[test]
fn a_browser_shows_it_on_a_phone_in_dark_and_light_and_loads_and_complains_of_nothing() {
    let (path, _) = page("browser", &crate::synthetic::groups());
    let Some((told, log)) = crate::browser::browse(&path) else {
        return;
    };
    assert!(!log.contains("CONSOLE"), "{log}");
    let told = told.as_array().unwrap();
    assert_eq!(told.len(), 6);
    for frame in told {
        assert!(frame["overflow"].as_i64().unwrap() <= 0, "{frame}");
        assert_eq!(frame["loaded"], Value::Array(Vec::new()), "{frame}");
        assert!(frame["charts"].as_u64().unwrap() >= 8, "{frame}");
    }
    assert_ne!(
        told[0]["background"], told[1]["background"],
        "dark and light"
    );
}
