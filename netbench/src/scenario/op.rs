//! What either end does on a connection: plain data, as it stands in a file.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::text;

/// What either end does on a connection.
///
/// A stream has a number of its own script's choosing, 0 where none is given; opening one under
/// the number of another replaces it. In the script of a peer's stream, 0 is that stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Op {
    /// Opens a bidirectional stream.
    OpenBidi(Open),
    /// Opens a unidirectional stream.
    OpenUni(Open),
    /// Sends so many bytes on a stream.
    Send(Bytes),
    /// Has what is sent on a stream from now on keep to a rate.
    SendRate(Rate),
    /// Reads so many bytes from a stream.
    Receive(Bytes),
    /// Reads a stream no faster than that from now on.
    ReceiveRate(Rate),
    /// Reads a stream to its end.
    ReceiveAll(Stream),
    /// Ends the sending half of a stream.
    Finish(Stream),
    /// Gives up the sending half of a stream, with an application error code.
    Reset(Reset),
    /// Sends datagrams, and where the peer echoes them, waits for them.
    Datagrams(Datagrams),
    /// Does nothing for a while.
    Sleep(#[serde(with = "text::time")] Duration),
    /// Waits until the checkpoint of that number of this connection is unparked.
    Park(u64),
    /// Lets those go on that wait, or will wait, at the checkpoint.
    Unpark(u64),
    /// Does these at the same time, and goes on when all are done.
    Scope(Vec<Vec<Op>>),
    /// Does it again and again.
    Iterate(Iterate<Op>),
    /// Times these as one request, from their (intended) start to their end.
    Request(Request),
}

/// A stream to be opened, and what the peer does on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Open {
    /// Its number in this script.
    pub(crate) stream: u64,
    /// The peer's script.
    pub(crate) peer: Vec<Op>,
}

/// Bytes to send or to receive. In a file also a number alone, for stream 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Bytes {
    /// The stream's number.
    pub(crate) stream: u64,
    /// How many.
    pub(crate) bytes: u64,
}

/// So many bytes in so much time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rate {
    /// The stream's number.
    #[serde(default)]
    pub(crate) stream: u64,
    /// How many.
    #[serde(with = "text::size")]
    pub(crate) bytes: u64,
    /// In that time.
    #[serde(with = "text::time")]
    pub(crate) period: Duration,
}

/// A stream, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Stream {
    /// The stream's number.
    pub(crate) stream: u64,
}

/// A stream to give up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Reset {
    /// The stream's number.
    pub(crate) stream: u64,
    /// The application error code.
    pub(crate) code: u64,
}

/// Datagrams (RFC 9221).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Datagrams {
    /// How many.
    pub(crate) count: u64,
    /// Bytes of each.
    #[serde(with = "text::size")]
    pub(crate) bytes: u64,
    /// How many a second; `None`: as fast as they are taken.
    #[serde(
        default,
        with = "text::optional_rate",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) rate: Option<f64>,
    /// Whether the peer sends each back. They are timed then; those that never come back are
    /// counted as lost.
    #[serde(default)]
    pub(crate) echo: bool,
}

/// Does something again and again: so many times, or for so long, whichever ends first; with
/// neither, until the measurement ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Iterate<T> {
    /// How often.
    #[serde(
        default,
        with = "text::optional_count",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) times: Option<u64>,
    /// How long.
    #[serde(
        default,
        with = "text::optional_time",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) time: Option<Duration>,
    /// Open loop: so many begin every second. One that is late counts from its intended start.
    #[serde(
        default,
        with = "text::optional_rate",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) rate: Option<f64>,
    /// How many turns may be under way at once. With more than one, the streams that a turn opens
    /// are its own.
    #[serde(default = "super::model::one_u32")]
    pub(crate) concurrency: u32,
    /// What.
    pub(crate) ops: Vec<T>,
}

/// A request to time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    /// Names it in results, where a scenario has several kinds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) label: String,
    /// What belongs to it.
    pub(crate) ops: Vec<Op>,
}
