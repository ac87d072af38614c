//! What the processes of a run tell each other: one JSON value a line, over pipes.
//!
//! ```text
//!  coordinate          server                client
//!      │── Spec ────────►│                     │
//!      │◄── Listening ───│                     │
//!      │── Spec ──────────────────────────────►│  warm-up
//!      │◄── Ready ─────────────────────────────│
//!      │── Mark ────────►│                     │  once the warm-up has drained
//!      │◄── Marked ──────│                     │
//!      │── Go ────────────────────────────────►│  measured phase
//!      │◄── Progress*, Report ─────────────────│
//!      │── Report ──────►│                     │  once the last connection has drained
//!      │◄── Report ──────│                     │
//! ```
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
    /// Start to count, once that many connections have ended.
    Mark { after: u64 },
    /// Say what was counted, once that many connections have ended since.
    Report { after: u64 },
}

#[derive(Serialize, Deserialize)]
pub(crate) enum FromServer {
    Listening(SocketAddr),
    Marked,
    Report(ServerReport),
}

/// What the server saw of the measured phase.
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
    pub(crate) warm_up: u64,
    pub(crate) connections: u64,
    pub(crate) concurrency: u32,
    pub(crate) settings: Settings,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum ToClient {
    Go,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum FromClient {
    /// The warm-up is over; it made that many connections.
    Ready {
        warmed_up: u64,
    },
    /// That many connections are done, or bytes in a bulk transfer.
    Progress(u64),
    Report(Box<ClientReport>),
}

/// What the client saw of the measured phase.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ClientReport {
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) first_error: Option<String>,
    pub(crate) hello_retries: u64,
    /// The cipher suite of the last connection.
    pub(crate) suite: String,
    /// Wall time of the whole phase.
    pub(crate) elapsed_us: f64,
    pub(crate) cpu_us: f64,
    pub(crate) traffic: Traffic,
    pub(crate) losses: Losses,
    /// From the call of `connect` until the handshake was complete.
    pub(crate) handshake: Latency,
    /// From the call of `connect` until the response was read.
    pub(crate) exchange: Latency,
}
