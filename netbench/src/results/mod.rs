//! What was measured, as it stands in the JSON file. Everything else (tables, CSV, the HTML report,
//! `compare`, `merge`) is made from this.

mod about;
mod brief;
mod figures;
mod file;
mod histogram;
mod metrics;
mod summary;
mod table;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::axes::Cell;
use crate::drivers::{Negotiated, Traffic};
use crate::fleet::Fleet;
use crate::machine::Machine;
use crate::scenario::Scenario;

pub(crate) use brief::brief;
pub(crate) use histogram::Histogram;
pub(crate) use metrics::{Better, METRICS, Metric, Summary};

/// The version of the format.
pub(crate) const FORMAT: u32 = 1;

/// Scenarios with so many bits for each connection are about throughput.
const MUCH: f64 = 64.0 * 1024.0 * 8.0;

/// A whole run.
#[expect(
    clippy::struct_field_names,
    reason = "the format's field tells it from other files"
)]
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Results {
    /// [`FORMAT`].
    pub(crate) netbench_results: u32,
    /// Whether everything that was asked for is here. What failed is in `problems`.
    pub(crate) complete: bool,
    pub(crate) problems: Vec<String>,
    pub(crate) about: About,
    pub(crate) scenario: Scenario,
    /// A digest of the scenario's content.
    pub(crate) scenario_id: String,
    pub(crate) cells: Vec<CellResult>,
    /// Where a handshake's time goes, message by message and operation by operation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) breakdowns: Vec<Breakdown>,
}

/// What is needed to do it again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct About {
    /// Version of netbench.
    pub(crate) netbench: String,
    /// `release` or `debug`. Figures of a debug build say nothing.
    pub(crate) build: String,
    /// Revision of the sources, `-dirty` where they were changed; `None`: built without git.
    pub(crate) git: Option<String>,
    pub(crate) command: Vec<String>,
    /// UTC, RFC 3339.
    pub(crate) started: String,
    pub(crate) machine: Machine,
    /// The machines of servers on other hosts, in the order of the scenario's server numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) servers: Vec<Machine>,
    /// Which client of how many this was, all at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fleet: Option<Fleet>,
    /// The runs that `netbench merge` has made this of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) merged: Vec<About>,
    /// Versions of the stacks and libraries that were measured, by crate.
    pub(crate) crates: BTreeMap<String, String>,
}

/// One cell of the matrix.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CellResult {
    pub(crate) cell: Cell,
    /// What distinguishes it from the other cells: the values of the axes that vary.
    pub(crate) name: String,
    /// Why it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left_out: Option<String>,
    pub(crate) repetitions: Vec<Repetition>,
    /// By the names of [`METRICS`].
    pub(crate) summary: BTreeMap<String, Summary>,
}

/// One repetition of one cell: fresh processes, a warm-up, a measurement.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Repetition {
    /// Milliseconds from the start of the run to the start of the measurement.
    pub(crate) started_ms: f64,
    /// The same from 1970 on, by the clock of this machine: `merge` sees by it what was at the same
    /// time.
    #[serde(default)]
    pub(crate) unix_ms: f64,
    /// Which of the server processes of its fleet it shared with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) round: Option<u64>,
    /// Wall time of the measurement.
    pub(crate) elapsed_us: f64,
    /// Why it ended early. What is here was measured before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// Of the first connection; every other one was the same.
    pub(crate) negotiated: Negotiated,
    /// What each label's connections came to; a scenario without labels has one, the empty text.
    pub(crate) kinds: BTreeMap<String, KindResult>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) client: Process,
    pub(crate) server: Process,
    /// Sums over the connections, by phase, as the client's stack counted them.
    pub(crate) handshake_traffic: Traffic,
    pub(crate) data_traffic: Traffic,
    pub(crate) packets_lost: u64,
    pub(crate) timeouts: u64,
    /// By the names of [`METRICS`]; without those that this scenario or stack has not.
    pub(crate) metrics: BTreeMap<String, f64>,
}

/// Connections of one label.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct KindResult {
    /// `ok`, and failures by the text of [`crate::outcome::Kind`].
    pub(crate) outcomes: BTreeMap<String, u64>,
    /// The first failure of each kind, in words.
    pub(crate) details: BTreeMap<String, String>,
    /// From the intended start until the handshake was complete.
    pub(crate) handshake: Histogram,
    /// From the intended start until the first byte of the peer's application.
    pub(crate) first_byte: Histogram,
    /// From the intended start until the connection's script was done.
    pub(crate) connection: Histogram,
    /// By label, from the intended start.
    pub(crate) requests: BTreeMap<String, Histogram>,
    /// Round trips of datagrams that were echoed.
    pub(crate) datagrams: Histogram,
    pub(crate) datagrams_lost: u64,
    /// Bytes of streams, as the scripts sent and received them.
    pub(crate) stream_bytes_sent: u64,
    pub(crate) stream_bytes_received: u64,
}

/// What happened in one interval of the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// The end of the interval, from the start of the measurement.
    pub(crate) at_ms: f64,
    /// Its length.
    pub(crate) lasted_ms: f64,
    pub(crate) connections: u64,
    pub(crate) requests: u64,
    pub(crate) failures: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    /// Of this process.
    pub(crate) cpu_us: f64,
}

/// What a process spent while it was measured.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) user_us: f64,
    pub(crate) system_us: f64,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
    pub(crate) rss_at_start_kib: u64,
    pub(crate) rss_at_end_kib: u64,
    pub(crate) peak_rss_kib: u64,
    /// All that passed the socket; `None`: the stack does not tell.
    pub(crate) traffic: Option<Traffic>,
    /// Connections that ended as they should, and that did not.
    pub(crate) completed: u64,
    pub(crate) failed: u64,
}

/// Where the time of one kind of handshake goes, on one side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Breakdown {
    /// `client` or `server`.
    pub(crate) side: String,
    pub(crate) provider: String,
    pub(crate) group: String,
    pub(crate) suite: String,
    pub(crate) certificate: String,
    /// `full`, `psk`, or `psk, shares made ahead`.
    pub(crate) mode: String,
    /// In the order of the handshake.
    pub(crate) messages: Vec<Part>,
    /// Those that are timed inside of the messages.
    pub(crate) operations: Vec<Part>,
    pub(crate) total_us: Summary,
}

/// A message that is made or handled, or an operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// How often in one handshake.
    pub(crate) count: f64,
    /// Bytes on the wire; 0 for operations.
    pub(crate) bytes: u64,
    /// All of one handshake together.
    pub(crate) us: Summary,
}
