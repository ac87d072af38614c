//! The memory that clients can make a server hold, as a function of its configuration.

use hybriq::{Direction, ServerConfig};

use crate::{
    Limits,
    server::{
        fields::{PLACE, map_of_fields},
        state::{Connect, Features},
        tcp::{self, LEAST_BUFFER},
    },
    upgrade::{STAND_IN, masque::WAITING},
    versions::http2::inflow,
    webtransport,
};

/// Bytes of a TCP connection: its task, and its TLS without buffers.
const TCP: u64 = 10 << 10;

/// Longest TLS handshake message that rustls assembles, which may also arrive after the handshake.
const MESSAGE: u64 = 0xffff;

/// Bytes of records that wait for room in the socket; each takes 22 bytes more, and a place.
const RECORDS: u64 = tcp::TLS_BUFFER as u64 + 5 * 64;

/// Bytes of an HTTP/1.1 request, without its fields.
const HTTP1_REQUEST: u64 = 8 << 10;

/// Bytes of a map for the fields of HTTP/1.1, at most 100.
const HTTP1_FIELDS: u64 = 256 * PLACE + 100 * 8;

/// Bytes of an HTTP/1.1 body that are read before the service asks: the part that waits for it, and the next.
const HTTP1_BODY: u64 = 2 * (32 << 10);

/// Bytes of an HTTP/2 connection: its state, and the buffers of its frames.
const HTTP2: u64 = 32 << 10;

/// Bytes of an HTTP/2 request, without its fields.
const HTTP2_REQUEST: u64 = 8 << 10;

/// Bytes of the HTTP/2 resets that wait to be sent: [`RESETS`](crate::versions::http2::pause::RESETS), and as many as fit in a
/// buffer, in a table that doubles.
const HTTP2_RESETS: u64 = 4096 * 704;

/// Bytes of an HTTP/2 frame that waits to be sent, in addition to its data.
const SENT_FRAME: u64 = 640;

/// Shortest part of a response that the estimate assumes.
const PART: u64 = 4 << 10;

/// Bytes of an HTTP/3 connection: its task, and its state.
const HTTP3: u64 = 3 << 10;

/// Bytes of the records in addition to a dynamic table: of received fields, and of sections that are not acknowledged.
const TABLE_RECORDS: u64 = 13 << 9;

/// Bytes of an HTTP/3 request, without its fields: its task, and both halves of its stream.
const HTTP3_REQUEST: u64 = 7 << 9;

/// Bytes of a stream that waits in a session, including what was read of it.
const SESSION_STREAM: u64 = 3 << 10;

/// Bytes of a WebTransport session, in addition to its request: its tasks and its state.
const SESSION: u64 = 8 << 10;

/// Memory that clients can make a server hold: upper bounds in bytes, for each part.
///
/// Each part counts once per connection of its kind; the parts of [`transport`](Self::transport) say how they count.
/// Tests come within a tenth of each bound.
///
/// Not included: what the service holds (its futures and state, bodies that it has read, and parts of its responses
/// that it made before they were asked for), the system's socket buffers, working memory of the TLS library during
/// handshakes, and overhead of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorstCaseMemory {
    /// Memory of the QUIC transport, including unread HTTP/3 bodies and unacknowledged responses.
    pub transport: hybriq::stats::WorstCaseMemory,
    /// Bytes of HTTP/3 state per QUIC connection, including its dynamic tables.
    pub http3: u64,
    /// Bytes of the requests that an HTTP/3 connection may have at once: their tasks, their fields as a map in the
    /// most expensive sizes, and an incomplete field section of trailers.
    pub http3_requests: u64,
    /// Bytes of a connection's WebTransport sessions, including their streams and datagrams that the service has not
    /// accepted. 0 if sessions are not allowed.
    pub sessions: u64,
    /// Bytes of a TCP connection during its TLS handshake, including an incomplete message.
    pub handshake: u64,
    /// Bytes of a TCP connection after its handshake: its task, an incomplete message, and records that the client
    /// does not read.
    pub tls: u64,
    /// Bytes of an HTTP/1.1 request: its task, the bytes of its head, its fields as a map, and the part of its body
    /// that is read before the service asks for it.
    pub http1: u64,
    /// Bytes of an HTTP/1.1 response that the client does not read, in addition to the records in [`tls`](Self::tls).
    /// If the service's body yields longer parts, one of them is added.
    pub http1_response: u64,
    /// Bytes of HTTP/2 state per connection.
    pub http2: u64,
    /// Bytes of the requests that an HTTP/2 connection may have at once: their tasks, and their fields and trailers
    /// as maps. Includes resets of other requests that the client does not read.
    pub http2_requests: u64,
    /// Bytes of unread HTTP/2 bodies, in the most expensive frames: each keeps a whole buffer of 8 KiB.
    pub http2_bodies: u64,
    /// Bytes of HTTP/2 responses that the client gives credit for and does not read, in parts of 4 KiB. Shorter parts
    /// take 640 bytes more each.
    pub http2_responses: u64,
}

impl WorstCaseMemory {
    /// Computes the bounds for the connections of a configuration.
    pub(super) fn of(config: &ServerConfig, limits: &Limits, features: Features) -> Self {
        let list = limits.most_fields();
        let fields = map_of_fields(list);
        let requests = config.most_peer_streams(Direction::Bidi);
        // A section that is not whole lies in a buffer of its own, and so do the values of the one before it.
        let request = HTTP3_REQUEST + fields + 2 * list;
        let streams = config.most_peer_streams(Direction::Uni);
        let sessions = features.webtransport;
        let buffer = list.max(LEAST_BUFFER as u64);
        let parts = tcp::SEND_BUFFER as u64 / PART + 1;
        let at_once = u64::from(tcp::STREAMS);
        let upgrade = match features.connect {
            Connect::Refused => 0,
            Connect::Extended | Connect::Udp => STAND_IN,
        };
        // Sessions count theirs.
        let has_waiting = features.connect == Connect::Udp && sessions.is_none();
        let waiting = if has_waiting { WAITING as u64 } else { 0 };
        Self {
            transport: config.worst_case_memory(),
            http3: HTTP3 + of_tables(limits.most_table()) + waiting,
            http3_requests: requests.saturating_mul(request + upgrade),
            sessions: sessions.map_or(0, |limits| of_sessions(&limits, streams)),
            handshake: TCP + MESSAGE,
            tls: TCP + MESSAGE + RECORDS,
            http1: HTTP1_REQUEST + 2 * buffer + HTTP1_FIELDS + HTTP1_BODY,
            http1_response: buffer + PART,
            http2: HTTP2,
            http2_requests: at_once * (HTTP2_REQUEST + upgrade + 2 * (fields + inflow::BUFFER))
                + HTTP2_RESETS,
            http2_bodies: inflow::MOST,
            http2_responses: at_once * parts * (PART + SENT_FRAME),
        }
    }

    /// Returns the bytes of one QUIC connection.
    pub const fn per_quic_connection(&self) -> u64 {
        let transport = self.transport.per_connection();
        let http3 = self.http3.saturating_add(self.http3_requests);
        transport
            .saturating_add(http3)
            .saturating_add(self.sessions)
    }

    /// Returns the bytes of one TCP connection, in its most expensive version and stage.
    pub const fn per_tcp_connection(&self) -> u64 {
        let http1 = self.http1 + self.http1_response;
        let http2 = self.http2 + self.http2_requests + self.http2_bodies + self.http2_responses;
        let http = if http1 > http2 { http1 } else { http2 };
        let after = self.tls.saturating_add(http);
        if self.handshake > after {
            self.handshake
        } else {
            after
        }
    }

    /// Returns the bytes of a server with this many QUIC workers and connections of both kinds.
    pub const fn total(&self, workers: u64, quic_connections: u64, tcp_connections: u64) -> u64 {
        let quic = self.per_quic_connection().saturating_mul(quic_connections);
        let tcp = self.per_tcp_connection().saturating_mul(tcp_connections);
        let endpoint = self.transport.per_endpoint(workers);
        endpoint.saturating_add(quic).saturating_add(tcp)
    }
}

/// Returns the bytes of the dynamic tables of a connection, for a capacity in bytes.
fn of_tables(capacity: u64) -> u64 {
    if capacity == 0 {
        return 0;
    }
    // Half of an entry's size, if it is short, is its overhead; a table's memory doubles as it grows.
    let requests = capacity * 5 / 2;
    let responses = capacity * 13 / 4 + TABLE_RECORDS;
    // An instruction that is not whole, in a buffer that doubles.
    let instruction = 2 * (capacity * 15 / 4);
    requests + responses + instruction
}

/// Returns the bytes of the sessions of a connection whose client may open `streams` unidirectional streams.
/// Bidirectional streams take the place of requests, and cost less.
fn of_sessions(limits: &webtransport::Limits, streams: u64) -> u64 {
    let session = SESSION.saturating_add(limits.datagrams as u64);
    let sessions = session.saturating_mul(limits.sessions as u64);
    sessions
        .saturating_add(limits.waiting_datagrams as u64)
        .saturating_add(streams.saturating_mul(SESSION_STREAM))
}
