//! Bounds on what a client may cost.

use std::time::Duration;

/// Bounds on what a client may cost. Start from [`Limits::default`].
///
/// The number of requests at once is that of bidirectional streams:
/// [`TransportConfig::max_bidi_streams`](hybriq::TransportConfig::max_bidi_streams). The time that a
/// connection may be idle is
/// [`TransportConfig::idle_timeout`](hybriq::TransportConfig::idle_timeout).
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
    /// Largest size of a request's fields, in bytes, each counted with 32 bytes more (RFC 9114
    /// §4.2.2). Larger requests get 431. At most [`MAX_FIELD_SECTION`](hybriq_h3::MAX_FIELD_SECTION), 792
    /// KiB, is used: a map of fields takes no more than 24,576. Over HTTP/1.1, a request has at most 100
    /// fields. Default: 64 KiB.
    pub header_list: u64,
    /// Longest time from the start of a request to its last field; for HTTP/1.1 and HTTP/2 also from
    /// the start of the TLS handshake to its end, and from there to the first request. Default: 10 s.
    pub header_time: Duration,
    /// Longest time in which a client sends nothing of a body that the service reads, or takes nothing
    /// of a response; over TCP, nothing of a connection's data. Default: 60 s.
    pub stall_time: Duration,
    /// Largest number of requests on a connection; after that, GOAWAY tells the client to connect
    /// again. Default: 1,000,000.
    pub requests: u64,
    /// Number of requests that a client may cancel in ten seconds, before they were answered (as in
    /// CVE-2023-44487). A client that cancels more is disconnected with H3_EXCESSIVE_LOAD. Default: 200.
    pub cancelled: u32,
    /// Longest time that a connection over TCP may be idle: no request is under way, and no byte comes or
    /// goes. It is looked at once in this time, so it may take twice as long. Between requests of
    /// HTTP/1.1, [`header_time`](Self::header_time) ends a connection earlier. Default: 60 s.
    pub tcp_idle_time: Duration,
    /// Largest number of connections over TCP at once. Those of QUIC have
    /// [`EndpointBuilder::max_connections`](hybriq::EndpointBuilder::max_connections). Default: 65,536.
    pub tcp_connections: usize,
    /// Methods of requests that are answered although they may be replays. Default: safe ones.
    pub early_methods: EarlyMethods,
}

/// Methods of requests that are answered although they came in 0-RTT packets (RFC 8470).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EarlyMethods {
    /// GET, HEAD, OPTIONS and TRACE (RFC 9110 §9.2.1). Others get 425.
    #[default]
    Safe,
    /// All: the service decides by [`Peer::early`](crate::Peer::early).
    All,
}

impl Limits {
    /// Returns the largest size of a request's fields that is used.
    pub(crate) fn most_fields(&self) -> u64 {
        self.header_list.min(hybriq_h3::MAX_FIELD_SECTION)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_list: 64 << 10,
            header_time: Duration::from_secs(10),
            stall_time: Duration::from_secs(60),
            requests: 1_000_000,
            cancelled: 200,
            tcp_idle_time: Duration::from_secs(60),
            tcp_connections: 1 << 16,
            early_methods: EarlyMethods::Safe,
        }
    }
}
