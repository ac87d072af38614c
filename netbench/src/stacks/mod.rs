//! Foreign stacks, each set up in one place: for the drivers that measure them, and for the
//! interoperability tests of hybriq.

#[cfg(feature = "noq")]
pub mod noq;
#[cfg(feature = "quiche")]
pub mod quiche;
#[cfg(feature = "quinn")]
pub mod quinn;
pub mod rustls;
#[cfg(feature = "s2n-quic")]
pub mod s2n_quic;
mod traffic;
pub(crate) mod wakers;

use std::time::Duration;

use hybriq::tls::Suite;
use hybriq::{Group, error::By};

pub use traffic::Traffic;

/// Failure of a setup: one line that says what is wrong.
pub type Failure = Box<dyn std::error::Error>;

/// TLS settings of one end.
#[derive(Clone, Debug)]
pub struct Tls<'a> {
    /// The only application protocol.
    pub alpn: &'a str,
    /// Key-exchange groups, the preferred one first. A client sends the share of the first.
    pub groups: Vec<Group>,
    /// The only cipher suite; `None` for all that the stack has.
    pub suite: Option<Suite>,
    /// Certificate that this end shows, if any.
    pub identity: Option<Identity<'a>>,
    /// Certificates (PEM) that this end trusts. A server that has some requires a certificate of
    /// its clients.
    pub roots: Option<&'a str>,
    /// Use of session tickets.
    pub tickets: Tickets,
}

/// Certificate of an end.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// Certificates (PEM), the leaf first.
    pub chain: &'a str,
    /// Private key of the leaf (PEM).
    pub key: &'a str,
}

/// Use of session tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tickets {
    /// A server issues none.
    Off,
    /// A server issues tickets, and a client resumes with them.
    Resume,
    /// A server accepts 0-RTT data too, and a client sends it.
    EarlyData,
}

/// Transport settings of one end; `None` keeps the stack's default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transport<'a> {
    /// Size of UDP payloads after the handshake in bytes, without path MTU discovery.
    pub datagram_size: Option<u16>,
    /// Name of the congestion controller.
    pub congestion: Option<&'a str>,
    /// Flow-control windows and buffers.
    pub windows: Option<Windows>,
    /// Time without a packet after which a connection ends.
    pub idle_timeout: Option<Duration>,
    /// Bytes requested from the system for each buffer of a socket that the stack makes.
    pub socket_buffer: Option<u32>,
    /// Number of streams of each kind that the peer may have open at once.
    pub max_streams: Option<u64>,
}

/// Flow-control windows and buffers in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Receive window of a stream.
    pub stream: u32,
    /// Receive window of a bidirectional stream that this end opens, if a stack has one of its own.
    pub local_stream: u32,
    /// Receive window of a connection, and bytes that a stack buffers until they are acknowledged.
    pub connection: u32,
}

/// CONNECTION_CLOSE of a transport (RFC 9000 §19.19), sent by either end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Close {
    /// End that closed.
    pub by: By,
    /// Error code.
    pub code: u64,
    /// Reason that the closing end gave.
    pub reason: String,
}
