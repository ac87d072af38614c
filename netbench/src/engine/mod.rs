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
//! One JSON value a line, over pipes. A child answers `Err` with one line instead where it cannot
//! go on. The end of its standard input ends it.

mod answering;
mod arrivals;
mod attempt;
mod checkpoints;
pub(crate) mod child;
mod client;
mod clock;
mod connecting;
mod datagrams;
mod failing;
mod in_flight;
mod making;
mod mismatch;
mod names;
mod observer;
mod ops;
pub(crate) mod orders;
pub(crate) mod pattern;
mod phase;
mod plan;
mod pooling;
mod process;
mod progress;
mod recorder;
mod script;
pub(crate) mod server;
mod session;
mod streams;
#[cfg(test)]
mod tests;
mod tickets;
mod turns;

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::drivers::Setup;
use crate::results::{Process, Repetition, Sample};
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
    /// Start to count, once that many connections have ended.
    Measure { after: u64 },
    /// Stop to count and report, once that many connections have ended since the start.
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
    /// The first failure of a connection, in words.
    pub(crate) first_error: Option<String>,
    /// Why it is of less than it should be.
    #[serde(default)]
    pub(crate) lacks: Option<String>,
}

/// Settings of a client process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ClientSpec {
    pub(crate) core: Option<usize>,
    /// In the order of the scenario's server numbers.
    pub(crate) servers: Vec<SocketAddr>,
    pub(crate) setup: Setup,
    pub(crate) scenario: Scenario,
    /// Which of the scenario's clients this is.
    pub(crate) client: usize,
    /// Length of the intervals of samples, in milliseconds.
    pub(crate) sample_ms: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ToClient {
    /// Do the warm-up.
    WarmUp,
    /// Do the scripts, count, and report.
    Measure,
    /// Begin nothing new, drain, and report.
    Stop,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum FromClient {
    /// The warm-up is over, and made so many connections.
    Ready {
        connections: u64,
    },
    Progress(Progress),
    /// The measurement is over. `metrics`, `server` and `started_ms` are left to the parent.
    Report(Box<Repetition>),
}

/// Progress of a measurement, told every 100 ms or so.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Connections that ended, well or not, and how many there will be; `None`: nobody knows.
    pub(crate) connections: u64,
    pub(crate) of: Option<u64>,
    pub(crate) requests: u64,
    pub(crate) failures: u64,
    /// Part of the measurement that is over, of 1, as far as that is known.
    pub(crate) share: Option<f64>,
    /// Since the last one.
    pub(crate) sample: Sample,
    /// Of the whole measurement so far.
    pub(crate) handshake_p50_us: f64,
    pub(crate) handshake_p99_us: f64,
    pub(crate) request_p50_us: f64,
    pub(crate) request_p99_us: f64,
}
