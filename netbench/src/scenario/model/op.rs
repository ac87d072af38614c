//! Operations on a connection as plain data, in the form that files have.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{schema, text};

/// An operation of either end of a connection.
///
/// A script chooses the numbers of its streams, 0 where it gives none; a stream that is opened under
/// the number of another replaces it. In the script of a peer's stream, 0 is that stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(transform = schema::with_bare_names)]
pub(crate) enum Op {
    /// Opens a bidirectional stream.
    OpenBidi(Open),
    /// Opens a unidirectional stream.
    OpenUni(Open),
    /// Sends a number of bytes on a stream.
    Send(Bytes),
    /// Limits the rate of sending on a stream from now on.
    SendRate(Rate),
    /// Reads a number of bytes from a stream.
    Receive(Bytes),
    /// Limits the rate of reading from a stream from now on.
    ReceiveRate(Rate),
    /// Reads a stream to its end.
    ReceiveAll(Stream),
    /// Ends the sending half of a stream.
    Finish(Stream),
    /// Gives up the sending half of a stream, with an application error code.
    Reset(Reset),
    /// Sends datagrams (RFC 9221), and waits for their echoes if the peer sends any.
    Datagrams(Datagrams),
    /// Makes an HTTP request, and reads the response to its end.
    Fetch(Fetch),
    /// Does nothing for a while.
    Sleep(
        #[schemars(with = "schema::Time")]
        #[serde(with = "text::time")]
        Duration,
    ),
    /// Waits until the checkpoint of that number of this connection is unparked.
    Park(#[schemars(with = "schema::Count")] u64),
    /// Releases every script that waits, or will wait, at the checkpoint of that number.
    Unpark(#[schemars(with = "schema::Count")] u64),
    /// Runs these scripts at the same time, and continues when all are done.
    Scope(Vec<Vec<Op>>),
    /// Repeats operations.
    Iterate(Iterate<Op>),
    /// Times operations as one request, from their (intended) start to their end.
    Request(Request),
}

/// A stream to open, and the peer's script for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Open {
    /// Its number in this script.
    #[schemars(with = "schema::Count")]
    pub(crate) stream: u64,
    /// Script of the peer; there the stream is stream 0.
    pub(crate) peer: Vec<Op>,
}

/// Bytes to send or to receive. In a file a number alone means stream 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Bytes {
    /// Number of the stream.
    pub(crate) stream: u64,
    /// Number of bytes.
    pub(crate) bytes: u64,
}

/// A limit of bytes in a period of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rate {
    /// Number of the stream.
    #[schemars(with = "schema::Count")]
    #[serde(default)]
    pub(crate) stream: u64,
    /// Number of bytes.
    #[schemars(with = "schema::Size")]
    #[serde(with = "text::size")]
    pub(crate) bytes: u64,
    /// Time in which that many bytes may pass.
    #[schemars(with = "schema::Time")]
    #[serde(with = "text::time")]
    pub(crate) period: Duration,
}

/// A stream, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Stream {
    /// Number of the stream.
    #[schemars(with = "schema::Count")]
    pub(crate) stream: u64,
}

/// A stream to give up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Reset {
    /// Number of the stream.
    #[schemars(with = "schema::Count")]
    pub(crate) stream: u64,
    /// Application error code.
    #[schemars(with = "schema::Count")]
    pub(crate) code: u64,
}

/// Datagrams (RFC 9221).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Datagrams {
    /// Number of datagrams.
    #[schemars(with = "schema::AtLeastOne")]
    pub(crate) count: u64,
    /// Bytes of each.
    #[schemars(with = "schema::Size")]
    #[serde(with = "text::size")]
    pub(crate) bytes: u64,
    /// Datagrams a second; `None`: as fast as the stack takes them.
    #[schemars(with = "schema::PerSecond")]
    #[serde(
        default,
        with = "text::optional_rate",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) rate: Option<f64>,
    /// True if the peer sends each back. Each is timed then; those that never come back are counted
    /// as lost.
    #[serde(default)]
    pub(crate) echo: bool,
}

/// An HTTP request, and its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Fetch {
    /// Bytes of the request's body: 0 makes it a GET, more a POST.
    #[schemars(with = "schema::Size")]
    #[serde(with = "text::size")]
    pub(crate) send: u64,
    /// Bytes of the response's body.
    #[schemars(with = "schema::Size")]
    #[serde(with = "text::size")]
    pub(crate) receive: u64,
}

/// Operations that are repeated: a number of times, or for a time, whichever ends first; with
/// neither, until the measurement ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Iterate<T> {
    /// Number of turns.
    #[schemars(with = "schema::OptionalCount")]
    #[serde(
        default,
        with = "text::optional_count",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) times: Option<u64>,
    /// Time after which no further turn begins.
    #[schemars(with = "schema::OptionalTime")]
    #[serde(
        default,
        with = "text::optional_time",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) time: Option<Duration>,
    /// Open loop: number of turns that begin every second. One that is late counts from its intended
    /// start.
    #[schemars(with = "schema::PerSecond")]
    #[serde(
        default,
        with = "text::optional_rate",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) rate: Option<f64>,
    /// Number of turns that may be in progress at once. With more than one, the streams that a turn
    /// opens are its own.
    #[schemars(with = "schema::AtLeastOne")]
    #[serde(default = "super::one_u32")]
    pub(crate) concurrency: u32,
    /// Operations of one turn.
    #[schemars(length(min = 1))]
    pub(crate) ops: Vec<T>,
}

/// A request to time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    /// Name in results, where a scenario has several kinds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) label: String,
    /// Operations of the request.
    pub(crate) ops: Vec<Op>,
}
