//! What a scenario says: plain data, as it stands in a file.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::op::{Iterate, Op};
use super::text;
use crate::axes::Axes;

/// The version of the format that this netbench reads and writes.
pub(crate) const FORMAT: u32 = 1;

/// What clients and servers do together: one script for both sides, whatever the protocol.
///
/// In a file every number may also be the name of a parameter (`"$connections"`), and times, sizes
/// and rates may carry their unit (`"10ms"`, `"64KiB"`, `"500/s"`); here they are resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// [`FORMAT`].
    pub(crate) netbench: u32,
    /// What it is called in reports.
    pub(crate) name: String,
    /// What it measures, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) description: String,
    /// The parameters that were named, and their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) params: BTreeMap<String, u64>,
    /// Warm-up, measurement and drain.
    #[serde(default)]
    pub(crate) phases: Phases,
    /// What the transport of both ends is set to.
    #[serde(default, skip_serializing_if = "Transport::is_default")]
    pub(crate) transport: Transport,
    /// Takes each handshake apart, message by message and operation by operation.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) breakdown: bool,
    /// What is varied; every combination is measured.
    #[serde(default, skip_serializing_if = "Axes::is_empty")]
    pub(crate) axes: Axes,
    /// The scripts of the client processes.
    pub(crate) clients: Vec<Client>,
}

/// When is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Phases {
    /// What is done before, and not counted.
    #[serde(skip_serializing_if = "Amount::is_nothing")]
    pub(crate) warm_up: Amount,
    /// When the measurement ends, should the scripts not end before.
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    pub(crate) measure: Option<Duration>,
    /// How long what is under way may take to end once nothing new is begun. What has not ended by
    /// then is counted as unfinished.
    #[serde(with = "text::time")]
    pub(crate) drain: Duration,
}

/// Settings of the transport; without one it is the stack's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Transport {
    /// Silence after which a connection is given up.
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    pub(crate) idle_timeout: Option<Duration>,
    /// Streams of each kind that the peer may have open at once.
    #[serde(with = "text::optional_count", skip_serializing_if = "Option::is_none")]
    pub(crate) max_streams: Option<u64>,
}

/// How much is done in the warm-up: the scripts with so many connections for each `connect`, or
/// for so long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Amount {
    /// Connections of each `connect`, requests of each `pool`.
    #[serde(with = "text::optional_count", skip_serializing_if = "Option::is_none")]
    pub(crate) connections: Option<u64>,
    /// Time, counted from the first connection.
    #[serde(with = "text::optional_time", skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<Duration>,
}

/// One client process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Client {
    /// What it is called in reports.
    pub(crate) name: String,
    /// What it does, one after the other.
    pub(crate) ops: Vec<ClientOp>,
}

/// What a client does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClientOp {
    /// Makes connections.
    Connect(Box<Connect>),
    /// Makes requests over connections that are kept and shared.
    Pool(Box<Pool>),
    /// Does nothing for a while.
    Sleep(#[serde(with = "text::time")] Duration),
    /// Waits until the checkpoint of that number is unparked.
    Park(u64),
    /// Lets those go on that wait, or will wait, at the checkpoint.
    Unpark(u64),
    /// Does these at the same time, and goes on when all are done.
    Scope(Vec<Vec<ClientOp>>),
    /// Does it again and again.
    Iterate(Iterate<ClientOp>),
}

/// Makes connections, each with the same script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Connect {
    /// Which server, where there are several: `SERVER_0`, `SERVER_1`, …
    #[serde(default)]
    pub(crate) server: usize,
    /// Names the connections in results where a scenario makes several kinds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) label: String,
    /// How many. `None`: as many as the measurement has time for.
    #[serde(default = "one", with = "text::optional_count")]
    pub(crate) connections: Option<u64>,
    /// How many may be under way at once. In a closed loop (no `rate`) so many always are.
    #[serde(default = "one_u32")]
    pub(crate) concurrency: u32,
    /// Open loop: so many begin every second, whether or not earlier ones are done. Latency counts
    /// from the intended start, also where `concurrency` holds one back.
    #[serde(
        default,
        with = "text::optional_rate",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) rate: Option<f64>,
    /// How arrivals of an open loop are spaced.
    #[serde(default)]
    pub(crate) arrivals: Arrivals,
    /// How long one connection may take from its start to its end.
    #[serde(default = "ten_seconds", with = "text::time")]
    pub(crate) timeout: Duration,
    /// What follows a failure.
    #[serde(default)]
    pub(crate) on_error: OnError,
    /// What the client does on each connection.
    #[serde(default)]
    pub(crate) ops: Vec<Op>,
    /// What the server does on each connection beside answering streams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) server_ops: Vec<Op>,
}

/// Makes requests over connections that are kept and shared: each takes one that is free, opens a
/// new one while there are fewer than `connections`, or else waits for one.
///
/// Every request is timed from its intended start: with the wait for a connection, and with the
/// handshake where it opens one. One that fails costs its connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pool {
    /// Which server, where there are several.
    #[serde(default)]
    pub(crate) server: usize,
    /// Names the connections and requests in results where a scenario makes several kinds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) label: String,
    /// How many connections there may be at once.
    #[serde(default = "one_u32")]
    pub(crate) connections: u32,
    /// How long a connection may be unused before the pool closes it. `None`: it is kept.
    #[serde(
        default,
        with = "text::optional_time",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) keep: Option<Duration>,
    /// How many requests. `None`: as many as the measurement has time for.
    #[serde(
        default,
        with = "text::optional_count",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) requests: Option<u64>,
    /// Open loop: so many bursts begin every second. `None`: a closed loop, in which each
    /// connection always has a request under way.
    #[serde(
        default,
        with = "text::optional_rate",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) rate: Option<f64>,
    /// Open loop, in place of `rate`: a burst begins every so often.
    #[serde(
        default,
        with = "text::optional_time",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) every: Option<Duration>,
    /// How many requests begin together.
    #[serde(default = "one_u32")]
    pub(crate) burst: u32,
    /// How bursts of an open loop are spaced.
    #[serde(default)]
    pub(crate) arrivals: Arrivals,
    /// How long one request may take from its intended start to its end.
    #[serde(default = "ten_seconds", with = "text::time")]
    pub(crate) timeout: Duration,
    /// What follows a failure.
    #[serde(default)]
    pub(crate) on_error: OnError,
    /// One request.
    pub(crate) ops: Vec<Op>,
}

/// How arrivals of an open loop are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Arrivals {
    /// Evenly.
    #[default]
    Constant,
    /// At random, as independent users arrive. The seed is fixed.
    Poisson,
}

/// What follows a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnError {
    /// It is counted by its kind, and the run goes on.
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

fn ten_seconds() -> Duration {
    Duration::from_secs(10)
}
