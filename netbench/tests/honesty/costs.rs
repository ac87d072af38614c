//! CPU time and context switches, against the kernel's accounts of the processes.

use std::collections::BTreeMap;
use std::fs::{self, read_to_string};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::instrument::{ALL_MEASURED, command, count, figure, kind, number, only, read};

/// So many that starting and ending the processes is little beside them.
const CONNECTIONS: &str = "300";

fn cpu_seconds(process: &Value) -> f64 {
    (number(&process["user_us"]) + number(&process["system_us"])) / 1e6
}

fn switches(process: &Value) -> u64 {
    count(&process["voluntary_switches"]) + count(&process["involuntary_switches"])
}

#[test]
fn cpu_time_of_both_sides_is_what_the_kernel_charges_for_the_run() {
    // The first process of a world of its own inherits whom nobody waits for, so that `times`,
    // which tells of children that were waited for, tells of all.
    const SHELL: &str = "echo ready; \"$@\" > /dev/null || exit 1; \
                         while kill -0 -1 2> /dev/null; do /bin/true; done; times";
    let work = ["request-response", "--connections", CONNECTIONS];
    let (run, path) = command("cpu", &[&work[..], &ALL_MEASURED].concat());
    let output = Command::new("unshare")
        .args(["-rp", "--fork", "sh", "-c", SHELL, "sh"])
        .arg(run.get_program())
        .args(run.get_args())
        .output();
    let said = match &output {
        Ok(output) if output.stdout.starts_with(b"ready\n") => output,
        otherwise => {
            test_summary::skip(format!(
                "processes of its own need root or user namespaces: {otherwise:?}"
            ));
            return;
        }
    };
    assert!(said.status.success(), "{said:?}");
    // The last line has user and system time of the children, as `0m1.640000s 0m0.200000s`.
    let text = String::from_utf8_lossy(&said.stdout);
    let times = text.lines().last().unwrap().split_whitespace();
    let charged: f64 = times.map(seconds).sum();

    let results = read(&path);
    let repetition = only(&results);
    let sides = ["client", "server"].map(|side| cpu_seconds(&repetition[side]));
    let measured: f64 = sides.iter().sum();
    // Times of the kernel come in ticks of up to 10 ms for each of a few processes.
    assert!(measured <= charged + 0.05, "{measured} of {charged} s");
    assert!(measured >= 0.7 * charged, "{measured} of {charged} s");
    for (side, of_side) in ["client", "server"].iter().zip(sides) {
        let each = figure(repetition, &format!("{side}_cpu_us")) / 1e6;
        let ok = number(&kind(repetition)["outcomes"]["ok"]);
        assert!((each * ok - of_side).abs() < 1e-6);
    }
}

/// Reads a time like `2m3.25s`.
fn seconds(time: &str) -> f64 {
    let (minutes, seconds) = time.trim_end_matches('s').split_once('m').unwrap();
    minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
}

/// Figures of a process when it was last seen.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    cpu_seconds: f64,
    switches: u64,
}

/// Looks at the children of a run until it ends; returns the last look at each, by its part.
fn watch(run: &mut Child) -> BTreeMap<String, Seen> {
    let mut all = BTreeMap::new();
    let children = format!("/proc/{0}/task/{0}/children", run.id());
    while run.try_wait().unwrap().is_none() {
        for pid in read_to_string(&children)
            .unwrap_or_default()
            .split_whitespace()
        {
            if let Some((part, seen)) = look(pid) {
                all.insert(part, seen);
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
    all
}

/// `None`: it is gone, or has not become what it is to be.
fn look(pid: &str) -> Option<(String, Seen)> {
    let line = read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
    let part = line.split('\0').nth(1)?.to_owned();
    // Behind the name in brackets, fields 12 and 13 are user and system time in ticks of 10 ms.
    let stat = read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = stat.rsplit(')').next()?.split_whitespace();
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum();
    let mut switches = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let status = read_to_string(thread.ok()?.path().join("status")).ok()?;
        let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
        let counts = counts.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok());
        switches += counts.sum::<u64>();
    }
    let cpu_seconds = ticks as f64 / 100.0;
    Some((
        part,
        Seen {
            cpu_seconds,
            switches,
        },
    ))
}

#[test]
fn each_side_is_charged_for_itself() {
    let work = ["request-response", "--connections", CONNECTIONS];
    let (mut run, path) = command("sides", &[&work[..], &ALL_MEASURED].concat());
    let mut run = run
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let seen = watch(&mut run);
    assert!(run.wait().unwrap().success());
    let results = read(&path);
    let repetition = only(&results);
    for (side, part) in [("client", "drive"), ("server", "serve")] {
        let seen = seen[part];
        // The figure lacks what came after the last look, and holds the start: with so many
        // connections both are little. Twice of it only who does not look for half of the run.
        let reported = cpu_seconds(&repetition[side]);
        let likely = 0.5 * seen.cpu_seconds..2.0 * seen.cpu_seconds;
        assert!(
            likely.contains(&reported),
            "{side}: {reported} s of {seen:?}"
        );
        let reported = switches(&repetition[side]);
        let likely = seen.switches / 2..2 * seen.switches;
        assert!(likely.contains(&reported), "{side}: {reported} of {seen:?}");
    }
}

#[test]
fn who_only_waits_is_charged_for_switches_and_little_time() {
    let ops = serde_json::json!([{"connect": {"ops": [
        {"open_bidi": {"peer": [{"iterate": {"times": 100, "ops": [{"receive": 1}, {"send": 1}]}}]}},
        {"iterate": {"times": 100, "ops": [{"sleep": "10ms"}, {"request": {"ops": [{"send": 1}, {"receive": 1}]}}]}}
    ]}}]);
    let path = crate::instrument::scenario("waits", &ops);
    let results = crate::instrument::run("waits", &[&path, "--repetitions", "1"]);
    let repetition = only(&results);
    for side in ["client", "server"] {
        // A request wakes each side at least once, and whoever was woken had waited.
        let voluntary = count(&repetition[side]["voluntary_switches"]);
        assert!(voluntary >= 100, "{side}: {voluntary}");
        let elapsed = number(&repetition["elapsed_us"]) / 1e6;
        assert!(elapsed >= 1.0);
        let cpu = cpu_seconds(&repetition[side]);
        assert!(
            cpu > 0.0 && cpu < 0.5 * elapsed,
            "{side}: {cpu} s of {elapsed} s"
        );
    }
}
