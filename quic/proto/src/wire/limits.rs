//! All limits on what a peer can make us store or do. Each has a test that reaches it.

use std::time::Duration;

/// Largest length of a connection id in bytes (RFC 9000 §17.2).
pub const MAX_CID_LEN: usize = 20;

/// Length in bytes of the destination id that a client uses before the server has chosen one (RFC
/// 9000 §7.2).
pub const INITIAL_DCID_LEN: usize = 8;

/// Shortest length in bytes of generated ids: after a Retry a client starts again with one of our
/// ids, and the first id must have at least 8 bytes (RFC 9000 §7.2).
pub const MIN_LOCAL_CID: usize = 8;

/// Smallest size in bytes of datagrams with an Initial packet (RFC 9000 §14.1), which every path
/// must carry.
pub const MIN_DATAGRAM: usize = 1200;

/// Largest size in bytes of a train sent by one call: the payload of one IPv4 UDP datagram. A
/// larger datagram, over IPv6, is sent alone.
pub const TRAIN: usize = 65_507;

/// Number of sockets of one worker: its own, and those that connections migrated to.
pub const SOCKETS: usize = 16;

/// Smallest size of a stateless reset in bytes (RFC 9000 §10.3).
pub const MIN_STATELESS_RESET: usize = 21;

/// Smallest number of bytes in a packet beyond our shortest id, so that a stateless reset from the
/// peer, which is smaller, looks like any other packet (RFC 9000 §10.3).
pub const BEYOND_SHORTEST_CID: usize = 22;

/// Bytes that may be sent per byte received before the peer's address is validated (RFC 9000 §8.1).
pub const AMPLIFICATION_FACTOR: u64 = 3;

/// Bytes of CRYPTO data held per level before TLS consumes them, gaps included.
pub const CRYPTO_BUFFER: usize = 64 * 1024;

/// Number of separate pieces that a CRYPTO stream may be in.
pub const CRYPTO_PIECES: usize = 64;

/// Number of separate pieces that the received part of one stream may be in.
pub const STREAM_PIECES: usize = 1024;

/// Number of separate pieces that the received parts of all streams of a connection may be in,
/// unless its window is large.
pub const ALL_STREAM_PIECES: usize = 4 * STREAM_PIECES;

/// Number of ranges of received packet numbers kept per space; the oldest are forgotten.
pub const ACK_RANGES: usize = 64;

/// Number of ranges of received packet numbers kept for a client without a connection.
pub const HELLO_RANGES: usize = 6;

/// Bytes that every ACK frame may have, however little was received since the last one.
pub const SMALL_ACK: usize = 64;

/// Largest number of ack-eliciting packets that a peer can ask us to receive without an
/// acknowledgement.
pub const ACK_THRESHOLD: u64 = 1000;

/// Longest delay of acknowledgements that a peer can request: more than a satellite round trip.
pub const ACK_DELAY: Duration = Duration::from_secs(1);

/// Number of packets in one space that may wait for their acknowledgement; beyond that, sending
/// stops. At 1200 bytes they are 78 MB in flight.
pub const SENT_PACKETS: usize = 1 << 16;

/// Bytes that the records of these packets may hold in addition to their own size, for frames
/// beyond the first STREAM frame of each. Beyond that, sending stops. An application that fills
/// packets with single bytes of many streams reaches the limit with a thousand packets.
pub const SENT_RECORDS: usize = 8 << 20;

/// Number of packets declared lost that are remembered per space, in case they arrive.
pub const LOST_PACKETS: usize = 2048;

/// Number of packets not in flight (ACK only) kept per space. The peer need not acknowledge them,
/// so nothing else limits their number.
pub const ACK_ONLY_PACKETS: usize = 64;

/// Largest DATAGRAM frame in bytes that we accept: larger than any packet can hold (RFC 9221 §3).
pub const DATAGRAM_FRAME: u64 = 65_535;

/// Bytes that a waiting DATAGRAM counts as in addition to its data, which limits the number of
/// empty ones.
pub const DATAGRAM_OVERHEAD: usize = 64;

/// Bytes that a waiting DATAGRAM with options counts as in addition: their place in a queue, which
/// may have spare places.
pub const DATAGRAM_OPTIONS: usize = 96;

/// Number of datagrams whose fate may be awaited at once.
pub const DATAGRAM_FATES: usize = 4096;

/// Number of connection ids that the peer may issue to us (our active_connection_id_limit).
pub const PEER_CIDS: usize = 4;

/// Largest number of connection ids that we issue to the peer, regardless of its limit.
pub const LOCAL_CIDS: usize = 4;

/// Number of connection ids issued on one connection per [`CIDS_ISSUED_INTERVAL`], however many the
/// peer retires.
pub const CIDS_ISSUED_AT_ONCE: usize = 32;

/// Interval for [`CIDS_ISSUED_AT_ONCE`].
pub const CIDS_ISSUED_INTERVAL: Duration = Duration::from_secs(1);

/// Number of stateless resets that one worker sends at once; each millisecond allows one more.
pub const STATELESS_RESETS: u32 = 64;

/// Number of RETIRE_CONNECTION_ID frames that may wait for their acknowledgement.
pub const PENDING_RETIREMENTS: usize = 4 * PEER_CIDS;

/// Number of PATH_RESPONSE frames that may wait; the oldest is dropped.
pub const PATH_RESPONSES: usize = 3;

/// Number of PATH_CHALLENGE frames of one path that may be answered; the oldest is dropped.
pub const PATH_CHALLENGES: usize = 4;

/// Bytes of PATH_CHALLENGE and PATH_RESPONSE datagrams sent outside the congestion window until the
/// peer acknowledges something: as many as in an initial window (RFC 9002 §7.2). The answer to a
/// challenge of 1200 bytes pays for two datagrams.
pub const PROBE_BYTES: u64 = 10 * MIN_DATAGRAM as u64;

/// Number of paths remembered besides the one in use.
pub const OTHER_PATHS: usize = 3;

/// Time for which a validated but unused path is remembered.
pub const PATH_LIFETIME: Duration = Duration::from_secs(10);

/// Number of partial ClientHellos held by one worker.
pub const PARTIAL_HELLOS: usize = 4096;

/// Bytes of CRYPTO data in an incomplete ClientHello. RFC 9000 §7.5 asks for 4096; a session ticket
/// that contains a client's certificate chain takes more.
pub const PARTIAL_HELLO_BYTES: usize = 16 * 1024;

/// Bytes of CRYPTO data in all partial ClientHellos of a worker; the oldest are dropped.
pub const PARTIAL_HELLOS_BYTES: usize = PARTIAL_HELLOS * 4096;

/// Time for which a partial ClientHello is kept. The acknowledged part is not sent again, so a
/// client that lost the rest must still find it here after several of its probe timeouts, which
/// double.
pub const PARTIAL_HELLO_LIFETIME: Duration = Duration::from_secs(30);

/// Number of unanswered probes after which a server's connection ends because this machine no
/// longer has its address. The address may come back before that.
pub const PROBES_FROM_NOWHERE: u32 = 3;

/// Time for which 0-RTT packets that overtook their ClientHello are kept.
pub const EARLY_LIFETIME: Duration = Duration::from_secs(5);

/// Delay of the acknowledgement of a partial ClientHello, to wait for the rest.
pub const PARTIAL_HELLO_ACK_DELAY: Duration = Duration::from_millis(1);

/// Number of incoming connections that wait for the application's decision.
pub const WAITING_INCOMING: usize = 4096;

/// Number of datagrams waiting to be sent that belong to no connection.
pub const WAITING_ANSWERS: usize = 256;

/// Bytes of a close reason kept and sent.
pub const CLOSE_REASON: usize = 256;

/// Number of undecryptable packets kept until their keys are available.
pub const UNDECRYPTABLE_PACKETS: usize = 4;

/// Bytes of 0-RTT packets kept for one client until it has a connection: an initial window of ten
/// datagrams.
pub const EARLY_BYTES: usize = 16 * 1024;

/// Bytes of 0-RTT packets kept for all clients of a worker; the oldest are dropped.
pub const ALL_EARLY_BYTES: usize = 256 * EARLY_BYTES;

/// Number of versions read from a peer's version_information; others are ignored.
pub const AVAILABLE_VERSIONS: usize = 16;

/// Number of unknown transport parameters remembered to detect duplicates.
pub const UNKNOWN_PARAMS: usize = 64;

/// Number of keys that open tokens: the current one and its predecessors.
pub const TOKEN_KEYS: usize = 4;

/// Largest token in bytes that is kept from a NEW_TOKEN frame: a larger one would leave too little
/// room in an Initial.
pub const TOKEN_LEN: usize = 512;

/// Time without a packet from the server after which a client that waits for data sends a PING. It
/// doubles with each further one.
pub const SILENCE: Duration = Duration::from_secs(1);

/// Time without a packet after which a connection releases memory that it kept for the next
/// packets.
pub const QUIET: Duration = Duration::from_secs(1);

/// Lifetime of a Retry token in seconds. Its client returns it at once (RFC 9000 §8.1.4).
pub const RETRY_TOKEN_LIFETIME: u64 = 15;

/// Lifetime in seconds of a token from a NEW_TOKEN frame.
pub const NEW_TOKEN_LIFETIME: u64 = 24 * 60 * 60;

/// Largest difference in seconds between the clocks of a fleet.
pub const CLOCK_SKEW: u64 = 5;

/// Bytes of the record of spent tokens per lifetime.
pub const SPENT_TOKENS_BYTES: usize = 128 * 1024;

/// Number of clients with an unfinished handshake at which adaptive Retry starts.
pub const RETRY_AT: usize = 2048;
/// Number of clients with an unfinished handshake below which adaptive Retry may end.
pub const RETRY_UNTIL_BELOW: usize = 512;
