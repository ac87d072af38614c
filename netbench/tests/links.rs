//! `netbench run links`: that the instrument measures, not how fast anything is. And all commands that the pages name.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../examples/tests/readme/commands.rs"]
mod commands;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn netbench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netbench"))
        .args(args)
        .output()
        .unwrap()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn it_knows_the_commands_that_the_pages_name() {
    let path = Path::new(env!("CARGO_BIN_EXE_netbench"));
    let checked = commands::check_program("netbench", path);
    assert!(checked > 30, "{checked} commands");
}

#[test]
fn a_download_takes_no_more_than_the_link_carries_and_is_counted_at_three_places() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("links.json");
    let json = path.to_str().unwrap();
    // Every stack that is built in.
    let args = ["run", "links", "--cases", "clean", "--seconds", "1"];
    let folder = path.parent().unwrap().join("links");
    let [csv, html] = ["links.csv", "links.html"].map(|name| folder.join(name));
    std::fs::create_dir_all(&folder).unwrap();
    let files = ["--json", json, "--csv", csv.to_str().unwrap(), "--html"];
    let more = [html.to_str().unwrap(), "--charts", folder.to_str().unwrap()];
    let output = netbench(&[&args[..], &files[..], &more[..]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let table = String::from_utf8(output.stdout).unwrap();
    let report: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let runs = report["runs"].as_array().unwrap();
    let stacks = report["stacks"].as_array().unwrap();
    assert_eq!(runs.len(), stacks.len());
    let csv = std::fs::read_to_string(csv).unwrap();
    assert_eq!(csv.lines().count(), 1 + runs.len(), "{csv}");
    let page = std::fs::read_to_string(html).unwrap();
    assert!(page.contains("Goodput over time") && page.contains("clean, hybriq/cubic"));
    assert!(folder.join("goodput.svg").exists());
    for (run, stack) in runs.iter().zip(stacks) {
        let label = stack["label"].as_str().unwrap();
        assert!(table.contains(label), "{table}");
        let done = &run["done"];
        let goodput = number(&done["goodput_mbit"]);
        assert!(goodput > 0.0 && goodput < 20.0, "{run}");
        let samples = done["client"]["samples"].as_array().unwrap();
        let arrived: f64 = samples.iter().map(number).sum();
        assert!(
            arrived < number(&done["link"]["down"]["bytes_out"]),
            "{run}"
        );
        assert!(number(&done["link"]["down"]["rate_mbit"]) <= 20.0, "{run}");
        // The link counts datagrams, of which one may carry several packets, the stack packets.
        let sent = number(&done["server"]["packets_sent"]);
        assert!(sent >= arrived / 1472.0, "{run}");
        assert!(
            sent >= number(&done["link"]["down"]["datagrams_in"]),
            "{run}"
        );
        // Two round trips for a handshake whose ClientHello takes two datagrams.
        assert!(number(&done["client"]["connected_ms"]) >= 50.0, "{run}");
        assert!(
            run["link_command"]
                .as_str()
                .unwrap()
                .contains("--rate 20mbit")
        );
    }
}

#[test]
fn bad_input_is_told_in_one_line() {
    for (args, reason) in [
        (
            ["--cases", "lunar"],
            "unknown link 'lunar'; valid: all, clean",
        ),
        (
            ["--stacks", "quicr"],
            "unknown stack 'quicr'; valid: hybriq",
        ),
        (
            ["--congestion", "vegas"],
            "valid: new-reno, cubic, bbr, prague",
        ),
        (
            ["--json", "/no/such/folder/x.json"],
            "cannot write /no/such/folder/x.json",
        ),
    ] {
        let output = netbench(&[&["run", "links"], &args[..]].concat());
        assert!(!output.status.success());
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(reason) && text.lines().count() == 1, "{text}");
    }
}

#[test]
fn the_stacks_are_listed_with_the_way_to_get_the_rest() {
    let output = netbench(&["drivers"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for name in ["hybriq", "quinn", "s2n-quic"] {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn the_processes_of_a_download_are_not_for_users() {
    for part in ["link-server", "link-client"] {
        let output = netbench(&[part]);
        assert!(!output.status.success());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("started by `netbench run`"), "{text}");
    }
}
