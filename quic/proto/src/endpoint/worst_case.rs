//! Memory that peers can make a server hold, as a function of its configuration.

use crate::{
    config::TransportConfig,
    connection::{self, Connection},
    owners::streams,
    wire::limits,
};

/// Bytes of a piece of a stream behind a gap, in addition to its data: its share of a node of the
/// tree that contains it.
const PIECE: u64 = 192;

/// Largest chunk in which received bytes are collected: at most this much of a stream's memory is
/// empty.
const CHUNK: u64 = 32 * 1024;

/// Bytes of the tables of a connection that depend on no option: its own struct, a path's state,
/// ids and routes, packet keys, and ranges of packet numbers.
const FIXED: u64 = 16 * 1024;

/// Bytes of a partial ClientHello in addition to its CRYPTO data: its keys, its place, which tables
/// that double their size may hold twice, and two routes.
const HELLO: u64 = 1536;

/// Bytes of a complete ClientHello in addition to its message: the same, and the lists that were
/// read.
const WAITING: u64 = 7 * 1024 + 512;

/// Bytes of an answer of the endpoint: a Version Negotiation packet with the longest ids.
const ANSWER: u64 = 640;

/// Memory that peers can make a server hold: upper limits in bytes, by kind.
///
/// Some parts count once for each connection, some once for each worker, and some once for the
/// endpoint.
///
/// Tests reach each part to within a tenth, [`received`](Self::received) together with
/// [`streams`](Self::streams), and also a whole connection. Only [`connection`](Self::connection)
/// is not reached on its own.
///
/// Not included: what the application holds, the fates of datagrams that it awaits (4,096 at once for each connection),
/// the TLS library's state (during handshakes, and tickets remembered in memory, 16 MiB at most), socket buffers, and
/// the allocator's overhead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorstCaseMemory {
    /// Bytes of a connection itself, and of the tables whose size does not depend on options.
    pub connection: u64,
    /// Bytes of data that the application does not read, for each connection, in the most expensive
    /// pieces and chunks: the bytes of the receive window, the empty part of one 32 KiB chunk of
    /// each stream, and 192 bytes for each piece, of which there may be 4,096 or one for every 256
    /// bytes of the window.
    pub received: u64,
    /// Bytes of both halves of all streams that the peer may open, for each connection.
    pub streams: u64,
    /// Bytes of datagrams that wait to be read or sent, for each connection.
    pub datagrams: u64,
    /// Bytes of CRYPTO data after gaps, for each connection during its handshake.
    pub crypto: u64,
    /// Bytes of data that the application writes on all bidirectional streams that the peer opened,
    /// and that the peer does not acknowledge. It is less if the application writes less.
    pub sent: u64,
    /// Bytes of records of packets in flight, for each connection: 65,536 of them, 8 MiB for frames
    /// beyond the first STREAM frame of each, and the numbers of 2,048 lost packets. The window
    /// allows this many packets only after the peer has acknowledged megabytes.
    pub packets: u64,
    /// Bytes of incomplete ClientHellos, for each worker.
    pub hellos: u64,
    /// Bytes of 0-RTT packets without a connection, for each worker.
    pub early_packets: u64,
    /// Bytes of answers that belong to no connection and wait to be sent, for each worker.
    pub answers: u64,
    /// Bytes of ClientHellos that wait for the application's decision, as many as the endpoint
    /// allows if its builder sets no smaller number.
    pub waiting: u64,
    /// Bytes of the record of spent tokens.
    pub tokens: u64,
}

impl WorstCaseMemory {
    /// Computes the limits for connections of a configuration.
    pub(super) fn of(config: &TransportConfig) -> Self {
        let allowed = &config.streams;
        let count = allowed.max_bidi.saturating_add(allowed.max_uni);
        let windows = count.saturating_mul(allowed.stream_receive_window);
        let window = allowed.receive_window.min(windows);
        let pieces = streams::most_pieces(allowed.receive_window).min(window / 2);
        let data = window - 2 * pieces;
        let held = allowed.max_send_buffer.max(allowed.send_buffer);
        let datagrams = config.datagrams.receive_buffer + config.datagrams.send_queue;
        Self {
            connection: size_of::<Connection>() as u64 + FIXED,
            received: data
                .saturating_add(data.min(count.saturating_mul(CHUNK)))
                .saturating_add(pieces.saturating_mul(PIECE)),
            streams: streams::memory_of_tables(allowed.max_bidi, count),
            datagrams: datagrams as u64,
            crypto: limits::CRYPTO_BUFFER as u64 + CHUNK + limits::CRYPTO_PIECES as u64 * PIECE,
            sent: allowed.max_bidi.saturating_mul(held),
            packets: connection::most_memory_of_packets(),
            hellos: limits::PARTIAL_HELLOS_BYTES as u64 + limits::PARTIAL_HELLOS as u64 * HELLO,
            early_packets: limits::ALL_EARLY_BYTES as u64,
            answers: limits::WAITING_ANSWERS as u64 * ANSWER,
            waiting: limits::WAITING_INCOMING as u64
                * (limits::PARTIAL_HELLO_BYTES as u64 + WAITING),
            tokens: 4 * limits::SPENT_TOKENS_BYTES as u64,
        }
    }

    /// Returns the bytes of one connection.
    pub const fn per_connection(&self) -> u64 {
        let parts = [
            self.connection,
            self.received,
            self.streams,
            self.datagrams,
            self.crypto,
            self.sent,
            self.packets,
        ];
        sum(&parts)
    }

    /// Returns the bytes of one worker of an endpoint, without connections.
    pub const fn per_worker(&self) -> u64 {
        sum(&[self.hellos, self.early_packets, self.answers])
    }

    /// Returns the bytes of an endpoint with this many workers, without connections.
    pub const fn per_endpoint(&self, workers: u64) -> u64 {
        let all = self.per_worker().saturating_mul(workers);
        sum(&[all, self.waiting, self.tokens])
    }

    /// Returns the bytes of an endpoint with this many workers and connections.
    pub const fn total(&self, workers: u64, connections: u64) -> u64 {
        let all = self.per_connection().saturating_mul(connections);
        self.per_endpoint(workers).saturating_add(all)
    }
}

const fn sum(parts: &[u64]) -> u64 {
    let mut total: u64 = 0;
    let mut rest = parts;
    while let [first, others @ ..] = rest {
        total = total.saturating_add(*first);
        rest = others;
    }
    total
}

impl TransportConfig {
    /// Returns the memory that peers can make a server with this configuration hold.
    pub fn worst_case_memory(&self) -> WorstCaseMemory {
        WorstCaseMemory::of(self)
    }
}
