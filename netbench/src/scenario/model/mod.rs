//! Scenarios as plain data, in the form that files have.

pub(super) mod bytes;
pub(super) mod op;
pub(crate) mod pattern;
pub(super) mod schema;
pub(super) mod search;
pub(super) mod text;

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::op::{Iterate, Op};
use crate::scenario::axes::Axes;

/// A script for clients and servers together, whatever the protocol.
///
/// In a file every number may also be the name of a parameter (`"$connections"`), and times, sizes
/// and rates may carry their unit (`"10ms"`, `"64KiB"`, `"500/s"`); here they are resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(
    title = "netbench scenario",
    extend("$id" = "scenario.schema.json"),
    transform = schema::with_schema_key
)]
pub(crate) struct Scenario {
    /// Version of the format.
    #[schemars(schema_with = "schema::format")]
    pub(crate) netbench: u32,
    /// Name in reports.
    #[schemars(regex(pattern = r"\S"))]
    pub(crate) name: String,
    /// Purpose of the measurement, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) description: String,
    /// Numbers that the user may set; anywhere below, "$name" stands for one. In a resolved scenario:
    /// their values.
    #[schemars(schema_with = "schema::params")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) params: BTreeMap<String, u64>,
    /// Lengths of warm-up, measurement and drain.
    #[serde(default)]
    pub(crate) phases: Phases,
    /// Settings of the transport of both ends.
    #[serde(default, skip_serializing_if = "Transport::is_default")]
    pub(crate) transport: Transport,
    /// True if each handshake is taken apart, message by message and operation by operation.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) breakdown: bool,
    /// Values that are varied; every combination is measured.
    #[serde(default, skip_serializing_if = "Axes::is_empty")]
    pub(crate) axes: Axes,
    /// Scripts of the client processes.
    #[schemars(length(min = 1))]
    pub(crate) clients: Vec<Client>,
}

/// Lengths of the phases of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Phases {
    /// Work that is done before the measurement, and not counted.
    #[serde(skip_serializing_if = "Amount::is_nothing")]
    pub(crate) warm_up: Amount,
    /// Time after which the measurement ends, unless the scripts end before.
    #[schemars(with = "schema::OptionalTime")]
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    pub(crate) measure: Option<Duration>,
    /// Time that work in progress may take to end once nothing new is begun. Work that has not ended
    /// by then is counted as unfinished.
    #[schemars(with = "schema::Time")]
    #[serde(with = "text::time")]
    pub(crate) drain: Duration,
}

/// Settings of the transport. A setting that is absent has the stack's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Transport {
    /// Silence after which a connection is given up.
    #[schemars(with = "schema::OptionalTime")]
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    pub(crate) idle_timeout: Option<Duration>,
    /// Number of streams of each kind that the peer may have open at once.
    #[schemars(with = "schema::OptionalCount")]
    #[serde(with = "text::optional_count", skip_serializing_if = "Option::is_none")]
    pub(crate) max_streams: Option<u64>,
    /// Bytes that may be unread or unacknowledged, on a connection and on each of its streams.
    #[schemars(with = "schema::OptionalCount")]
    #[serde(with = "text::optional_count", skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<u64>,
    /// Bytes of each socket buffer that is asked of the system.
    #[schemars(with = "schema::OptionalCount")]
    #[serde(with = "text::optional_count", skip_serializing_if = "Option::is_none")]
    pub(crate) socket_buffer: Option<u64>,
}

/// Amount of work in the warm-up: the scripts with this number of connections for each `connect`,
/// or for this time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Amount {
    /// Number of connections of each `connect`, and of requests of each `pool`.
    #[schemars(with = "schema::OptionalCount")]
    #[serde(with = "text::optional_count", skip_serializing_if = "Option::is_none")]
    pub(crate) connections: Option<u64>,
    /// Time, counted from the first connection.
    #[schemars(with = "schema::OptionalTime")]
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<Duration>,
}

/// One client process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Client {
    /// Name in reports.
    pub(crate) name: String,
    /// Operations, one after the other.
    pub(crate) ops: Vec<ClientOp>,
}

/// An operation of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClientOp {
    /// Makes connections, each with the same script.
    Connect(Box<Connect>),
    /// Makes requests over connections that are kept and shared.
    Pool(Box<Pool>),
    /// Opens connections before the measurement, and keeps them to its end without a word.
    Hold(Box<Hold>),
    /// Does nothing for a while.
    Sleep(
        #[schemars(with = "schema::Time")]
        #[serde(with = "text::time")]
        Duration,
    ),
    /// Waits until the checkpoint of that number is unparked.
    Park(#[schemars(with = "schema::Count")] u64),
    /// Releases every script that waits, or will wait, at the checkpoint of that number.
    Unpark(#[schemars(with = "schema::Count")] u64),
    /// Runs these scripts at the same time, and continues when all are done.
    Scope(Vec<Vec<ClientOp>>),
    /// Repeats operations.
    Iterate(Iterate<ClientOp>),
}

/// Makes connections, each with the same script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Connect {
    /// Number of the server, where there are several: `SERVER_0`, `SERVER_1`, …
    #[schemars(with = "schema::Count")]
    #[serde(default)]
    pub(crate) server: usize,
    /// Name of the connections in results, where a scenario makes several kinds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) label: String,
    /// Number of connections. `None`: as many as the measurement has time for.
    #[schemars(with = "schema::OptionalAtLeastOne")]
    #[serde(default = "one", with = "text::optional_count")]
    pub(crate) connections: Option<u64>,
    /// Largest number of concurrent connections. A closed loop (no `rate`) always keeps this many
    /// going. Default: 1; with a rate 10000.
    #[schemars(with = "schema::Bound")]
    #[serde(default = "one_u32")]
    pub(crate) concurrency: u32,
    /// Open loop: number of connections that begin every second, whether or not earlier ones are done.
    /// Latency counts from the intended start, also where `concurrency` holds one back.
    #[schemars(with = "schema::PerSecond")]
    #[serde(
        default,
        with = "text::optional_rate",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) rate: Option<f64>,
    /// Spacing of the arrivals of an open loop.
    #[serde(default)]
    pub(crate) arrivals: Arrivals,
    /// Time that one connection may take from its start to its end.
    #[schemars(with = "schema::Time")]
    #[serde(default = "ten_seconds", with = "text::time")]
    pub(crate) timeout: Duration,
    /// Consequence of a failure.
    #[serde(default)]
    pub(crate) on_error: OnError,
    /// Operations of the client on each connection.
    #[serde(default)]
    pub(crate) ops: Vec<Op>,
    /// Operations of the server on each connection, besides answering streams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) server_ops: Vec<Op>,
}

/// Opens connections before the measurement, and keeps them, idle, until the run ends.
///
/// They are not counted: the cost of everything else is measured while they are open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hold {
    /// Number of the server, where there are several.
    #[schemars(with = "schema::Count")]
    #[serde(default)]
    pub(crate) server: usize,
    /// Number of connections.
    #[schemars(with = "schema::Count")]
    pub(crate) connections: u64,
    /// Number of handshakes in progress at once.
    #[schemars(with = "schema::AtLeastOne")]
    #[serde(default = "thirty_two")]
    pub(crate) concurrency: u32,
    /// Time from the last handshake to the measurement, in which everything comes to rest.
    #[schemars(with = "schema::Time")]
    #[serde(default = "three_seconds", with = "text::time")]
    pub(crate) settle: Duration,
    /// Time in which all connections must be there.
    #[schemars(with = "schema::Time")]
    #[serde(default = "ten_minutes", with = "text::time")]
    pub(crate) timeout: Duration,
}

/// Makes requests over connections that are kept and shared: each takes one that is free, opens a
/// new one while there are fewer than `connections`, or else waits for one.
///
/// Every request is timed from its intended start: with the wait for a connection, and with the
/// handshake where it opens one. One that fails costs its connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pool {
    /// Number of the server, where there are several.
    #[schemars(with = "schema::Count")]
    #[serde(default)]
    pub(crate) server: usize,
    /// Name of the connections and requests in results, where a scenario makes several kinds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) label: String,
    /// Number of connections that there may be at once.
    #[schemars(with = "schema::AtLeastOne")]
    #[serde(default = "one_u32")]
    pub(crate) connections: u32,
    /// Time that a connection may be unused before the pool closes it. `None`: it is kept.
    #[schemars(with = "schema::OptionalTime")]
    #[serde(
        default,
        with = "text::optional_time",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) keep: Option<Duration>,
    /// Number of requests. `None`: as many as the measurement has time for.
    #[schemars(with = "schema::OptionalAtLeastOne")]
    #[serde(
        default,
        with = "text::optional_count",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) requests: Option<u64>,
    /// Open loop: number of bursts that begin every second. `None`: a closed loop, in which each
    /// connection always has a request in progress.
    #[schemars(with = "schema::PerSecond")]
    #[serde(
        default,
        with = "text::optional_rate",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) rate: Option<f64>,
    /// Open loop, in place of `rate`: time between the beginnings of two bursts.
    #[schemars(with = "schema::OptionalTime")]
    #[serde(
        default,
        with = "text::optional_time",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) every: Option<Duration>,
    /// Number of requests that begin together.
    #[schemars(with = "schema::AtLeastOne")]
    #[serde(default = "one_u32")]
    pub(crate) burst: u32,
    /// Spacing of the bursts of an open loop.
    #[serde(default)]
    pub(crate) arrivals: Arrivals,
    /// Time that one request may take from its intended start to its end.
    #[schemars(with = "schema::Time")]
    #[serde(default = "ten_seconds", with = "text::time")]
    pub(crate) timeout: Duration,
    /// Consequence of a failure.
    #[serde(default)]
    pub(crate) on_error: OnError,
    /// Operations of one request.
    #[schemars(length(min = 1))]
    pub(crate) ops: Vec<Op>,
}

/// Spacing of the arrivals of an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Arrivals {
    /// Evenly.
    #[default]
    Constant,
    /// At random, as independent users arrive. The seed is fixed.
    Poisson,
}

/// Consequence of a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnError {
    /// The failure is counted by its kind, and the run continues.
    #[default]
    Count,
    /// The run ends; what was measured before is kept.
    Stop,
}

impl Transport {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Amount {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Phases {
    fn default() -> Self {
        Self {
            warm_up: Amount::default(),
            measure: None,
            drain: Duration::from_secs(2),
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "serde asks for the field's type")]
fn one() -> Option<u64> {
    Some(1)
}

pub(super) fn one_u32() -> u32 {
    1
}

fn thirty_two() -> u32 {
    32
}

fn three_seconds() -> Duration {
    Duration::from_secs(3)
}

fn ten_minutes() -> Duration {
    Duration::from_mins(10)
}

fn ten_seconds() -> Duration {
    Duration::from_secs(10)
}
