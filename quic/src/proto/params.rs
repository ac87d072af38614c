//! Transport parameters (RFC 9000 §18).

use std::time::Duration;

use super::packet::Cid;

/// The transport parameters of one end, with the defaults of RFC 9000 §18.2 for absent ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The DCID of the client's first Initial. Server only.
    pub original_dcid: Option<Cid>,
    /// The SCID of the Retry. Server only.
    pub retry_scid: Option<Cid>,
    /// The SCID of its first Initial.
    pub initial_scid: Option<Cid>,
    /// Token of a stateless reset. Server only.
    pub stateless_reset_token: Option<[u8; 16]>,
    /// Idle timeout; zero is none.
    pub max_idle_timeout: Duration,
    /// Largest UDP payload it takes.
    pub max_udp_payload_size: u64,
    /// Bytes we may send on all streams together at first.
    pub initial_max_data: u64,
    /// First limit of bidirectional streams that it opens.
    pub initial_max_stream_data_bidi_local: u64,
    /// First limit of bidirectional streams that we open.
    pub initial_max_stream_data_bidi_remote: u64,
    /// First limit of unidirectional streams that we open.
    pub initial_max_stream_data_uni: u64,
    /// Bidirectional streams we may open at first.
    pub initial_max_streams_bidi: u64,
    /// Unidirectional streams we may open at first.
    pub initial_max_streams_uni: u64,
    /// Exponent of its ACK delays.
    pub ack_delay_exponent: u8,
    /// Longest time it delays an ACK.
    pub max_ack_delay: Duration,
    /// Whether it forbids active migration.
    pub disable_active_migration: bool,
    /// Connection ids it keeps of ours.
    pub active_connection_id_limit: u64,
}
