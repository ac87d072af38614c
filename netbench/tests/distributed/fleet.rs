//! Clients that share server processes, and their results merged.

use serde_json::{Value, json};

use crate::agent::{Agent, netbench, only_line};
use crate::client::{Client, Ran, count, file, number, read, succeeded};
use crate::processes::{busy, child};

const TWO_CELLS: [&str; 6] = [
    "--group",
    "X25519,X25519MLKEM768",
    "--connections",
    "20",
    "--repetitions",
    "2",
];

fn member(name: &str, agent: &Agent, size: usize, id: usize, args: &[&str]) -> Client {
    let mut command = netbench();
    command
        .env("SERVER_0", agent.address.to_string())
        .env("CLIENT_ID", id.to_string())
        .args(["client", "--fleet", &size.to_string()])
        .args(args);
    Client::of(&format!("{name}-{id}"), command)
}

fn fleet(name: &str, size: usize, args: &[&str]) -> Vec<Ran> {
    let agent = Agent::start(&["--fleet", &size.to_string()]);
    let clients: Vec<_> = (0..size)
        .map(|id| member(name, &agent, size, id, args))
        .collect();
    clients.into_iter().map(Client::finish).collect()
}

/// The field of that path.
fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    let found = value.pointer(path);
    found.unwrap_or_else(|| panic!("no {path} in {value}"))
}

fn repetitions(results: &Value) -> Vec<&Value> {
    let cells = results["cells"].as_array().unwrap().iter();
    cells
        .flat_map(|cell| cell["repetitions"].as_array().unwrap())
        .collect()
}

/// The buckets of a histogram, each as often as it was hit.
fn values(histogram: &Value) -> Vec<u64> {
    let buckets = histogram["buckets_ns"].as_array().unwrap().iter();
    let mut all: Vec<u64> = buckets
        .flat_map(|bucket| vec![count(&bucket[0]); usize::try_from(count(&bucket[1])).unwrap()])
        .collect();
    all.sort_unstable();
    all
}

fn samples(repetition: &Value, field: &str) -> u64 {
    let samples = repetition["samples"].as_array().unwrap().iter();
    samples.map(|sample| count(&sample[field])).sum()
}

/// The merged repetition is the sum of the clients'.
fn is_the_sum(merged: &Value, of_each: &[&Value]) {
    let sum = |path: &str| of_each.iter().map(|one| count(at(one, path))).sum::<u64>();
    for path in [
        "/kinds//outcomes/ok",
        "/kinds//handshake/count",
        "/kinds//first_byte/count",
        "/kinds//connection/count",
        "/kinds//requests//count",
        "/kinds//stream_bytes_sent",
        "/kinds//stream_bytes_received",
        "/client/completed",
        "/client/traffic/sent_bytes",
        "/client/traffic/received_datagrams",
        "/handshake_traffic/sent_bytes",
        "/data_traffic/received_bytes",
    ] {
        assert!(sum(path) > 0, "{path}");
        assert_eq!(count(at(merged, path)), sum(path), "{path}");
    }
    let all = of_each
        .iter()
        .flat_map(|one| values(at(one, "/kinds//handshake")));
    let mut all: Vec<_> = all.collect();
    all.sort_unstable();
    assert_eq!(values(at(merged, "/kinds//handshake")), all);
    for field in ["connections", "requests", "bytes_sent", "bytes_received"] {
        let of_each = of_each.iter().map(|one| samples(one, field));
        assert_eq!(samples(merged, field), of_each.sum::<u64>(), "{field}");
    }
    // They shared one server, and each has been told what it spent.
    assert_eq!(merged["server"], of_each[0]["server"]);
    assert_eq!(
        count(at(merged, "/server/completed")),
        sum("/client/completed")
    );
    for one in of_each {
        let cost = |repetition: &Value| number(at(repetition, "/metrics/server_cpu_us"));
        assert!((cost(merged) - cost(one)).abs() < 0.001);
    }
    let sent = sum("/client/traffic/sent_bytes");
    assert_eq!(count(at(merged, "/server/traffic/received_bytes")), sent);
}

/// Runs `netbench merge`, and returns its output and the file that it wrote.
pub(crate) fn merge(
    name: &str,
    files: &[&std::path::PathBuf],
) -> (std::process::Output, Option<Value>) {
    let out = file(name);
    let mut command = netbench();
    command.arg("merge").args(files).arg("--out").arg(&out);
    let output = command.output().unwrap();
    let merged = out.exists().then(|| read(&out));
    (output, merged)
}

#[test]
fn three_clients_add_up_to_one_result_and_a_missing_one_is_marked() {
    let ran = fleet("three", 3, &TWO_CELLS);
    let results: Vec<_> = ran.iter().map(Ran::results).collect();
    let files: Vec<_> = ran.iter().map(|ran| &ran.json).collect();

    let (output, merged) = merge("three.json", &files);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let merged = merged.unwrap();
    assert_eq!(merged["complete"], true);
    assert_eq!(merged["about"]["merged"].as_array().unwrap().len(), 3);
    let sums = repetitions(&merged);
    assert_eq!(sums.len(), 4);
    let of_each: Vec<_> = results.iter().map(repetitions).collect();
    for sum in sums {
        assert_eq!(succeeded(sum), 60);
        // The order of the rounds is that of the run, for each client.
        let same: Vec<_> = of_each
            .iter()
            .map(|one| *one.iter().find(|one| one["round"] == sum["round"]).unwrap())
            .collect();
        is_the_sum(sum, &same);
    }

    let (output, merged) = merge("two-of-three.json", &[files[0], files[2]]);
    assert!(!output.status.success());
    assert!(only_line(&output.stderr).contains("client 1 of the fleet of 3 is missing"));
    let merged = merged.unwrap();
    assert_eq!(merged["complete"], false);
    assert!(
        merged["problems"]
            .to_string()
            .contains("client 1 of the fleet of 3")
    );
    assert!(repetitions(&merged).iter().all(|sum| succeeded(sum) == 40));

    let (output, merged) = merge("twice.json", &[files[0], files[1], files[0]]);
    assert!(!output.status.success() && merged.is_none());
    assert!(only_line(&output.stderr).contains("are the same run"));
}

#[test]
fn a_fleet_that_does_not_come_is_not_waited_for_for_ever() {
    let agent = Agent::start(&["--fleet", "3", "--fleet-wait", "1"]);
    let clients = [0, 1].map(|id| member("late", &agent, 3, id, &[]));
    for client in clients {
        let ran = client.finish();
        let line = ran.refusal();
        // Each may have been alone, where the other came after the second was over.
        assert!(
            line.contains("of the fleet's 3 clients came within 1 s"),
            "{line}"
        );
    }
}

#[test]
fn a_number_that_is_taken_is_refused_and_the_fleet_is_not_disturbed() {
    let agent = Agent::start(&["--fleet", "2"]);
    let args = [
        "--group",
        "X25519",
        "--connections",
        "5",
        "--repetitions",
        "1",
    ];
    let first = member("taken", &agent, 2, 0, &args);
    let twin = member("taken-twin", &agent, 2, 0, &args);
    // One of the two is refused as soon as it comes, whichever that is.
    let (sender, refused) = std::sync::mpsc::channel();
    for client in [first, twin] {
        let sender = sender.clone();
        std::thread::spawn(move || sender.send(client.finish()));
    }
    let next = || refused.recv_timeout(crate::processes::PATIENCE).unwrap();
    assert!(
        next()
            .refusal()
            .contains("client 0 of the fleet is here already")
    );
    let second = member("taken", &agent, 2, 1, &args);
    assert_eq!(succeeded(repetitions(&next().results())[0]), 5);
    assert_eq!(succeeded(repetitions(&second.finish().results())[0]), 5);
}

#[test]
fn a_member_that_dies_is_named_by_the_others_and_in_what_is_merged() {
    let agent = Agent::start(&["--fleet", "2"]);
    let args = ["--group", "X25519", "--repetitions", "1", "--connections"];
    let stays = member("stays", &agent, 2, 0, &[&args[..], &["2000"]].concat());
    let mut dies = member("dies", &agent, 2, 1, &[&args[..], &["2000"]].concat());
    busy(child(dies.child.id(), "drive"));
    dies.child.kill().unwrap();
    dies.finish();
    let ran = stays.finish();
    let results = ran.partial();
    assert_eq!(results["complete"], false);
    assert!(
        results["problems"].to_string().contains("client 1"),
        "{results}"
    );
    assert_eq!(succeeded(repetitions(&results)[0]), 2000);

    let (output, merged) = merge("member-died.json", &[&ran.json]);
    assert!(!output.status.success());
    assert_eq!(merged.unwrap()["complete"], json!(false));
}
