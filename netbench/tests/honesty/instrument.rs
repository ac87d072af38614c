//! Runs of the real binary, and what they reported.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

pub(crate) const NETBENCH: &str = env!("CARGO_BIN_EXE_netbench");

/// A file of this name that no other test has.
pub(crate) fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("honesty-{name}"))
}

/// The path of a scenario with these operations of its client, which a run can be given.
pub(crate) fn scenario(name: &str, ops: &Value) -> String {
    let scenario = serde_json::json!({
        "netbench": 1, "name": name, "clients": [{"name": "client", "ops": ops}]
    });
    let path = file(&format!("{name}-scenario.json"));
    std::fs::write(&path, scenario.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Flags of one repetition without a warm-up, whatever else the machine does: all that happens is measured.
pub(crate) const ALL_MEASURED: [&str; 6] =
    ["--warm-up", "0", "--repetitions", "1", "--retries", "0"];

/// Runs netbench, which must succeed, and returns its report.
pub(crate) fn run(name: &str, args: &[&str]) -> Value {
    let (mut command, path) = command(name, args);
    let output = command.output().unwrap();
    succeeded(&output);
    read(&path)
}

/// Runs netbench with connections that fail, checks that it says so and fails, and returns its
/// report.
pub(crate) fn run_with_failures(name: &str, args: &[&str], told: &str) -> Value {
    let (mut command, path) = command(name, args);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(told), "{said}");
    let results = read(&path);
    assert_eq!(results["complete"], true, "{said}");
    results
}

/// A run that is to be started, and the file that it reports to.
pub(crate) fn command(name: &str, args: &[&str]) -> (Command, PathBuf) {
    let path = file(&format!("{name}.json"));
    let _ = std::fs::remove_file(&path);
    let mut command = Command::new(NETBENCH);
    command.arg("run").args(args).arg("--json").arg(&path);
    // The tests beside this one disturb every measurement: measuring again only takes time.
    let measures_once = args.contains(&"--retries") || args.contains(&"handshake-breakdown");
    if !measures_once {
        command.args(["--retries", "0"]);
    }
    (command, path)
}

pub(crate) fn succeeded(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

pub(crate) fn read(path: &PathBuf) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value
        .as_array()
        .unwrap_or_else(|| panic!("{value} is no list"))
}

pub(crate) fn cells(results: &Value) -> &[Value] {
    list(&results["cells"])
}

/// The only repetition of the only cell.
pub(crate) fn only(results: &Value) -> &Value {
    let [cell] = cells(results) else {
        panic!("not one cell: {results}");
    };
    repetition(cell)
}

/// The only repetition of a cell.
pub(crate) fn repetition(cell: &Value) -> &Value {
    let [repetition] = list(&cell["repetitions"]) else {
        panic!("not one repetition: {cell}");
    };
    repetition
}

/// The connections without a label.
pub(crate) fn kind(repetition: &Value) -> &Value {
    &repetition["kinds"][""]
}

pub(crate) fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

pub(crate) fn count(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no count"))
}

/// A figure of a repetition.
pub(crate) fn figure(repetition: &Value, name: &str) -> f64 {
    number(&repetition["metrics"][name])
}

/// A distribution as its buckets have it; the numbers beside them are made from these.
pub(crate) struct Distribution(Vec<(u64, u64)>);

impl Distribution {
    pub(crate) fn of(histogram: &Value) -> Self {
        Self::of_all([histogram])
    }

    /// Sum over several.
    pub(crate) fn of_all<'a>(histograms: impl IntoIterator<Item = &'a Value>) -> Self {
        let histograms = histograms.into_iter();
        let buckets = histograms.flat_map(|histogram| list(&histogram["buckets_ns"]));
        let mut all: Vec<_> = buckets
            .map(|bucket| (count(&bucket[0]), count(&bucket[1])))
            .collect();
        all.sort_unstable();
        Self(all)
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// Returns the number of values of so many milliseconds or more.
    pub(crate) fn at_least_ms(&self, millis: u64) -> u64 {
        let long = self
            .0
            .iter()
            .filter(|(nanos, _)| *nanos >= millis * 1_000_000);
        long.map(|(_, count)| count).sum()
    }

    /// The smallest that so large a share does not exceed, in microseconds.
    pub(crate) fn us_at(&self, quantile: f64) -> f64 {
        let rank = ((self.count() as f64 * quantile).ceil() as u64).max(1);
        let mut below = 0;
        let reached = self.0.iter().find(|(_, count)| {
            below += count;
            below >= rank
        });
        reached.map_or(0.0, |(nanos, _)| *nanos as f64 / 1e3)
    }

    pub(crate) fn mean_us(&self) -> f64 {
        let sum = self
            .0
            .iter()
            .map(|(nanos, count)| *nanos as f64 * *count as f64);
        sum.sum::<f64>() / self.count() as f64 / 1e3
    }
}
