//! `netbench report` on results that nobody measured.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod synthetic;

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
    let (_, page) = page("groups", &synthetic::groups());
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
    let (_, page) = page("sixty", &synthetic::sixty());
    assert!(page.len() < 2 << 20, "{} bytes", page.len());
}

#[test]
fn stacks_are_compared_beside_each_other() {
    let (_, page) = page("stacks", &synthetic::stacks());
    for stack in ["hybriq", "s2n-quic", "quinn", "quiche"] {
        assert!(page.contains(stack), "{stack}");
    }
}
