//! Ids of transport parameters (RFC 9000 §18.2 and extensions), and their names.

use std::borrow::Cow;

pub(super) const ORIGINAL_DCID: u64 = 0x00;
pub(super) const MAX_IDLE_TIMEOUT: u64 = 0x01;
pub(super) const STATELESS_RESET_TOKEN: u64 = 0x02;
pub(super) const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
pub(super) const INITIAL_MAX_DATA: u64 = 0x04;
pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: u64 = 0x05;
pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_REMOTE: u64 = 0x06;
pub(super) const INITIAL_MAX_STREAM_DATA_UNI: u64 = 0x07;
pub(super) const INITIAL_MAX_STREAMS_BIDI: u64 = 0x08;
pub(super) const INITIAL_MAX_STREAMS_UNI: u64 = 0x09;
pub(super) const ACK_DELAY_EXPONENT: u64 = 0x0a;
pub(super) const MAX_ACK_DELAY: u64 = 0x0b;
pub(super) const DISABLE_ACTIVE_MIGRATION: u64 = 0x0c;
pub(super) const PREFERRED_ADDRESS: u64 = 0x0d;
pub(super) const ACTIVE_CONNECTION_ID_LIMIT: u64 = 0x0e;
pub(super) const INITIAL_SCID: u64 = 0x0f;
pub(super) const RETRY_SCID: u64 = 0x10;
pub(super) const GREASE_QUIC_BIT: u64 = 0x2ab2;
pub(super) const RESET_STREAM_AT: u64 = 0x1d;
/// Id in early drafts.
pub(super) const RESET_STREAM_AT_BEFORE: u64 = 0x17_f758_6d2c_b571;
pub(super) const MAX_DATAGRAM_FRAME_SIZE: u64 = 0x20;
pub(super) const VERSION_INFORMATION: u64 = 0x11;
pub(super) const MIN_ACK_DELAY: u64 = 0xff04_de1b;
/// A server's commitment to post-quantum certificates. The number is random and ours: no document
/// defines the parameter.
pub(super) const POST_QUANTUM_COMMITMENT: u64 = 0x25c1_9f3a_6be8_40d7;

/// Known ids above those of RFC 9000 and RFC 9368, which have no gaps.
const EXTENSIONS: [u64; 6] = [
    RESET_STREAM_AT,
    MAX_DATAGRAM_FRAME_SIZE,
    GREASE_QUIC_BIT,
    MIN_ACK_DELAY,
    RESET_STREAM_AT_BEFORE,
    POST_QUANTUM_COMMITMENT,
];

/// Returns the bit of a known parameter in a set of them.
pub(super) fn bit(id: u64) -> Option<u32> {
    let index = if id <= VERSION_INFORMATION {
        id as usize
    } else {
        let extension = EXTENSIONS.iter().position(|known| *known == id)?;
        VERSION_INFORMATION as usize + 1 + extension
    };
    1_u32.checked_shl(index as u32)
}

/// Returns the id of a reserved parameter, which means nothing and must be ignored (RFC 9000 §18.1).
///
/// It takes 16 bits, because nginx reads no more of an id: of larger ones it took one in 3,900 for a
/// parameter that it knows, and refused the connection. On the wire it always has four bytes.
pub(super) const fn reserved(number: u64) -> u64 {
    const FIRST: u64 = (1 << 14) / 31;
    const LAST: u64 = (u16::MAX as u64 - 27) / 31;
    31 * (FIRST + number % (LAST - FIRST + 1)) + 27
}

/// Returns true if only a server may send the parameter.
pub(super) const fn is_server_only(id: u64) -> bool {
    matches!(
        id,
        ORIGINAL_DCID
            | STATELESS_RESET_TOKEN
            | PREFERRED_ADDRESS
            | RETRY_SCID
            | POST_QUANTUM_COMMITMENT
    )
}

/// Returns the name of the parameter in RFC 9000.
pub(super) fn name(id: u64) -> Cow<'static, str> {
    Cow::Borrowed(match id {
        ORIGINAL_DCID => "original_destination_connection_id",
        MAX_IDLE_TIMEOUT => "max_idle_timeout",
        STATELESS_RESET_TOKEN => "stateless_reset_token",
        MAX_UDP_PAYLOAD_SIZE => "max_udp_payload_size",
        INITIAL_MAX_DATA => "initial_max_data",
        INITIAL_MAX_STREAM_DATA_BIDI_LOCAL => "initial_max_stream_data_bidi_local",
        INITIAL_MAX_STREAM_DATA_BIDI_REMOTE => "initial_max_stream_data_bidi_remote",
        INITIAL_MAX_STREAM_DATA_UNI => "initial_max_stream_data_uni",
        INITIAL_MAX_STREAMS_BIDI => "initial_max_streams_bidi",
        INITIAL_MAX_STREAMS_UNI => "initial_max_streams_uni",
        ACK_DELAY_EXPONENT => "ack_delay_exponent",
        MAX_ACK_DELAY => "max_ack_delay",
        DISABLE_ACTIVE_MIGRATION => "disable_active_migration",
        PREFERRED_ADDRESS => "preferred_address",
        ACTIVE_CONNECTION_ID_LIMIT => "active_connection_id_limit",
        INITIAL_SCID => "initial_source_connection_id",
        RETRY_SCID => "retry_source_connection_id",
        MIN_ACK_DELAY => "min_ack_delay",
        GREASE_QUIC_BIT => "grease_quic_bit",
        RESET_STREAM_AT | RESET_STREAM_AT_BEFORE => "reset_stream_at",
        MAX_DATAGRAM_FRAME_SIZE => "max_datagram_frame_size",
        VERSION_INFORMATION => "version_information",
        POST_QUANTUM_COMMITMENT => "post_quantum_commitment",
        _ => return Cow::Owned(format!("transport parameter {id:#x}")),
    })
}
