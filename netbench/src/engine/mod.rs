//! Runs scripts: the client and the server processes of one repetition of one cell.
//!
//! ```text
//!  coordinate          server                client
//!      │── ServerSpec ──►│                     │
//!      │◄── Listening ───│                     │
//!      │── ClientSpec ────────────────────────►│
//!      │── WarmUp ────────────────────────────►│
//!      │◄── Ready ─────────────────────────────│
//!      │── Measure ─────►│                     │  once the warm-up has drained
//!      │◄── Measuring ───│                     │
//!      │── Measure ───────────────────────────►│
//!      │◄── Progress*, Report ─────────────────│
//!      │── Stop ────────►│                     │  once the last connection has drained
//!      │◄── Report ──────│                     │
//! ```
//! One JSON value a line, over pipes. A child that cannot continue answers `Err` with one line. The
//! end of its standard input ends it.

pub(crate) mod child;
mod client;
mod plan;
mod record;
mod script;
pub(crate) mod server;
#[cfg(test)]
mod tests;
mod time;

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::drivers::Setup;
use crate::report::results::{Process, Repetition, Sample};
use crate::scenario::Scenario;

/// Settings of a server process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ServerSpec {
    pub(crate) core: Option<usize>,
    pub(crate) listen: SocketAddr,
    pub(crate) setup: Setup,
    pub(crate) scenario: Scenario,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ToServer {
    /// Starts to count once this number of connections has ended.
    Measure { after: u64 },
    /// Stops to count and reports, once this number of connections has ended since the start.
    Stop { after: u64 },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum FromServer {
    Listening(SocketAddr),
    Measuring,
    Report(Box<ServerReport>),
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ServerReport {
    pub(crate) process: Process,
    /// First failure of a connection, as text.
    pub(crate) first_error: Option<String>,
    /// Reason why the report is incomplete.
    #[serde(default)]
    pub(crate) lacks: Option<String>,
}

/// Settings of a client process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ClientSpec {
    pub(crate) core: Option<usize>,
    /// Addresses in the order of the scenario's server numbers.
    pub(crate) servers: Vec<SocketAddr>,
    pub(crate) setup: Setup,
    pub(crate) scenario: Scenario,
    /// Number of the scenario's client that this process plays.
    pub(crate) client: usize,
    /// Length of the intervals of samples, in milliseconds.
    pub(crate) sample_ms: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ToClient {
    /// Order to run the warm-up.
    WarmUp,
    /// Order to run the scripts, count, and report.
    Measure,
    /// Order to begin nothing new, drain, and report.
    Stop,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum FromClient {
    /// The warm-up is over, after this number of connections.
    Ready {
        connections: u64,
    },
    Progress(Progress),
    /// The measurement is over. The parent fills in `metrics`, `server` and `started_ms`.
    Report(Box<Repetition>),
}

/// Progress of a measurement, reported about every 100 ms.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Number of connections that have ended, well or not; their planned number is `None` if
    /// unknown.
    pub(crate) connections: u64,
    pub(crate) of: Option<u64>,
    pub(crate) requests: u64,
    pub(crate) failures: u64,
    /// Finished part of the measurement, up to 1, if known.
    pub(crate) share: Option<f64>,
    /// Events since the last report.
    pub(crate) sample: Sample,
    /// Median over the whole measurement so far.
    pub(crate) handshake_p50_us: f64,
    pub(crate) handshake_p99_us: f64,
    pub(crate) request_p50_us: f64,
    pub(crate) request_p99_us: f64,
}
