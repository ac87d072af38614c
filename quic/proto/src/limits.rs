//! Every bound on what a peer can make us hold or do, in one place. Each has a test that reaches it.

use std::time::Duration;

/// Bytes of a connection id at most (RFC 9000 §17.2).
pub const MAX_CID_LEN: usize = 20;

/// Bytes of the id by which a client calls a server that has not said its own (RFC 9000 §7.2).
pub const INITIAL_DCID_LEN: usize = 8;

/// Bytes of the shortest ids that a generator may make: after a Retry a client begins again with
/// one of ours, and what begins a connection has at least 8 (RFC 9000 §7.2).
pub const MIN_LOCAL_CID: usize = 8;

/// Bytes every datagram with an Initial packet must have (RFC 9000 §14.1), and the datagram size
/// that every path must carry.
pub const MIN_DATAGRAM: usize = 1200;

/// Bytes of the datagrams that one call may send together: what fits into one IPv4 UDP datagram.
/// One that is larger, over IPv6, goes alone.
pub const TRAIN: usize = 65_507;

/// Sockets of one worker: those it is made with, and those that connections moved to.
pub const SOCKETS: usize = 16;

/// Bytes of a stateless reset at least (RFC 9000 §10.3).
pub const MIN_STATELESS_RESET: usize = 21;

/// Bytes that packets have beyond the ids we ask for at least: only then a stateless reset of the
/// peer's, which is smaller, looks like any packet to us (RFC 9000 §10.3).
pub const BEYOND_SHORTEST_CID: usize = 22;

/// What may be sent per byte received before the peer's address is validated (RFC 9000 §8.1).
pub const AMPLIFICATION_FACTOR: u64 = 3;

/// Bytes of CRYPTO data held per level before TLS consumed them, gaps included.
pub const CRYPTO_BUFFER: usize = 64 * 1024;

/// Separate pieces a CRYPTO stream may be in.
pub const CRYPTO_PIECES: usize = 64;

/// Separate pieces the received part of one stream may be in.
pub const STREAM_PIECES: usize = 1024;

/// Separate pieces the received parts of all streams of a connection may be in, unless its window is
/// large.
pub const ALL_STREAM_PIECES: usize = 4 * STREAM_PIECES;

/// Ranges of received packet numbers kept per space; the oldest are forgotten.
pub const ACK_RANGES: usize = 64;

/// Bytes that an ACK frame may have however little came since the last one.
pub const SMALL_ACK: usize = 64;

/// Ack-eliciting packets a peer can ask us to take without an acknowledgement.
pub const ACK_THRESHOLD: u64 = 1000;

/// How long a peer can ask us to delay an acknowledgement: more than a round trip by satellite.
pub const ACK_DELAY: Duration = Duration::from_secs(1);

/// Packets of one space that may wait for their acknowledgement; nothing more is sent beyond.
/// At 1200 bytes they are 78 MB in flight.
pub const SENT_PACKETS: usize = 1 << 16;

/// Packets declared lost that are remembered per space, in case they arrive.
pub const LOST_PACKETS: usize = 2048;

/// Packets that are not in flight (ACK only) kept per space. The peer need not acknowledge them, so
/// their number is bounded by nothing else.
pub const ACK_ONLY_PACKETS: usize = 64;

/// Bytes of the largest DATAGRAM frame we take: more than any packet holds (RFC 9221 §3).
pub const DATAGRAM_FRAME: u64 = 65_535;

/// Bytes that a waiting DATAGRAM counts for besides its data, so that empty ones are bounded too.
pub const DATAGRAM_OVERHEAD: usize = 64;

/// Connection ids we let the peer give us (our active_connection_id_limit).
pub const PEER_CIDS: usize = 4;

/// Connection ids we give the peer at most, whatever its limit.
pub const LOCAL_CIDS: usize = 4;

/// Connection ids we issue on one connection in [`CIDS_ISSUED_INTERVAL`], whatever the peer retires.
pub const CIDS_ISSUED_AT_ONCE: usize = 32;

/// See [`CIDS_ISSUED_AT_ONCE`].
pub const CIDS_ISSUED_INTERVAL: Duration = Duration::from_secs(1);

/// Stateless resets sent at once by one worker; each millisecond allows one more.
pub const STATELESS_RESETS: u32 = 64;

/// RETIRE_CONNECTION_ID frames that may wait to be acknowledged.
pub const PENDING_RETIREMENTS: usize = 4 * PEER_CIDS;

/// PATH_RESPONSE frames that may wait; the oldest gives way.
pub const PATH_RESPONSES: usize = 3;

/// PATH_CHALLENGE frames of one path that may be answered; the oldest gives way.
pub const PATH_CHALLENGES: usize = 4;

/// Bytes of PATH_CHALLENGE and PATH_RESPONSE datagrams that leave outside the congestion window until
/// the peer acknowledges something: as many as an initial window has (RFC 9002 §7.2).
pub const PROBE_BYTES: u64 = 10 * MIN_DATAGRAM as u64;

/// Paths that are known beside the one in use.
pub const OTHER_PATHS: usize = 3;

/// How long a path is remembered that was validated and is not used.
pub const PATH_LIFETIME: Duration = Duration::from_secs(10);

/// Partial ClientHellos held by one worker.
pub const PARTIAL_HELLOS: usize = 4096;

/// Bytes of CRYPTO data one ClientHello may have before it is whole. RFC 9000 §7.5 asks for 4096; a
/// session ticket that holds a client's certificate chain takes more.
pub const PARTIAL_HELLO_BYTES: usize = 16 * 1024;

/// Bytes of CRYPTO data all partial ClientHellos of a worker may hold together; the oldest give way.
pub const PARTIAL_HELLOS_BYTES: usize = PARTIAL_HELLOS * 4096;

/// How long a partial ClientHello is kept without news.
pub const PARTIAL_HELLO_LIFETIME: Duration = Duration::from_secs(5);

/// How long the acknowledgement of a partial ClientHello waits for the rest.
pub const PARTIAL_HELLO_ACK_DELAY: Duration = Duration::from_millis(1);

/// Incoming connections that wait for the application's decision.
pub const WAITING_INCOMING: usize = 4096;

/// Datagrams that wait to be sent and belong to no connection.
pub const WAITING_ANSWERS: usize = 256;

/// Bytes of a close reason kept and sent.
pub const CLOSE_REASON: usize = 256;

/// Undecryptable packets kept until their keys come.
pub const UNDECRYPTABLE_PACKETS: usize = 4;

/// Bytes of 0-RTT packets kept for one client until it has a connection: what a first window of ten
/// datagrams holds.
pub const EARLY_BYTES: usize = 16 * 1024;

/// The same for all clients of a worker together; the oldest give way.
pub const ALL_EARLY_BYTES: usize = 256 * EARLY_BYTES;

/// Versions of a peer's version_information that are looked at; more are ignored.
pub const AVAILABLE_VERSIONS: usize = 16;

/// Transport parameters of ids we don't know that are remembered, to find one that comes twice.
pub const UNKNOWN_PARAMS: usize = 64;

/// Keys that tokens are opened with: the one that seals, and those it follows.
pub const TOKEN_KEYS: usize = 4;

/// Bytes of a token of a NEW_TOKEN frame that is kept: more would leave an Initial too little room.
pub const TOKEN_LEN: usize = 512;

/// Seconds that a Retry token is good for. Its client returns it at once (RFC 9000 §8.1.4).
pub const RETRY_TOKEN_LIFETIME: u64 = 15;

/// Seconds that a token of a NEW_TOKEN frame is good for.
pub const NEW_TOKEN_LIFETIME: u64 = 24 * 60 * 60;

/// Seconds that the clocks of a fleet may differ by.
pub const CLOCK_SKEW: u64 = 5;

/// Bytes in which the spent tokens of one lifetime are remembered.
pub const SPENT_TOKENS_BYTES: usize = 128 * 1024;

/// Clients with an unfinished handshake at which adaptive Retry starts, and below which it may end.
pub const RETRY_AT: usize = 2048;
/// See [`RETRY_AT`].
pub const RETRY_UNTIL_BELOW: usize = 512;
