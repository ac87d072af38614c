//! The whole instrument: small runs, and what it says about bad input.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../examples/tests/readme/commands.rs"]
mod commands;

use std::io::{Read, Write};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
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

#[test]
fn it_knows_the_commands_that_the_pages_name() {
    let path = Path::new(env!("CARGO_BIN_EXE_netbench"));
    let checked = commands::check_program("netbench", path);
    assert!(checked > 30, "{checked} commands");
}

/// Runs a scenario and returns its table and its JSON.
fn run(name: &str, args: &[&str]) -> (String, Value) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let json = ["--json", path.to_str().unwrap()];
    let table = stdout(&netbench(&[&["run"], args, &json].concat()));
    let text = std::fs::read_to_string(&path).unwrap();
    (table, serde_json::from_str(&text).unwrap())
}

fn cells(results: &Value) -> &[Value] {
    results["cells"].as_array().unwrap()
}

fn repetitions(cell: &Value) -> &[Value] {
    cell["repetitions"].as_array().unwrap()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

fn median(cell: &Value, figure: &str) -> f64 {
    number(&cell["summary"][figure]["median"])
}

#[test]
fn every_group_is_measured_and_is_the_one_negotiated() {
    let flags = ["--connections", "20", "--repetitions", "2"];
    let (table, results) = run(
        "rustls.json",
        &[&["request-response", "--groups", "all"], &flags[..]].concat(),
    );
    assert_eq!(results["complete"], true);
    assert_eq!(cells(&results).len(), 8);
    for cell in cells(&results) {
        let group = cell["cell"]["group"].as_str().unwrap();
        assert!(table.contains(group), "{table}");
        assert_eq!(repetitions(cell).len(), 2, "{group}");
        for repetition in repetitions(cell) {
            assert_eq!(repetition["negotiated"]["group"], group);
            assert_eq!(repetition["negotiated"]["hello_retry"], false, "{group}");
            assert_eq!(repetition["kinds"][""]["outcomes"]["ok"], 20, "{group}");
            assert_eq!(repetition["server"]["completed"], 20, "{group}");
            assert_eq!(repetition["server"]["failed"], 0, "{group}");
        }
        for figure in ["connections_per_second", "server_cpu_us", "client_cpu_us"] {
            assert!(median(cell, figure) > 0.0, "{group}: {figure}");
        }
        assert!(median(cell, "handshake_p50_us") <= median(cell, "handshake_p99_us"));
        assert!(median(cell, "handshake_p50_us") < median(cell, "connection_p50_us"));
        // The first flight alone is a padded datagram each way, two where the share is large.
        let post_quantum = group.contains("MLKEM");
        let first_flight = if post_quantum { 2400.0 } else { 1200.0 };
        assert!(median(cell, "bytes_to_server") >= first_flight, "{group}");
        assert!(median(cell, "bytes_to_client") >= 1200.0, "{group}");
        assert!(median(cell, "datagrams_to_server") >= 2.0, "{group}");
        assert!(median(cell, "server_peak_rss_kib") > 100.0);
    }
}

#[test]
fn results_say_what_they_were_measured_on_and_how() {
    let flags = ["--connections", "3", "--repetitions", "3"];
    let (table, results) = run("about.json", &[&["connect"], &flags[..]].concat());
    let about = &results["about"];
    let command: Vec<&str> = about["command"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap())
        .collect();
    assert_eq!(
        command[1..6],
        ["run", "connect", "--connections", "3", "--repetitions"]
    );
    assert!(about["crates"]["hybriq"].is_string());
    assert!(about["started"].as_str().unwrap().ends_with('Z'));
    assert!(number(&about["machine"]["cores"]) >= 1.0);
    assert_eq!(results["scenario"]["params"]["connections"], 3);
    assert_eq!(cells(&results)[0]["summary"]["handshake_p50_us"]["n"], 3);
    assert!(table.contains("medians of 3 repetitions"), "{table}");
}

#[test]
fn the_server_can_have_s2n_tls() {
    let flags = [
        "--connections",
        "20",
        "--repetitions",
        "1",
        "--groups",
        "all",
    ];
    let (_, results) = run(
        "s2n.json",
        &[&["request-response", "--tls", "s2n-tls"], &flags[..]].concat(),
    );
    // Groups that s2n-tls lacks are left out, which is no failure.
    assert_eq!(results["complete"], true);
    for cell in cells(&results) {
        let group = cell["cell"]["group"].as_str().unwrap();
        assert_eq!(cell["cell"]["provider"], "s2n-tls");
        if group == "MLKEM768" {
            let reason = cell["left_out"].as_str().unwrap();
            assert!(reason.contains("MLKEM768"), "{reason}");
            assert!(repetitions(cell).is_empty());
            continue;
        }
        let repetition = &repetitions(cell)[0];
        assert_eq!(repetition["negotiated"]["group"], group);
        assert_eq!(repetition["negotiated"]["suite"], "TLS_AES_128_GCM_SHA256");
        assert_eq!(repetition["kinds"][""]["outcomes"]["ok"], 20, "{group}");
    }
}

#[test]
fn many_connections_at_once_and_larger_messages_all_complete() {
    let flags = [
        "--groups",
        "x25519,X25519MLKEM768",
        "--connections",
        "60",
        "--concurrency",
        "20",
        "--request-size",
        "3000",
        "--response_size",
        "100KiB",
        "--repetitions",
        "1",
    ];
    let (table, results) = run(
        "concurrent.json",
        &[&["request-response"], &flags[..]].concat(),
    );
    assert!(table.contains("concurrency 20"), "{table}");
    for cell in cells(&results) {
        let repetition = &repetitions(cell)[0];
        assert_eq!(repetition["kinds"][""]["outcomes"]["ok"], 60);
        assert_eq!(repetition["server"]["completed"], 60);
        assert!(median(cell, "bytes_to_client") > 100.0 * 1024.0);
    }
}

#[test]
fn flags_may_be_written_as_s2n_netbench_writes_them() {
    let flags = [
        "--request_response.connections",
        "4",
        "--request_response.request_size",
        "1",
        "--request_response.response_size",
        "1",
        "--repetitions",
        "1",
    ];
    let (_, results) = run("seed.json", &[&["request_response"], &flags[..]].concat());
    assert_eq!(results["scenario"]["params"]["connections"], 4);
}

#[test]
fn several_values_of_a_parameter_are_cells_side_by_side() {
    let flags = ["--connections", "3,5", "--repetitions", "1"];
    let (table, results) = run("matrix.json", &[&["connect"], &flags[..]].concat());
    let names: Vec<&str> = cells(&results)
        .iter()
        .map(|cell| cell["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["connections 3", "connections 5"]);
    assert!(names.iter().all(|name| table.contains(name)), "{table}");
    for (cell, count) in cells(&results).iter().zip([3, 5]) {
        assert_eq!(repetitions(cell)[0]["kinds"][""]["outcomes"]["ok"], count);
    }
}

#[test]
fn several_clients_do_the_same_at_once() {
    let flags = ["--connections", "5", "--clients", "2", "--repetitions", "1"];
    let (_, results) = run("clients.json", &[&["connect"], &flags[..]].concat());
    let repetition = &repetitions(&cells(&results)[0])[0];
    assert_eq!(repetition["kinds"][""]["outcomes"]["ok"], 10);
    assert_eq!(repetition["server"]["completed"], 10);
}

#[test]
fn a_link_between_client_and_server_shows_in_the_handshake() {
    let flags = ["--connections", "3", "--repetitions", "1", "--link", ""];
    let link = ["--link", "--delay 20ms"];
    let (_, results) = run("link.json", &[&["connect"], &flags[..], &link].concat());
    let [straight, delayed] = cells(&results) else {
        panic!("{results}");
    };
    assert_eq!(delayed["cell"]["link"], "--delay 20ms");
    // A round trip, which is twice the delay.
    assert!(median(delayed, "handshake_p50_us") >= 40_000.0);
    assert!(median(straight, "handshake_p50_us") < median(delayed, "handshake_p50_us"));
}

#[test]
fn a_scenario_may_be_a_file_with_parameters_of_its_own() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("own.json");
    let text = r#"{
        "netbench": 1,
        "name": "own",
        "params": {"visits": {"default": 2, "help": "connections"}},
        "clients": [{"name": "visitor", "ops": [{"connect": {"connections": "$visits"}}]}]
    }"#;
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let flags = ["--visits", "4", "--repetitions", "1"];
    let (_, results) = run("own-results.json", &[&[path], &flags[..]].concat());
    assert_eq!(results["scenario"]["name"], "own");
    let repetition = &repetitions(&cells(&results)[0])[0];
    assert_eq!(repetition["kinds"][""]["outcomes"]["ok"], 4);

    let help = stdout(&netbench(&["run", path, "--help"]));
    assert!(help.contains("--visits"), "{help}");
}

#[test]
fn a_bulk_transfer_arrives_whole() {
    let (table, results) = run(
        "bulk.json",
        &["bulk", "--bytes", "8MiB", "--repetitions", "1"],
    );
    assert!(table.contains("Gbit/s"), "{table}");
    let cell = &cells(&results)[0];
    let kind = &repetitions(cell)[0]["kinds"][""];
    assert_eq!(kind["outcomes"]["ok"], 1);
    assert_eq!(kind["stream_bytes_received"], 8 << 20);
    assert!(median(cell, "bytes_to_client") > 8.0 * 1024.0 * 1024.0);
}

#[test]
fn help_shows_what_a_scenario_takes() {
    let help = stdout(&netbench(&["run", "request-response", "--help"]));
    for text in [
        "--connections",
        "[default: 200]",
        "--group",
        "--json",
        "each make",
    ] {
        assert!(help.contains(text), "{text} is missing: {help}");
    }
    let help = stdout(&netbench(&["run", "--help"]));
    for text in [
        "request-response",
        "handshake-breakdown",
        "links",
        "path of a JSON",
    ] {
        assert!(help.contains(text), "{text} is missing: {help}");
    }
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
        line.contains("unknown provider 'openssl'; valid: all, rustls, s2n-tls"),
        "{line}"
    );

    let lacking = ["--tls", "s2n-tls", "--groups", "MLKEM768"];
    let line = complaint(&[&["run", "request-response"], &lacking[..]].concat());
    assert!(
        line.contains("s2n-tls") && line.contains("MLKEM768"),
        "{line}"
    );

    let early = ["--tls", "s2n-tls", "--resumption", "0-rtt"];
    let line = complaint(&[&["run", "connect"], &early[..]].concat());
    assert!(line.contains("0-RTT") || line.contains("0-rtt"), "{line}");

    let line = complaint(&["run", "conect"]);
    assert!(line.contains("connect") && line.contains("path"), "{line}");

    let line = complaint(&["run", "/no/such/scenario.json"]);
    assert!(line.contains("/no/such/scenario.json"), "{line}");

    let line = complaint(&["run", "connect", "--conections", "5"]);
    assert!(line.contains("--connections"), "{line}");

    let line = complaint(&["run", "connect", "--link", "--dealy 5ms"]);
    assert!(line.contains("--dealy"), "{line}");

    let line = complaint(&["run", "connect", "--driver", "quicr"]);
    assert!(line.contains("unknown stack 'quicr'"), "{line}");

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

    let run = ["run", "request-response", "--datagram-size"];
    for size in ["1199", "65508", "65535"] {
        let line = complaint(&[&run[..], &[size]].concat());
        assert!(
            line.contains("--datagram-size") && line.contains("1200..=65507"),
            "{line}"
        );
    }

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
        .args([
            "--connections",
            "20",
            "--repetitions",
            "1",
            "--retries",
            "0",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(run.stdout.take());
    let output = run.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("netbench: [1/1] X25519 1/1: "), "{text}");
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

/// The children of a process with their names, as soon as there are so many.
#[cfg(target_os = "linux")]
fn children(parent: &mut std::process::Child, count: usize) -> Vec<(u32, String)> {
    let list = format!("/proc/{0}/task/{0}/children", parent.id());
    loop {
        let pids: Vec<u32> = std::fs::read_to_string(&list)
            .unwrap()
            .split_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect();
        let part = |pid: u32| {
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
            let part = line.split('\0').nth(1)?.to_owned();
            Some((pid, part)).filter(|(_, part)| !part.is_empty() && part != "run")
        };
        let named: Vec<_> = pids.into_iter().filter_map(part).collect();
        if named.len() >= count {
            return named;
        }
        let ended = parent.try_wait().unwrap();
        assert!(ended.is_none(), "the run ended by itself: {ended:?}");
        std::thread::yield_now();
    }
}

#[cfg(target_os = "linux")]
fn signal(pid: u32, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// A run that goes on until it is ended, with its results in a file of that name.
#[cfg(target_os = "linux")]
fn endless(name: &str, flags: &[&str]) -> (std::process::Child, PathBuf) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    let run = Command::new(env!("CARGO_BIN_EXE_netbench"))
        .args(["run", "request-response", "--groups", "X25519"])
        .args(["--json", path.to_str().unwrap()])
        .args(flags)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (run, path)
}

/// All of its processes share one standard error, so that it ends when the last of them has.
#[cfg(target_os = "linux")]
fn last_words(mut stderr: impl Read + Send + 'static) -> String {
    let (ended, wait) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text);
        ended.send(text)
    });
    wait.recv_timeout(Duration::from_mins(1))
        .expect("a child still runs a minute after its parent has ended")
}

#[cfg(target_os = "linux")]
fn results(path: &PathBuf) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn no_process_outlives_a_killed_run() {
    let (mut run, _) = endless("killed.json", &["--connections", "1000000000"]);
    children(&mut run, 2);
    run.kill().unwrap();
    run.wait().unwrap();
    last_words(run.stderr.take().unwrap());
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_a_run_and_what_was_measured_is_kept_and_marked() {
    for name in ["TERM", "INT"] {
        let file = format!("{name}.json");
        // A file after the first repetition says that the second is under way.
        let (mut run, path) = endless(&file, &["--connections", "1", "--repetitions", "1000"]);
        while !path.exists() {
            assert!(run.try_wait().unwrap().is_none(), "the run ended by itself");
            std::thread::yield_now();
        }
        signal(run.id(), name);
        let text = last_words(run.stderr.take().unwrap());
        assert_eq!(run.wait().unwrap().code(), Some(130));
        assert!(
            text.lines().last().unwrap().ends_with("interrupted"),
            "{text}"
        );
        let results = results(&path);
        assert_eq!(results["complete"], false);
        assert!(results["problems"].to_string().contains("interrupted"));
        assert!(number(&cells(&results)[0]["summary"]["handshake_p50_us"]["n"]) >= 1.0);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_repetition_that_a_signal_cut_short_is_kept_and_marked() {
    let flags = ["--connections", "1000000000", "--repetitions", "1"];
    let (mut run, path) = endless("cut.json", &flags);
    let clients = children(&mut run, 2);
    let (client, _) = clients.iter().find(|(_, part)| part == "drive").unwrap();
    busy(*client);
    signal(run.id(), "TERM");
    let text = last_words(run.stderr.take().unwrap());
    assert!(!run.wait().unwrap().success(), "{text}");
    let results = results(&path);
    let repetition = &repetitions(&cells(&results)[0])[0];
    assert_eq!(repetition["error"], "interrupted");
    assert!(number(&repetition["kinds"][""]["outcomes"]["ok"]) > 0.0);
}

/// Waits until a process has worked for a while: longer than any warm-up takes.
#[cfg(target_os = "linux")]
fn busy(pid: u32) {
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        // After the name in brackets, the 12th field is the user time in hundredths of a second.
        let after_name = stat.rsplit(')').next().unwrap();
        let ticks: u64 = after_name
            .split_whitespace()
            .nth(11)
            .unwrap()
            .parse()
            .unwrap();
        if ticks >= 50 {
            return;
        }
        std::thread::yield_now();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_that_dies_is_told_and_what_was_measured_before_is_kept() {
    let flags = ["--connections", "1000000000", "--repetitions", "3"];
    let (mut run, path) = endless("died.json", &flags);
    let all = children(&mut run, 2);
    let (client, _) = all.iter().find(|(_, part)| part == "drive").unwrap();
    let (server, _) = all.iter().find(|(_, part)| part == "serve").unwrap();
    busy(*client);
    signal(*server, "KILL");
    let text = last_words(run.stderr.take().unwrap());
    assert!(!run.wait().unwrap().success(), "{text}");
    let complaint = "X25519: the `serve` process ended early (signal: 9";
    assert_eq!(text.matches(complaint).count(), 1, "{text}");
    let results = results(&path);
    assert_eq!(results["complete"], false);
    let repetition = &repetitions(&cells(&results)[0])[0];
    let error = repetition["error"].as_str().unwrap();
    assert!(error.contains("ended early"), "{error}");
    assert!(number(&repetition["kinds"][""]["outcomes"]["ok"]) > 0.0);
}

#[test]
fn no_measured_table_is_lost_where_a_file_cannot_be_written() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("rescue");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for flags in [
        ["--html", "/dev/full"].as_slice(),
        &["--csv", "/dev/full"],
        &["--json", "/dev/full"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_netbench"))
            .args(["run", "connect", "--connections", "3", "--repetitions", "1"])
            .args(flags)
            .env("TMPDIR", &folder)
            .output()
            .unwrap();
        assert!(!output.status.success());
        let table = String::from_utf8(output.stdout).unwrap();
        assert!(table.contains("conn/s"), "{table}");
        let told = String::from_utf8(output.stderr).unwrap();
        let file = told.trim_end().rsplit(' ').next().unwrap();
        let text = std::fs::read_to_string(file).unwrap_or_else(|_| panic!("{told}"));
        let results: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(repetitions(&cells(&results)[0]).len(), 1);
        assert!(PathBuf::from(file).starts_with(&folder), "{told}");
    }
    // The table is in a file even if the terminal takes none, and the JSON file is enough.
    let json = folder.join("results.json");
    let full = std::fs::File::options().write(true).open("/dev/full");
    let output = Command::new(env!("CARGO_BIN_EXE_netbench"))
        .args(["run", "connect", "--connections", "3", "--repetitions", "1"])
        .args(["--json", json.to_str().unwrap()])
        .stdout(full.unwrap())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("all results are in") && told.contains("results.json"),
        "{told}"
    );
    let files = std::fs::read_dir(&folder).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names.len(), 4, "no parts are left: {names:?}");
}

#[test]
fn zero_is_refused_like_any_other_wrong_number() {
    for wrong in ["0", "-5", "many"] {
        let args = ["run", "request-response", "--connections", wrong];
        let text = complaint(&args);
        assert!(text.contains("connections"), "{text}");
        assert_eq!(netbench(&args).status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn an_unknown_scenario_is_refused_with_all_that_exist() {
    let text = complaint(&["run", "nosuch"]);
    for name in ["nosuch", "connect", "held", "http-bulk", "links", "peers"] {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn a_download_takes_no_more_than_its_named_link_carries() {
    let args = [
        "links",
        "--cases",
        "clean",
        "--seconds",
        "1",
        "--stacks",
        "hybriq",
    ];
    let (table, results) = run("links.json", &[&args[..], &["--repetitions", "1"]].concat());
    assert!(table.contains("Gbit/s"), "{table}");
    let cell = &cells(&results)[0];
    assert_eq!(cell["cell"]["link"], "clean");
    assert_eq!(cell["cell"]["congestion"], "cubic");
    let goodput = median(cell, "goodput_bits_per_second");
    assert!(goodput > 1e6 && goodput < 20e6, "{goodput}");
    // One round trip for the handshake, of 50 ms.
    assert!(median(cell, "handshake_p50_us") >= 50e3, "{cell}");
    assert!(complaint(&["run", "links", "--cases", "lunar"]).contains("unknown link 'lunar'"));
    let refused = complaint(&["run", "links", "--congestion", "vegas"]);
    assert!(refused.contains("valid: new-reno, cubic, bbr"), "{refused}");
}

#[test]
fn the_stacks_are_listed_with_the_way_to_get_the_rest() {
    let text = stdout(&netbench(&["drivers"]));
    for name in ["hybriq", "quinn", "s2n-quic"] {
        assert!(text.contains(name), "{text}");
    }
}
