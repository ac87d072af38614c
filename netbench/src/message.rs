//! What the processes of a run tell each other: one JSON value a line, over pipes.
//!
//! ```text
//!  coordinate          server                client
//!      │── Spec ────────►│                     │
//!      │◄── Listening ───│                     │
//!      │── Spec ──────────────────────────────►│
//!      │                                       │  and in each round:
//!      │── WarmUp ────────────────────────────►│
//!      │◄── Ready ─────────────────────────────│
//!      │── Measure ─────►│                     │  once the warm-up has drained
//!      │◄── Measuring ───│                     │
//!      │── Measure ───────────────────────────►│
//!      │◄── Progress*, Report ─────────────────│
//!      │── Pause ───────►│                     │  once the last connection has drained
//!      │◄── Report ──────│                     │
//! ```
//! Reports are of all rounds so far, warm-ups and pauses excluded.
//! A child answers `Err` with one line instead where it cannot go on. The end of its standard
//! input ends it.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::groups::Tls;
use crate::measure::{Latency, Losses, Traffic};

/// What a connection does after its handshake.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Work {
    /// One stream: that many bytes there, that many back.
    RequestResponse { request: u64, response: u64 },
    /// One stream: that many bytes from server to client.
    Bulk { bytes: u64 },
}

/// What both ends are told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// PEM text that the server shows and the client trusts.
    pub(crate) chain: String,
    pub(crate) work: Work,
    pub(crate) datagram_size: Option<u16>,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ServerSpec {
    pub(crate) core: Option<usize>,
    pub(crate) listen: SocketAddr,
    pub(crate) tls: Tls,
    pub(crate) key: String,
    pub(crate) settings: Settings,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum ToServer {
    /// Start to count, once that many connections have ended since the last pause.
    Measure { after: u64 },
    /// Stop to count and report, once that many connections have ended since the start.
    Pause { after: u64 },
}

#[derive(Serialize, Deserialize)]
pub(crate) enum FromServer {
    Listening(SocketAddr),
    Measuring,
    Report(ServerReport),
}

/// What the server saw of the measured rounds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ServerReport {
    /// Connections that ended cleanly.
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) first_error: Option<String>,
    pub(crate) cpu_us: f64,
    pub(crate) traffic: Traffic,
    pub(crate) losses: Losses,
    /// Memory after the warm-up, after the first 1,000 measured connections, and at the end.
    pub(crate) rss_at_start_kib: u64,
    pub(crate) rss_after_1000_kib: Option<u64>,
    pub(crate) rss_at_end_kib: u64,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ClientSpec {
    pub(crate) core: Option<usize>,
    pub(crate) server: SocketAddr,
    pub(crate) tls: Tls,
    /// Code point of the group that every connection must have negotiated.
    pub(crate) group: u16,
    pub(crate) concurrency: u32,
    pub(crate) settings: Settings,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum ToClient {
    /// Make so many connections and do not count them.
    WarmUp { connections: u64 },
    /// Make so many connections, count them, and report.
    Measure { connections: u64 },
}

#[derive(Serialize, Deserialize)]
pub(crate) enum FromClient {
    /// The warm-up is over.
    Ready,
    /// That many connections of this round are done, or bytes of a bulk transfer.
    Progress(u64),
    Report(Box<ClientReport>),
}

/// What the client saw of the measured rounds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ClientReport {
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) first_error: Option<String>,
    pub(crate) hello_retries: u64,
    /// The cipher suite of the last connection.
    pub(crate) suite: String,
    /// Wall time of the measured rounds.
    pub(crate) elapsed_us: f64,
    pub(crate) cpu_us: f64,
    pub(crate) traffic: Traffic,
    pub(crate) losses: Losses,
    /// From the call of `connect` until the handshake was complete.
    pub(crate) handshake: Latency,
    /// From the call of `connect` until the response was read.
    pub(crate) exchange: Latency,
}
