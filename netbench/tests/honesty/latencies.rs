//! Latencies, against delays and stalls that were put in on purpose.

use std::fs::read_to_string;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::instrument::{
    ALL_MEASURED, Distribution, cells, command, count, figure, kind, only, read, repetition, run,
    scenario,
};

/// Link whose shortest round trip is [`ROUND_TRIP_MS`]. It is so long that a delay by a busy
/// machine is not taken for another round trip.
const LINK: &str = "--delay 150ms";
const ROUND_TRIP_MS: u64 = 300;

/// Returns the number of round trips of the fastest. The slower ones may have waited for the
/// machine too.
fn round_trips(kind: &Value, what: &str) -> u64 {
    let all = Distribution::of(&kind[what]);
    assert_eq!(all.count(), 3, "{what}: {kind}");
    (all.us_at(0.0) as u64) / 1000 / ROUND_TRIP_MS
}

#[test]
fn a_delay_shows_in_each_latency_as_often_as_it_is_waited_for() {
    let flags = ["--connections", "3", "--warm-up", "1", "--repetitions", "1"];
    let results = run(
        "delay",
        &[&["resumption", "--link", LINK], &flags[..]].concat(),
    );
    // RFC 9001 §4: a handshake takes one round trip, and so does a request; early data leaves with
    // the first flight.
    for (resumption, first_byte) in [("full", 2), ("psk", 2), ("0-rtt", 1)] {
        let cell = cells(&results)
            .iter()
            .find(|cell| cell["cell"]["resumption"] == resumption)
            .unwrap();
        let kind = kind(repetition(cell));
        assert_eq!(kind["outcomes"], json!({"ok": 3}), "{resumption}");
        assert_eq!(round_trips(kind, "handshake"), 1, "{resumption}");
        assert_eq!(round_trips(kind, "first_byte"), first_byte, "{resumption}");
        assert_eq!(round_trips(kind, "connection"), first_byte, "{resumption}");
        let request = round_trips(&kind["requests"], "");
        assert_eq!(request, 1, "{resumption}");
    }
}

#[test]
fn one_slow_answer_of_twenty_shows_in_the_percentiles_above_95_and_in_none_below() {
    let answer = |sleep: &str, label: &str| {
        json!({"request": {"label": label, "ops": [
            {"open_bidi": {"peer": ["receive_all", {"sleep": sleep}, {"send": 1}, "finish"]}},
            {"send": 1}, "finish", "receive_all"
        ]}})
    };
    let ops = json!([{"connect": {"timeout": "1m", "ops": [{"iterate": {"times": 5, "ops": [
        {"iterate": {"times": 19, "ops": [answer("1ms", "quick")]}},
        answer("400ms", "slow")
    ]}}]}}]);
    let results = run("tail", &[&scenario("tail", &ops), "--repetitions", "1"]);
    let repetition = only(&results);
    let requests = &kind(repetition)["requests"];
    assert_eq!(count(&requests["quick"]["count"]), 95);
    let slow = Distribution::of(&requests["slow"]);
    assert_eq!((slow.count(), slow.at_least_ms(400)), (5, 5));
    let p90 = figure(repetition, "request_p90_us");
    assert!((1e3..400e3).contains(&p90), "{p90}");
    assert!(figure(repetition, "request_p50_us") <= p90);
    assert!(figure(repetition, "request_p99_us") >= 400e3);
}

/// Requests on one stream, whose server answers 50, stalls for half a second, and goes on.
fn stalled(name: &str, turns: &Value) -> Distribution {
    let echo =
        |times: u64| json!({"iterate": {"times": times, "ops": [{"receive": 1}, {"send": 1}]}});
    let mut client = turns.clone();
    client["ops"] = json!([{"request": {"ops": [{"send": 1}, {"receive": 1}]}}]);
    let ops = json!([{"connect": {"timeout": "1m", "ops": [
        {"open_bidi": {"peer": [echo(50), {"sleep": "500ms"}, echo(150)]}},
        {"iterate": client}
    ]}}]);
    let results = run(name, &[&scenario(name, &ops), "--repetitions", "1"]);
    let requests = Distribution::of(&kind(only(&results))["requests"][""]);
    assert_eq!(requests.count(), 200);
    requests
}

#[test]
fn a_stall_is_seen_by_all_who_came_meanwhile_and_not_by_one_alone() {
    // Each of those that are due in the first half of the stall, one each 10 ms, waits for
    // the second half.
    let open = stalled("open", &json!({"times": 200, "rate": 100}));
    let seen = open.at_least_ms(250);
    assert!(seen >= 24, "{seen}");
    // Whoever asks only when answered asks once meanwhile.
    let closed = stalled("closed", &json!({"times": 200}));
    let seen = closed.at_least_ms(250);
    assert!((1..24).contains(&seen), "{seen}");
}

/// A run in a network of its own, and its process. `None`: that is not permitted here.
fn alone(run: &Command) -> Option<Child> {
    let network = |shell: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["-rn", "sh", "-c", shell, "sh"]);
        unshare
    };
    let tried = network("ip link set lo up").output();
    if !tried.as_ref().is_ok_and(|output| output.status.success()) {
        test_summary::skip(format!(
            "a network of its own needs root or user namespaces: {tried:?}"
        ));
        return None;
    }
    let run = network("ip link set lo up; exec \"$@\"")
        .arg(run.get_program())
        .args(run.get_args())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Some(run.unwrap())
}

/// Datagrams that arrived in the network of a process.
fn datagrams(pid: &str) -> Option<u64> {
    let text = read_to_string(format!("/proc/{pid}/net/snmp")).ok()?;
    let numbers = text
        .lines()
        .filter(|line| line.starts_with("Udp: "))
        .nth(1)?;
    numbers.split_whitespace().nth(1)?.parse().ok()
}

/// The server process of a run.
fn server(run: u32) -> Option<String> {
    let children = read_to_string(format!("/proc/{run}/task/{run}/children")).ok()?;
    let mut children = children.split_whitespace();
    let is_server = |pid: &&str| {
        let line = read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split('\0').nth(1) == Some("serve")
    };
    children.find(is_server).map(str::to_owned)
}

fn signal(pid: &str, name: &str) {
    let status = Command::new("kill").args([name, pid]).status();
    assert!(status.unwrap().success());
}

#[test]
fn a_server_that_stands_still_is_felt_by_all_connections_that_should_begin_meanwhile() {
    let work = ["connect", "--connections", "300", "--rate", "100"];
    let (run, path) = command("still", &[&work[..], &ALL_MEASURED].concat());
    let Some(mut run) = alone(&run) else {
        return;
    };
    // Until the first connections have come to something. Before the measurement nothing is sent.
    let server = loop {
        let server = server(run.id());
        let is_busy = |pid: &String| datagrams(pid).is_some_and(|count| count >= 200);
        if let Some(busy) = server.filter(is_busy) {
            break busy;
        }
        assert!(run.try_wait().unwrap().is_none(), "it ended by itself");
        thread::yield_now();
    };
    signal(&server, "-STOP");
    thread::sleep(Duration::from_millis(500));
    signal(&server, "-CONT");
    assert!(run.wait().unwrap().success());
    let results = read(&path);
    let kind = kind(only(&results));
    assert_eq!(kind["outcomes"], json!({"ok": 300}));
    // One should begin each 10 ms, so that 25 wait for the second half of that time.
    for what in ["handshake", "first_byte", "connection"] {
        let seen = Distribution::of(&kind[what]).at_least_ms(250);
        assert!(seen >= 24, "{what}: {seen}");
    }
}
