//! Results of a run, in the form of the JSON file. Everything else (tables, CSV, the HTML report,
//! `compare`, `merge`) is made from them.

mod about;
mod brief;
mod derive;
mod file;
mod histogram;
mod metrics;
mod schema;
mod summary;

use std::collections::BTreeMap;
use std::fmt;

use hybriq::tls::Suite;
use hybriq::{Backend, Group};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::drivers::{Negotiated, Traffic};
use crate::scenario::Scenario;
use crate::scenario::axes::{Cell, Name, named};
use crate::system::machine::Machine;

pub(crate) use about::Fleet;
pub(crate) use brief::brief;
pub(crate) use histogram::Histogram;
pub(crate) use metrics::{Better, METRICS, Metric, Summary};

/// Version of the format.
pub(crate) const FORMAT: u32 = 1;

/// Bits per connection from which on a scenario is about throughput.
pub(crate) const MUCH: f64 = 64.0 * 1024.0 * 8.0;

/// Everything that a run measured.
#[expect(
    clippy::struct_field_names,
    reason = "the format's field tells it from other files"
)]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(
    title = "Results of netbench",
    description = "Written by `netbench run --json`. Times are in microseconds unless their name says otherwise.",
    extend("$id" = "urn:hybriq:netbench:results:1")
)]
pub(crate) struct Results {
    /// Version of the format.
    #[schemars(schema_with = "schema::format")]
    pub(crate) netbench_results: u32,
    /// True if everything that was asked for is here. Failures are in `problems`.
    pub(crate) complete: bool,
    /// Failures, each in a line.
    pub(crate) problems: Vec<String>,
    /// Facts that are needed to do the run again.
    pub(crate) about: About,
    /// The scenario, as in scenario.schema.json, with its parameters resolved.
    #[schemars(schema_with = "schema::scenario")]
    pub(crate) scenario: Scenario,
    /// Digest of the scenario's content.
    pub(crate) scenario_id: String,
    /// Cells of the matrix.
    pub(crate) cells: Vec<CellResult>,
    /// Times of handshakes, message by message and operation by operation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) breakdowns: Vec<Breakdown>,
}

/// Facts that are needed to do a run again.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct About {
    /// Version of netbench.
    pub(crate) netbench: String,
    /// Kind of the build. Figures of a debug build say nothing.
    #[schemars(extend("enum" = ["release", "debug"]))]
    pub(crate) build: String,
    /// Revision of the sources, `-dirty` where they were changed; `None`: built without git.
    pub(crate) git: Option<String>,
    /// Arguments of the command, without secrets.
    pub(crate) command: Vec<String>,
    /// Start of the run: UTC, RFC 3339.
    pub(crate) started: String,
    /// Machine of the clients, and of the servers unless those ran elsewhere.
    pub(crate) machine: Machine,
    /// Machines of servers on other hosts, in the order of the scenario's server numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) servers: Vec<Machine>,
    /// Place among the clients that ran at the same time.
    #[schemars(with = "Fleet")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fleet: Option<Fleet>,
    /// Runs that `netbench merge` put together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) merged: Vec<About>,
    /// Versions of the stacks and libraries that were measured, by crate.
    pub(crate) crates: BTreeMap<String, String>,
}

/// Results of one cell of the matrix.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CellResult {
    /// The cell.
    pub(crate) cell: Cell,
    /// Name that distinguishes it from the other cells: the values of the axes that vary.
    pub(crate) name: String,
    /// Reason why it was not measured.
    #[schemars(with = "String")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left_out: Option<String>,
    /// Repetitions, in the order in which they were measured.
    pub(crate) repetitions: Vec<Repetition>,
    /// True if other work on the machine disturbed one of the repetitions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) disturbed: bool,
    /// Metrics over all repetitions, by the names of [`METRICS`].
    #[schemars(transform = schema::by_metric)]
    pub(crate) summary: BTreeMap<String, Summary>,
}

/// One repetition of one cell: fresh processes, a warm-up, a measurement.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Repetition {
    /// Milliseconds from the start of the run to the start of the measurement.
    #[schemars(range(min = 0))]
    pub(crate) started_ms: f64,
    /// Milliseconds from 1970 to the start of the measurement, by the clock of this machine.
    /// `merge` sees by it which repetitions ran at the same time.
    #[schemars(range(min = 0))]
    #[serde(default)]
    pub(crate) unix_ms: f64,
    /// Number of the server processes of its fleet that it shared with other clients.
    #[schemars(with = "u64")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) round: Option<u64>,
    /// Wall time of the measurement.
    #[schemars(range(min = 0))]
    pub(crate) elapsed_us: f64,
    /// CPU time of other processes of the client's machine meanwhile, in cores; `None`: too short
    /// to tell. From 0.15 on the repetition counts as disturbed.
    #[schemars(with = "f64", range(min = 0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) other_cores: Option<f64>,
    /// Reason why it ended early. Everything here was measured before.
    #[schemars(with = "String")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// Outcome of the first connection's handshake; every other one had the same.
    pub(crate) negotiated: Negotiated,
    /// Outcomes of the connections of each label; a scenario without labels has one, the empty
    /// text.
    pub(crate) kinds: BTreeMap<String, KindResult>,
    /// Progress, interval by interval.
    pub(crate) samples: Vec<Sample>,
    /// Costs of the client processes.
    pub(crate) client: Process,
    /// Costs of the server processes.
    pub(crate) server: Process,
    /// Traffic of all handshakes, as the client's stack counted it.
    pub(crate) handshake_traffic: Traffic,
    /// Traffic after the handshakes, as the client's stack counted it.
    pub(crate) data_traffic: Traffic,
    /// Packets that the client's stack declared lost.
    pub(crate) packets_lost: u64,
    /// Probe timeouts of the client's stack.
    pub(crate) timeouts: u64,
    /// Metrics by the names of [`METRICS`], without those that this scenario or stack lacks.
    #[schemars(transform = schema::by_metric)]
    pub(crate) metrics: BTreeMap<String, f64>,
}

/// Outcomes of the connections of one label.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct KindResult {
    /// Number of connections by outcome: `ok`, and failures by the text of
    /// [`crate::system::outcome::Kind`].
    pub(crate) outcomes: BTreeMap<String, u64>,
    /// First failure of each kind, in words.
    pub(crate) details: BTreeMap<String, String>,
    /// Times from the intended start until the handshake was complete.
    pub(crate) handshake: Histogram,
    /// Times from the intended start until the first byte of the peer's application.
    pub(crate) first_byte: Histogram,
    /// Times from the intended start until the connection's script was done.
    pub(crate) connection: Histogram,
    /// Times of requests from their intended start, by label.
    pub(crate) requests: BTreeMap<String, Histogram>,
    /// Round trips of datagrams that were echoed.
    pub(crate) datagrams: Histogram,
    /// Datagrams whose echo never came.
    pub(crate) datagrams_lost: u64,
    /// Bytes that the scripts sent on streams.
    pub(crate) stream_bytes_sent: u64,
    /// Bytes that the scripts received on streams.
    pub(crate) stream_bytes_received: u64,
}

/// Events in one interval of the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Sample {
    /// End of the interval, from the start of the measurement.
    #[schemars(range(min = 0))]
    pub(crate) at_ms: f64,
    /// Length of the interval.
    #[schemars(range(min = 0))]
    pub(crate) lasted_ms: f64,
    /// Connections that ended well.
    pub(crate) connections: u64,
    /// Requests that ended well.
    pub(crate) requests: u64,
    /// Connections that failed.
    pub(crate) failures: u64,
    /// Bytes sent on streams.
    pub(crate) bytes_sent: u64,
    /// Bytes received on streams.
    pub(crate) bytes_received: u64,
    /// CPU time of the client process.
    #[schemars(range(min = 0))]
    pub(crate) cpu_us: f64,
}

/// Costs of a process while it was measured.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Process {
    /// CPU time in user mode.
    #[schemars(range(min = 0))]
    pub(crate) user_us: f64,
    /// CPU time in the kernel.
    #[schemars(range(min = 0))]
    pub(crate) system_us: f64,
    /// Context switches because it waited.
    pub(crate) voluntary_switches: u64,
    /// Context switches because another process ran.
    pub(crate) involuntary_switches: u64,
    /// Resident memory at the start.
    pub(crate) rss_at_start_kib: u64,
    /// Resident memory at the end.
    pub(crate) rss_at_end_kib: u64,
    /// Largest resident memory.
    pub(crate) peak_rss_kib: u64,
    /// Everything that passed the socket; `None`: the stack does not tell.
    pub(crate) traffic: Option<Traffic>,
    /// Connections that ended well.
    pub(crate) completed: u64,
    /// Connections that failed.
    pub(crate) failed: u64,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Side {
    /// The end that opened the connection.
    Client,
    /// The end that accepted it.
    Server,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}

/// Time of one kind of handshake on one side, part by part.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Breakdown {
    /// End that was measured.
    pub(crate) side: Side,
    /// TLS provider of that end.
    #[schemars(with = "Name<Backend>")]
    #[serde(with = "named")]
    pub(crate) provider: Backend,
    /// Group that was negotiated, by its IANA name.
    #[schemars(with = "Name<Group>")]
    #[serde(with = "named")]
    pub(crate) group: Group,
    /// Cipher suite, by its IANA name.
    #[schemars(with = "Name<Suite>")]
    #[serde(with = "named")]
    pub(crate) suite: Suite,
    /// Kind of the server's certificate, with the length of its chain and the client's
    /// certificate, if any: `ecdsa-p256, chain of 3, client too`.
    pub(crate) certificate: String,
    /// Beginning of the handshake: `full`, `psk`, or `psk, shares made ahead`.
    pub(crate) mode: String,
    /// Messages, in the order of the handshake.
    pub(crate) messages: Vec<Part>,
    /// Operations inside of the messages.
    pub(crate) operations: Vec<Part>,
    /// Time of the whole handshake.
    pub(crate) total_us: Summary,
}

/// A message that is made or handled, or an operation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Part {
    /// Name of the message or of the operation.
    pub(crate) name: String,
    /// Number of times in one handshake.
    #[schemars(range(min = 0))]
    pub(crate) count: f64,
    /// Bytes on the wire; 0 for operations.
    pub(crate) bytes: u64,
    /// Time of all of them in one handshake.
    pub(crate) us: Summary,
}
