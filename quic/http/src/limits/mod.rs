//! Bounds on what a client may cost.

#[cfg(test)]
mod table;

use std::time::Duration;

/// Bounds on what a client may cost. Start from [`Limits::default`].
///
/// The number of requests at once is that of bidirectional streams:
/// [`TransportConfig::max_bidi_streams`](hybriq::TransportConfig::max_bidi_streams). A client of QUIC that
/// sends no packets at all is forgotten after
/// [`TransportConfig::idle_timeout`](hybriq::TransportConfig::idle_timeout); over TCP, keep-alive finds it.
///
/// Of times beyond a year, a year is used.
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
    /// fields. Larger trailers are an error of the body, with H3_EXCESSIVE_LOAD, over HTTP/3. Those over HTTP/1.1 may
    /// have 16 KiB whatever the limit, and over HTTP/2 the fields beyond the limit are missing. Default: 64 KiB.
    pub header_list: u64,
    /// Longest time from the start of a request to its last field, and from the end of the handshake to the
    /// first request; for HTTP/1.1 and HTTP/2 also from the start of the TLS handshake to its end. Over HTTP/2 it
    /// also holds for trailers, may take a quarter longer, and ends the connection: nothing else may come between
    /// the frames of a field block (RFC 9113 §4.3). Default: 10 s.
    pub header_time: Duration,
    /// Longest time in which a client sends nothing of a body that the service reads, or takes nothing of a
    /// response that has data for it: for want of credit of flow control, or because it does not read. The
    /// stream is reset then; over HTTP/1.1, or where data is stuck below the stream, the connection ends.
    /// A service that has nothing to send may take as long as it likes. The stream of another protocol may
    /// wait for its client, but what is left of it when the service has shut it down is bound to be taken like
    /// a response. Default: 60 s.
    pub stall_time: Duration,
    /// Largest number of requests on a connection. With the last one the client is told to connect again
    /// (GOAWAY, `connection: close`), and those that follow are refused unseen. Default: 1,000,000.
    pub requests: u64,
    /// Number of requests that a client may cancel in ten seconds before their response began, beyond one for
    /// each that was answered: work for nothing, as in CVE-2023-44487 and CVE-2025-8671. Requests that fail before
    /// the service gets them, because they are malformed or not whole in time, count too, over HTTP/2 also those with
    /// too many fields, and those beyond the number at once once the client knows it. Beyond it, requests
    /// are refused (H3_REQUEST_REJECTED, REFUSED_STREAM) until the time has passed. A client that has as many
    /// refused is told to connect again (GOAWAY): responses under way are sent to their end, and the connection
    /// closes with H3_EXCESSIVE_LOAD, or ends over TCP. Default: 200.
    pub cancelled: u32,
    /// Longest time for which a connection may have no request under way; sessions of WebTransport and other
    /// protocols on streams are requests, packets and PINGs are not. Then the client is told to connect
    /// again. It is looked at four times in this time or more often, so it may take a quarter longer. Between
    /// requests of HTTP/1.1, [`header_time`](Self::header_time) ends a connection earlier. Default: 60 s.
    pub idle_time: Duration,
    /// Longest time that requests under way may take after a connection was told to end, for one of these limits.
    /// Default: 10 minutes.
    pub drain_time: Duration,
    /// Largest number of connections over TCP at once. Those of QUIC have
    /// [`EndpointBuilder::max_connections`](hybriq::EndpointBuilder::max_connections). Default: 65,536.
    pub tcp_connections: usize,
    /// Bytes that all clients together may take, over TCP and QUIC. Connections and requests count as they come and
    /// go, by estimates for their state and TLS, and by the size of the fields until the response has ended. Four
    /// times a second the rest is counted: the transport's own count, the data of responses that is on its way,
    /// incomplete heads, and unread bodies, trailers and tunnels of HTTP/2 and queues of WebTransport. Data of HTTP/2
    /// for a body that the service has dropped counts while another body of its connection is unread; the start of a
    /// head of HTTP/1.1 that arrived during a request does not count. What the service holds does not count either.
    /// [`Handle::memory`](crate::Handle::memory) returns the count. Beyond it connections without requests end, the
    /// oldest first, until an eighth of it is free: within a second, whether or not the client heeds GOAWAY, unless it
    /// has yet to read a response. New connections are refused, those of QUIC by Retry first; and requests get 503
    /// with `retry-after`. Handshakes over QUIC whose client did not prove its address take at most half of what is
    /// free, get a Retry beyond that, and end no other connection. Default: no limit.
    pub memory: u64,
    /// Methods of requests that are answered although they may be replays. Default: safe ones.
    pub early_methods: EarlyMethods,
}

/// Methods of requests that are answered although they came in 0-RTT packets (RFC 8470).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EarlyMethods {
    /// GET, HEAD, OPTIONS and TRACE (RFC 9110 §9.2.1). Others get 425.
    #[default]
    Safe,
    /// All: the service decides by [`Peer::early`](crate::Peer::early).
    All,
}

/// Longest time that is used: clocks cannot count much further.
const MOST_TIME: Duration = Duration::from_secs(365 * 24 * 3600);

impl Limits {
    /// Returns the limits with the times that are used.
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
            idle_time: Duration::from_secs(60),
            drain_time: Duration::from_secs(600),
            tcp_connections: 1 << 16,
            memory: u64::MAX,
            early_methods: EarlyMethods::Safe,
        }
    }
}
