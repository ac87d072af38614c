//! The type of a frame, with a name for each type of RFC 9000 and of the extensions.

use std::fmt;

/// The type of a frame (RFC 9000 §19).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameType(pub u64);

macro_rules! frame_types {
    ($($name:ident = $value:literal, $text:literal, $doc:literal;)*) => {
        impl FrameType {
            $(#[doc = $doc] pub const $name: Self = Self($value);)*

            /// Returns the name that the specifications give the frame; `None` for an unknown type.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some($text),)*
                    _ if self.is_stream() => Some("STREAM"),
                    _ => None,
                }
            }
        }
    };
}

frame_types! {
    PADDING = 0x00, "PADDING", "PADDING (RFC 9000 §19.1).";
    PING = 0x01, "PING", "PING (RFC 9000 §19.2).";
    ACK = 0x02, "ACK", "ACK without ECN counts (RFC 9000 §19.3).";
    ACK_ECN = 0x03, "ACK", "ACK with ECN counts (RFC 9000 §19.3).";
    RESET_STREAM = 0x04, "RESET_STREAM", "`RESET_STREAM` (RFC 9000 §19.4).";
    STOP_SENDING = 0x05, "STOP_SENDING", "`STOP_SENDING` (RFC 9000 §19.5).";
    CRYPTO = 0x06, "CRYPTO", "CRYPTO (RFC 9000 §19.6).";
    NEW_TOKEN = 0x07, "NEW_TOKEN", "`NEW_TOKEN` (RFC 9000 §19.7).";
    STREAM = 0x08, "STREAM", "STREAM, the lowest of its eight types: the three bits below say which fields there are (RFC 9000 §19.8).";
    STREAM_LAST = 0x0f, "STREAM", "STREAM, the highest of its eight types.";
    MAX_DATA = 0x10, "MAX_DATA", "`MAX_DATA` (RFC 9000 §19.9).";
    MAX_STREAM_DATA = 0x11, "MAX_STREAM_DATA", "`MAX_STREAM_DATA` (RFC 9000 §19.10).";
    MAX_STREAMS_BIDI = 0x12, "MAX_STREAMS", "`MAX_STREAMS` for bidirectional streams (RFC 9000 §19.11).";
    MAX_STREAMS_UNI = 0x13, "MAX_STREAMS", "`MAX_STREAMS` for unidirectional streams (RFC 9000 §19.11).";
    DATA_BLOCKED = 0x14, "DATA_BLOCKED", "`DATA_BLOCKED` (RFC 9000 §19.12).";
    STREAM_DATA_BLOCKED = 0x15, "STREAM_DATA_BLOCKED", "`STREAM_DATA_BLOCKED` (RFC 9000 §19.13).";
    STREAMS_BLOCKED_BIDI = 0x16, "STREAMS_BLOCKED", "`STREAMS_BLOCKED` for bidirectional streams (RFC 9000 §19.14).";
    STREAMS_BLOCKED_UNI = 0x17, "STREAMS_BLOCKED", "`STREAMS_BLOCKED` for unidirectional streams (RFC 9000 §19.14).";
    NEW_CONNECTION_ID = 0x18, "NEW_CONNECTION_ID", "`NEW_CONNECTION_ID` (RFC 9000 §19.15).";
    RETIRE_CONNECTION_ID = 0x19, "RETIRE_CONNECTION_ID", "`RETIRE_CONNECTION_ID` (RFC 9000 §19.16).";
    PATH_CHALLENGE = 0x1a, "PATH_CHALLENGE", "`PATH_CHALLENGE` (RFC 9000 §19.17).";
    PATH_RESPONSE = 0x1b, "PATH_RESPONSE", "`PATH_RESPONSE` (RFC 9000 §19.18).";
    CONNECTION_CLOSE = 0x1c, "CONNECTION_CLOSE", "`CONNECTION_CLOSE` by the transport (RFC 9000 §19.19).";
    APPLICATION_CLOSE = 0x1d, "CONNECTION_CLOSE", "`CONNECTION_CLOSE` by the application (RFC 9000 §19.19).";
    HANDSHAKE_DONE = 0x1e, "HANDSHAKE_DONE", "`HANDSHAKE_DONE` (RFC 9000 §19.20).";
    IMMEDIATE_ACK = 0x1f, "IMMEDIATE_ACK", "`IMMEDIATE_ACK` (draft-ietf-quic-ack-frequency §5).";
    RESET_STREAM_AT = 0x24, "RESET_STREAM_AT", "`RESET_STREAM_AT` (draft-ietf-quic-reliable-stream-reset §4).";
    DATAGRAM = 0x30, "DATAGRAM", "DATAGRAM without a length (RFC 9221 §4).";
    DATAGRAM_LEN = 0x31, "DATAGRAM", "DATAGRAM with a length (RFC 9221 §4).";
    ACK_FREQUENCY = 0xaf, "ACK_FREQUENCY", "`ACK_FREQUENCY` (draft-ietf-quic-ack-frequency §4).";
}

impl FrameType {
    /// Returns true for the eight types of STREAM.
    pub const fn is_stream(self) -> bool {
        self.0 >= Self::STREAM.0 && self.0 <= Self::STREAM_LAST.0
    }
}

impl fmt::Display for FrameType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "frame of type {:#x}", self.0),
        }
    }
}

impl fmt::Debug for FrameType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({:#x})", self.0),
            None => write!(f, "{:#x}", self.0),
        }
    }
}
