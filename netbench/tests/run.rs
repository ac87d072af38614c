//! The whole instrument: small runs, and what it says about bad input.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

fn netbench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netbench"))
        .args(args)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The one line of a run that could not start.
fn complaint(args: &[&str]) -> String {
    let output = netbench(args);
    assert!(!output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

/// Runs a scenario and returns its table and its JSON.
fn run(name: &str, args: &[&str]) -> (String, Value) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let json = ["--json", path.to_str().unwrap()];
    let table = stdout(&netbench(&[&["run"], args, &json].concat()));
    let text = std::fs::read_to_string(&path).unwrap();
    (table, serde_json::from_str(&text).unwrap())
}

fn rows(report: &Value) -> &[Value] {
    report["rows"].as_array().unwrap()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn every_group_is_measured_and_is_the_one_negotiated() {
    let args = ["request-response", "--groups", "all", "--connections", "20"];
    let (table, report) = run("rustls.json", &args);
    assert_eq!(rows(&report).len(), 8);
    for row in rows(&report) {
        let group = row["group"].as_str().unwrap();
        assert!(table.contains(group), "{table}");
        for end in ["server", "client"] {
            assert_eq!(row[end]["completed"], 20, "{group}");
            assert_eq!(row[end]["failed"], 0, "{group}");
            assert_eq!(row[format!("{end}_tls")], "rustls");
        }
        assert_eq!(row["hello_retry"], false, "{group}");
        for figure in ["connections_per_second", "server_cpu_us", "client_cpu_us"] {
            assert!(number(&row[figure]) > 0.0, "{group}: {figure}");
        }
        let handshake = &row["client"]["handshake"];
        assert!(number(&handshake["p50_us"]) <= number(&handshake["p99_us"]));
        assert!(number(&handshake["p50_us"]) < number(&row["client"]["exchange"]["p50_us"]));
        // The first flight alone is a padded datagram each way, two where the share is large.
        let post_quantum = group.contains("MLKEM");
        let first_flight = if post_quantum { 2400.0 } else { 1200.0 };
        assert!(
            number(&row["to_server"]["bytes"]) >= first_flight,
            "{group}"
        );
        assert!(number(&row["to_client"]["bytes"]) >= 1200.0, "{group}");
        assert!(number(&row["to_server"]["datagrams"]) >= 2.0, "{group}");
        assert!(number(&row["server"]["rss_at_end_kib"]) > 100.0);
    }
}

#[test]
fn the_server_can_have_s2n_tls() {
    let args = [
        "request-response",
        "--tls",
        "s2n-tls",
        "--connections",
        "20",
    ];
    let (_, report) = run("s2n.json", &args);
    let groups: Vec<_> = rows(&report)
        .iter()
        .map(|row| row["group"].as_str().unwrap())
        .collect();
    assert_eq!(groups.len(), 7, "{groups:?}");
    assert!(!groups.contains(&"MLKEM768"));
    for row in rows(&report) {
        assert_eq!(row["server_tls"], "s2n-tls");
        assert_eq!(row["client_tls"], "rustls");
        assert_eq!(row["client"]["suite"], "Aes128GcmSha256");
        assert_eq!(row["client"]["completed"], 20);
    }
}

#[test]
fn many_connections_at_once_and_larger_messages_all_complete() {
    let (table, report) = run(
        "concurrent.json",
        &[
            "request-response",
            "--groups",
            "x25519,X25519MLKEM768",
            "--connections",
            "60",
            "--concurrency",
            "20",
            "--request-size",
            "3000",
            "--response-size",
            "100KiB",
        ],
    );
    assert!(table.contains("20 at once"), "{table}");
    for row in rows(&report) {
        assert_eq!(row["client"]["completed"], 60);
        assert_eq!(row["server"]["completed"], 60);
        assert!(number(&row["to_client"]["bytes"]) > 100.0 * 1024.0);
    }
}

#[test]
fn a_bulk_transfer_arrives_whole() {
    let (table, report) = run("bulk.json", &["bulk", "--bytes", "8MiB"]);
    assert!(table.contains("Every byte was compared"), "{table}");
    assert_eq!(rows(&report).len(), 1);
    assert_eq!(rows(&report)[0]["client"]["completed"], 1);
    assert!(number(&rows(&report)[0]["to_client"]["bytes"]) > 8.0 * 1024.0 * 1024.0);
}

#[test]
fn bad_input_is_told_in_one_line() {
    let line = complaint(&["run", "request-response", "--groups", "X25519,X448"]);
    assert!(
        line.contains("unknown group 'X448'; valid: all, X25519MLKEM768"),
        "{line}"
    );

    let line = complaint(&["run", "request-response", "--tls", "openssl"]);
    assert!(
        line.contains("unknown TLS provider 'openssl'; valid: rustls, s2n-tls"),
        "{line}"
    );

    let lacking = ["--tls", "s2n-tls", "--groups", "MLKEM768"];
    let line = complaint(&[&["run", "request-response"], &lacking[..]].concat());
    assert!(line.contains("s2n-tls has no MLKEM768"), "{line}");

    let line = complaint(&[
        "run",
        "request-response",
        "--json",
        "/no/such/folder/x.json",
    ]);
    assert!(
        line.contains("cannot write /no/such/folder/x.json"),
        "{line}"
    );

    let line = complaint(&["run", "request-response", "--listen", "0.0.0.0:0"]);
    assert!(
        line.contains("0.0.0.0:0 is no address to connect to"),
        "{line}"
    );

    let line = complaint(&["run", "request-response", "--listen", "127.0.0.1:4433"]);
    assert!(line.contains("--listen takes port 0"), "{line}");

    let run = ["run", "request-response", "--datagram-size"];
    for size in ["1199", "65508", "65535"] {
        let line = complaint(&[&run[..], &[size]].concat());
        assert!(
            line.contains("--datagram-size") && line.contains("1200..=65507"),
            "{line}"
        );
    }

    let line = complaint(&["run", "bulk", "--bytes", "0"]);
    assert!(
        line.contains("--bytes") && line.contains("at least 1 byte"),
        "{line}"
    );

    let by_hand = netbench(&["serve"]);
    assert!(!by_hand.status.success());
    assert!(String::from_utf8_lossy(&by_hand.stdout).contains("started by `netbench run`"));
}

#[test]
fn a_port_in_use_is_told_and_the_run_fails() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let run = ["run", "request-response", "--listen"];
    let line = complaint(&[&run[..], &[&address, "--groups", "X25519"]].concat());
    assert!(line.contains(&address) || line.contains("in use"), "{line}");

    // An address of another machine (RFC 5737), which every group meets.
    let line = complaint(&[&run[..], &["192.0.2.1:0"]].concat());
    assert!(line.contains("192.0.2.1"), "{line}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let mut run = Command::new(env!("CARGO_BIN_EXE_netbench"))
        .args(["run", "request-response", "--groups", "X25519"])
        .args(["--connections", "20"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(run.stdout.take());
    let output = run.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    assert_eq!(text, "netbench: 20 connections\n");
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_does_not_work_for_a_parent_that_was_gone_before_it_started() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"what it wrote\n").unwrap();
    drop(writer);
    let output = Command::new(env!("CARGO_BIN_EXE_netbench"))
        .arg("drive")
        .stdin(reader)
        .output()
        .unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(text, "netbench: the parent is gone\n");
}

#[cfg(target_os = "linux")]
#[test]
fn no_process_outlives_a_killed_run() {
    let mut run = Command::new(env!("CARGO_BIN_EXE_netbench"))
        .args(["run", "request-response", "--groups", "X25519"])
        .args(["--connections", "1000000000"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let children = format!("/proc/{0}/task/{0}/children", run.id());
    while std::fs::read_to_string(&children)
        .unwrap()
        .split_whitespace()
        .count()
        < 2
    {
        assert!(run.try_wait().unwrap().is_none(), "the run ended by itself");
        std::thread::yield_now();
    }
    run.kill().unwrap();
    run.wait().unwrap();

    // All of them share one standard error, so that it ends when the last of them has.
    let mut stderr = run.stderr.take().unwrap();
    let (ended, wait) = mpsc::channel();
    std::thread::spawn(move || ended.send(stderr.read_to_end(&mut Vec::new())));
    assert!(
        wait.recv_timeout(Duration::from_mins(1)).is_ok(),
        "a child still runs a minute after its parent was killed"
    );
}
