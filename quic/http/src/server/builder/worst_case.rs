//! Memory that clients can make a server hold, as a function of its configuration.

use hybriq::{Direction, ServerConfig};

use crate::{
    Limits,
    http2::inflow,
    server::{
        fields::{PLACE, map_of_fields},
        state::Features,
        tcp::{self, LEAST_BUFFER},
    },
    webtransport,
};

/// Bytes of a connection over TCP: its task, and its TLS without buffers.
const TCP: u64 = 10 << 10;

/// Longest message of a TLS handshake that rustls puts together, which may come after the handshake, too.
const MESSAGE: u64 = 0xffff;

/// Bytes of records that wait for room in the socket, of which each has 22 bytes more, and a place.
const RECORDS: u64 = tcp::TLS_BUFFER as u64 + 5 * 64;

/// Bytes of a request over HTTP/1.1, without its fields.
const HTTP1_REQUEST: u64 = 8 << 10;

/// Bytes of a map for the fields of HTTP/1.1, of which there may be 100.
const HTTP1_FIELDS: u64 = 256 * PLACE + 100 * 8;

/// Bytes of a body of HTTP/1.1 that are read before the service asks: the part that waits for it, and the next.
const HTTP1_BODY: u64 = 2 * (32 << 10);

/// Bytes of a connection over HTTP/2: its state, and the buffers of its frames.
const HTTP2: u64 = 32 << 10;

/// Bytes of a request over HTTP/2, without its fields.
const HTTP2_REQUEST: u64 = 8 << 10;

/// Bytes of the resets of HTTP/2 that wait to be sent: of [`RESETS`](crate::http2::pause::RESETS), and of as many as
/// fit in a buffer, in a table that doubles.
const HTTP2_RESETS: u64 = 4096 * 704;

/// Bytes of a frame of HTTP/2 that waits to be sent, besides its data.
const SENT_FRAME: u64 = 640;

/// Shortest part of a response that is counted on.
const PART: u64 = 4 << 10;

/// Bytes of a connection of HTTP/3: its task, and its state.
const HTTP3: u64 = 8 << 10;

/// Bytes of a request over HTTP/3, without its fields: its task, and both halves of its stream.
const HTTP3_REQUEST: u64 = 8 << 10;

/// Bytes of a stream that waits in a session, with what was read of it.
const SESSION_STREAM: u64 = 3 << 10;

/// Bytes of a session of WebTransport, besides its request: its tasks and its state.
const SESSION: u64 = 8 << 10;

/// Memory that clients can make a server hold: upper bounds in bytes, by what holds it.
///
/// Parts count once for each connection of their kind; those of [`transport`](Self::transport) say for
/// themselves. Tests reach them within a tenth.
///
/// Not in it: what the service holds (its futures and state, bodies that it has read, and the parts of its
/// responses that it made and nobody asked for), what the system holds in the buffers of sockets, what the TLS
/// library computes with during handshakes, and what the allocator adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorstCaseMemory {
    /// Memory of the transport of QUIC. Bodies over HTTP/3 that are not read, and responses that are not
    /// acknowledged, are in it.
    pub transport: hybriq::stats::WorstCaseMemory,
    /// Bytes of the state of HTTP/3, for each connection over QUIC.
    pub http3: u64,
    /// Bytes of the requests that a connection of HTTP/3 may have at once: their tasks, their fields as a map,
    /// in the sizes that cost most, and a field section of trailers that is not whole.
    pub http3_requests: u64,
    /// Bytes of the sessions of WebTransport of a connection, with their streams and datagrams that are not
    /// taken. 0 if they are not allowed.
    pub sessions: u64,
    /// Bytes of a connection over TCP during its TLS handshake, with a message that is not whole.
    pub handshake: u64,
    /// Bytes of a connection over TCP after that: its task, a message that is not whole, and records that the
    /// client does not take.
    pub tls: u64,
    /// Bytes of a request over HTTP/1.1: its task, the bytes of its head and its fields as a map, and the part of
    /// its body that is read before the service asks for it.
    pub http1: u64,
    /// Bytes of a response over HTTP/1.1 that the client does not take, beyond the records of
    /// [`tls`](Self::tls). A service whose body gives longer parts has one of them more.
    pub http1_response: u64,
    /// Bytes of the state of HTTP/2, for each connection.
    pub http2: u64,
    /// Bytes of the requests that a connection of HTTP/2 may have at once: their tasks, and their fields and
    /// trailers as maps; and resets of others, which the client does not take.
    pub http2_requests: u64,
    /// Bytes of bodies over HTTP/2 that are not read, in the frames that cost most: each keeps a whole buffer of
    /// 8 KiB.
    pub http2_bodies: u64,
    /// Bytes of responses over HTTP/2 that the client allows and does not take, in parts of 4 KiB. A service
    /// with shorter ones has 640 bytes more for each.
    pub http2_responses: u64,
}

impl WorstCaseMemory {
    /// Computes the bounds for the connections of a configuration.
    pub(super) fn of(config: &ServerConfig, limits: &Limits, features: Features) -> Self {
        let list = limits.most_fields();
        let fields = map_of_fields(list);
        let requests = config.most_peer_streams(Direction::Bidi);
        // A section that is not whole lies in a buffer that doubles.
        let request = HTTP3_REQUEST + fields + 2 * list;
        let streams = config.most_peer_streams(Direction::Uni);
        let sessions = features.webtransport;
        let buffer = list.max(LEAST_BUFFER as u64);
        let parts = tcp::SEND_BUFFER as u64 / PART + 1;
        let at_once = u64::from(tcp::STREAMS);
        Self {
            transport: config.worst_case_memory(),
            http3: HTTP3,
            http3_requests: requests.saturating_mul(request),
            sessions: sessions.map_or(0, |limits| of_sessions(&limits, streams)),
            handshake: TCP + MESSAGE,
            tls: TCP + MESSAGE + RECORDS,
            http1: HTTP1_REQUEST + 2 * buffer + HTTP1_FIELDS + HTTP1_BODY,
            http1_response: buffer + PART,
            http2: HTTP2,
            http2_requests: at_once * (HTTP2_REQUEST + 2 * (fields + inflow::BUFFER))
                + HTTP2_RESETS,
            http2_bodies: inflow::MOST,
            http2_responses: at_once * parts * (PART + SENT_FRAME),
        }
    }

    /// Returns the bytes of one connection over QUIC.
    pub const fn per_quic_connection(&self) -> u64 {
        let transport = self.transport.per_connection();
        let http3 = self.http3.saturating_add(self.http3_requests);
        transport
            .saturating_add(http3)
            .saturating_add(self.sessions)
    }

    /// Returns the bytes of one connection over TCP: of the worse of its versions, and of its stages.
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

    /// Returns the bytes of a server with these numbers of workers of QUIC and of connections of both kinds.
    pub const fn total(&self, workers: u64, quic_connections: u64, tcp_connections: u64) -> u64 {
        let quic = self.per_quic_connection().saturating_mul(quic_connections);
        let tcp = self.per_tcp_connection().saturating_mul(tcp_connections);
        let endpoint = self.transport.per_endpoint(workers);
        endpoint.saturating_add(quic).saturating_add(tcp)
    }
}

/// Returns the bytes of the sessions of a connection, whose client may open so many unidirectional streams.
/// Bidirectional ones take the place of requests, and less than they.
fn of_sessions(limits: &webtransport::Limits, streams: u64) -> u64 {
    let session = SESSION.saturating_add(limits.datagrams as u64);
    let sessions = session.saturating_mul(limits.sessions as u64);
    sessions
        .saturating_add(limits.waiting_datagrams as u64)
        .saturating_add(streams.saturating_mul(SESSION_STREAM))
}
