//! `netbench reproduce` from the command line: what it writes, and what it says of mistakes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn reproduce(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netbench"))
        .arg("reproduce")
        .args(args)
        .output()
        .unwrap()
}

fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn json(directory: &Path) -> Value {
    let text = std::fs::read_to_string(directory.join("report.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn experiments_are_run_and_their_report_is_written_and_opens() {
    let directory = directory("reproduce");
    let chosen = ["breakdown", "algorithms", "negotiation", "ml-dsa"];
    let out = directory.to_str().unwrap();
    let output = reproduce(&["--quick", "--only", &chosen.join(","), "--out", out]);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        told.contains("report.html") && told.contains("report.json"),
        "{told}"
    );

    let report = json(&directory);
    assert_eq!(report["netbench_report"], 2);
    assert_eq!(report["complete"], true);
    let sections = report["sections"].as_array().unwrap();
    let ids: Vec<&str> = sections
        .iter()
        .map(|it| it["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, chosen);
    for section in sections {
        assert_ne!(section["finding"]["verdict"], "unknown", "{section}");
        for text in [&section["finding"]["sentence"], &section["rule"]] {
            assert!(!text.as_str().unwrap().is_empty(), "{section}");
        }
        let id = section["id"].as_str().unwrap();
        assert!(told.contains(id), "{told}");
    }

    let path = directory.join("report.html");
    let page = std::fs::read_to_string(&path).unwrap();
    for id in chosen {
        assert!(page.contains(&format!("href=\"#{id}\"")), "{id}");
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    if let Some((told, log)) = crate::browser::browse(&path) {
        assert!(!log.contains("CONSOLE"), "{log}");
        for frame in told.as_array().unwrap() {
            assert!(frame["overflow"].as_i64().unwrap() <= 0, "{frame}");
            assert_eq!(frame["loaded"], Value::Array(Vec::new()), "{frame}");
            assert!(frame["charts"].as_u64().unwrap() >= 2, "{frame}");
        }
    }
}

#[test]
fn an_unknown_experiment_is_refused_in_one_line_with_the_valid_ones() {
    let out = directory("reproduce-unknown");
    let output = reproduce(&["--only", "rate,nonsense", "--out", out.to_str().unwrap()]);
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    for name in ["nonsense", "rate", "reuse", "negotiation", "ml-dsa"] {
        assert!(text.contains(name), "{text}");
    }
    assert!(!out.exists());
}

#[test]
fn a_report_that_cannot_be_written_is_told_before_anything_is_measured() {
    let output = reproduce(&["--quick", "--out", "/dev/null/report"]);
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("/dev/null/report"), "{text}");
}
