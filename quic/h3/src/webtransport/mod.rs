//! WebTransport over HTTP/3 without I/O (draft-ietf-webtrans-http3): capsules, codes, and what waits for sessions.

mod capsule;
mod code;
mod inbox;
mod waiting;

#[cfg(test)]
mod tests;

use hybriq_proto::{Direction, StreamId};

pub use capsule::{Capsule, Decoder, LONGEST_REASON};
pub use code::{from_wire, to_wire};
pub use inbox::{Inbox, OVERHEAD};
pub use waiting::{Bounds, Held, STREAM_OVERHEAD, Waiting};

use crate::wire::{
    frame::{WEBTRANSPORT_STREAM, uni},
    varint,
};

/// SETTINGS_ENABLE_WEBTRANSPORT of draft 02.
pub const ENABLE: u64 = 0x2b60_3742;

/// SETTINGS_WEBTRANSPORT_MAX_SESSIONS of drafts 07 to 12.
pub const MAX_SESSIONS: u64 = 0xc671_706a;

/// Returns the bytes at the start of a stream of a session (draft-ietf-webtrans-http3 §4.2 and §4.3).
pub fn stream_head(session: StreamId, direction: Direction) -> Vec<u8> {
    let mut head = Vec::with_capacity(10);
    let kind = match direction {
        Direction::Bidi => WEBTRANSPORT_STREAM,
        Direction::Uni => uni::WEBTRANSPORT,
    };
    varint::put(kind, &mut head);
    varint::put(session.0, &mut head);
    head
}
