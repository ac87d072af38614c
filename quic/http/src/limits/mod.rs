//! Bounds on what a client may cost.

#[cfg(test)]
mod table;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Limits on what a client may cost a server. Start from [`Limits::default`].
///
/// [`TransportConfig::max_bidi_streams`](hybriq::TransportConfig::max_bidi_streams) limits the concurrent requests of a
/// QUIC connection. A QUIC client that sends no packets is dropped after
/// [`TransportConfig::idle_timeout`](hybriq::TransportConfig::idle_timeout); over TCP, keep-alive detects that a
/// client is gone.
///
/// Times longer than a year count as a year.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use hybriq_http::Limits;
///
/// let mut limits = Limits::default();
/// limits.header_list = 16 << 10;
/// limits.header_time = Duration::from_secs(5);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Largest size of a request's fields in bytes, where each field counts 32 bytes extra (RFC 9114 §4.2.2). Larger
    /// requests get 431. Larger values than [`MAX_FIELD_SECTION`](hybriq_h3::MAX_FIELD_SECTION), 792 KiB, count as
    /// that: a header map holds at most 24,576 fields. Over HTTP/1.1, a request has at most 100 fields. Trailers
    /// above the limit are an error of the body over HTTP/3 (H3_EXCESSIVE_LOAD); over HTTP/2, the fields beyond the
    /// limit are missing; over HTTP/1.1, trailers may have 16 KiB regardless of this limit. Default: 64 KiB.
    pub header_list: u64,
    /// Capacity of the dynamic tables of QPACK (RFC 9204 §3.2.1), in bytes: of the one that a client may fill for its
    /// requests, and of the one for the responses to it, if the client allows that much. A client that goes beyond it
    /// is disconnected (QPACK_ENCODER_STREAM_ERROR). With 0 there are no tables, which saves some memory where
    /// connections are many and their requests few. Larger values than 64 KiB count as that. Over HTTP/2, a table has 4
    /// KiB, regardless of this limit. Default: 4 KiB.
    pub field_table: u64,
    /// Longest time from the start of a request to its last field, and from the end of the handshake to the first
    /// request. Over TCP, also the longest time for the TLS handshake. Over HTTP/2 it applies to trailers as well,
    /// may take a quarter longer, and ends the connection, because nothing else may come between the frames of a
    /// field block (RFC 9113 §4.3). Default: 10 s.
    pub header_time: Duration,
    /// Longest time in which a client sends no data of a body that the service is reading, or accepts no data of a
    /// response, because it grants no flow control credit or does not read. Then the stream is reset; over HTTP/1.1,
    /// or if data is stuck below the stream, the connection ends. A service that has nothing to send may take any
    /// time. Data in either direction counts for both, so that a stream of gRPC may be silent in one of them.
    /// [`StallTime`](crate::StallTime) sets another time for some routes. A stream of another protocol may wait for its client, but once the service has shut it down, the client
    /// must accept the rest as it would a response. Default: 60 s.
    pub stall_time: Duration,
    /// Largest number of requests on a connection. With the last one the client is told to reconnect (GOAWAY,
    /// `connection: close`); later ones are refused unprocessed. Default: 1,000,000.
    pub requests: u64,
    /// Number of requests that a client may cancel in ten seconds before their response begins, in addition to one
    /// for each answered request. They make the server work for nothing, as in CVE-2023-44487 and CVE-2025-8671.
    /// Requests that fail before they reach the service, because they are malformed or incomplete when their time is
    /// over, count too. Over HTTP/2, so do requests with too many fields, and requests beyond the concurrency limit
    /// once the client knows that limit. Beyond this number, requests are refused (H3_REQUEST_REJECTED,
    /// REFUSED_STREAM) until the count has fallen. A client with as many refused requests is told to reconnect
    /// (GOAWAY): responses in progress are completed, and then the connection ends, over QUIC with H3_EXCESSIVE_LOAD.
    /// Default: 200.
    pub cancelled: u32,
    /// Longest time that a connection may have no request in progress. WebTransport sessions and streams of other
    /// protocols count as requests; packets and PINGs do not. Then the client is told to reconnect. The server checks
    /// at least four times in this period, so it may notice up to a quarter late. Between HTTP/1.1 requests,
    /// [`header_time`](Self::header_time) ends a connection earlier. Default: 60 s.
    pub idle_time: Duration,
    /// Longest time that requests in progress may take after one of these limits told the connection to end. Default:
    /// 10 minutes.
    pub drain_time: Duration,
    /// Largest number of concurrent TCP connections. For QUIC, set
    /// [`EndpointBuilder::max_connections`](hybriq::EndpointBuilder::max_connections). Default: 65,536.
    pub tcp_connections: usize,
    /// Bytes that all clients together may take, over TCP and QUIC. Default: no limit.
    ///
    /// Connections and requests count while they last: estimates for their state and TLS, and the size of a request's
    /// fields until the response has ended. Four times a second the rest is counted: what the transport counts
    /// itself, response data on its way to the client, incomplete heads, unread bodies, trailers and tunnels of
    /// HTTP/2, and queues of WebTransport. HTTP/2 data for a body that the service has dropped counts while another
    /// body of its connection is unread. The start of an HTTP/1.1 head that arrives during a request does not count,
    /// nor does what the service holds. [`Handle::memory`](crate::Handle::memory) returns the count.
    ///
    /// Beyond the limit, connections without requests end, the oldest first, until an eighth of the budget is free.
    /// Each ends within a second, whether or not the client heeds GOAWAY, unless the client has yet to read a
    /// response. New connections are refused, over QUIC with a Retry first, and requests get 503 with `retry-after`.
    /// QUIC handshakes of clients that have not proved their address take at most half of what is free; beyond that
    /// they get a Retry. They end no other connection.
    pub memory: u64,
    /// Methods that are allowed in requests that may be replays. Default: [`EarlyMethods::Safe`].
    pub early_methods: EarlyMethods,
}

/// Methods that are allowed in requests in 0-RTT packets (RFC 8470).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EarlyMethods {
    /// GET, HEAD, OPTIONS and TRACE (RFC 9110 §9.2.1). Other methods get 425.
    #[default]
    Safe,
    /// All methods: the service decides by [`Peer::early`](crate::Peer::early).
    All,
}

/// Longest time that is used: clocks cannot count much further.
const MOST_TIME: Duration = Duration::from_secs(365 * 24 * 3600);

impl Limits {
    /// Returns the limits with times of at most [`MOST_TIME`].
    pub(crate) fn with_times_used(mut self) -> Self {
        for time in [
            &mut self.header_time,
            &mut self.stall_time,
            &mut self.idle_time,
            &mut self.drain_time,
        ] {
            *time = (*time).min(MOST_TIME);
        }
        self
    }

    /// Returns the effective capacity of a dynamic table.
    pub(crate) fn most_table(&self) -> u64 {
        self.field_table.min(64 << 10)
    }

    /// Returns the effective limit on the size of a request's fields.
    pub(crate) fn most_fields(&self) -> u64 {
        self.header_list.min(hybriq_h3::MAX_FIELD_SECTION)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_list: 64 << 10,
            field_table: 4 << 10,
            header_time: Duration::from_secs(10),
            stall_time: Duration::from_secs(60),
            requests: 1_000_000,
            cancelled: 200,
            idle_time: Duration::from_secs(60),
            drain_time: Duration::from_secs(600),
            tcp_connections: 1 << 16,
            memory: u64::MAX,
            early_methods: EarlyMethods::Safe,
        }
    }
}

/// No limit.
const FOREVER: u64 = u64::MAX;

/// Time in which an exchange must make progress in one of its directions, and the progress that it has made. A stream
/// of gRPC may be silent in one direction as long as messages flow in the other.
///
/// Requests with a body have one among their extensions; for others, it would cost more than it is worth.
#[derive(Debug)]
pub(crate) struct Patience {
    /// In nanoseconds.
    time: AtomicU64,
    /// Parts of the request that arrived, and parts of the response that were accepted.
    progress: AtomicU64,
}

impl Patience {
    pub(crate) fn new(time: Duration) -> Arc<Self> {
        let patience = Self {
            time: AtomicU64::new(FOREVER),
            progress: AtomicU64::new(0),
        };
        patience.set(Some(time));
        Arc::new(patience)
    }

    /// Sets the time, or that there is no limit.
    pub(crate) fn set(&self, time: Option<Duration>) {
        let nanos = |time: Duration| u64::try_from(time.min(MOST_TIME).as_nanos()).ok();
        let time = time.and_then(nanos).unwrap_or(FOREVER);
        self.time.store(time, Ordering::Relaxed);
    }

    /// Returns the time, unless there is no limit.
    pub(crate) fn time(&self) -> Option<Duration> {
        let time = self.time.load(Ordering::Relaxed);
        (time != FOREVER).then(|| Duration::from_nanos(time))
    }

    pub(crate) fn on_progress(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }
}
