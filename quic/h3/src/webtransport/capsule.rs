//! Capsules (RFC 9297 §3.2) on the stream of a session's request.

use bytes::{Buf, BufMut, Bytes};
use hybriq_proto::Direction;

use crate::{
    error::Violation,
    wire::{capsule::Contents, frame::Head, varint},
};

/// Types of capsules (draft-ietf-webtrans-http3 §9.6).
const CLOSE_SESSION: u64 = 0x2843;
const DRAIN_SESSION: u64 = 0x78ae;
const MAX_DATA: u64 = 0x190b_4d3d;
const MAX_STREAM_DATA: u64 = 0x190b_4d3e;
const MAX_STREAMS_BIDI: u64 = 0x190b_4d3f;
const MAX_STREAMS_UNI: u64 = 0x190b_4d40;
const DATA_BLOCKED: u64 = 0x190b_4d41;
const STREAM_DATA_BLOCKED: u64 = 0x190b_4d42;
const STREAMS_BLOCKED_BIDI: u64 = 0x190b_4d43;
const STREAMS_BLOCKED_UNI: u64 = 0x190b_4d44;

/// Largest number of bytes of the reason with which a session is closed (draft-ietf-webtrans-http3 §6).
pub const LONGEST_REASON: usize = 1024;

/// Largest number of bytes of the content of a capsule that is read: that of WT_CLOSE_SESSION.
const LONGEST: usize = 4 + LONGEST_REASON;

/// A capsule that a session handles.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Capsule {
    /// WT_CLOSE_SESSION: the session is over.
    Close {
        /// Code of the application.
        code: u32,
        /// Reason, of at most [`LONGEST_REASON`] bytes.
        reason: String,
    },
    /// WT_DRAIN_SESSION: the session should end soon.
    Drain,
    /// WT_MAX_DATA: bytes that may be sent on all streams of the session together.
    MaxData(u64),
    /// WT_MAX_STREAMS: streams that may be opened since the beginning of the session.
    MaxStreams(Direction, u64),
    /// WT_DATA_BLOCKED: data waits at this limit.
    DataBlocked(u64),
    /// WT_STREAMS_BLOCKED: a stream waits at this limit.
    StreamsBlocked(Direction, u64),
    /// WT_MAX_STREAM_DATA or WT_STREAM_DATA_BLOCKED, which HTTP/3 does not have. Their content is not read, and
    /// nothing is written.
    OfStream,
}

/// Finds capsules in the bytes of a stream. Holds at most the content of the longest capsule that it knows; all
/// others are skipped without being held.
#[derive(Debug, Default)]
pub struct Decoder {
    contents: Contents,
}

impl Capsule {
    /// Creates a [`Capsule::Close`] with the first [`LONGEST_REASON`] bytes of a reason.
    pub fn close(code: u32, reason: &str) -> Self {
        let mut len = reason.len().min(LONGEST_REASON);
        while !reason.is_char_boundary(len) {
            len -= 1;
        }
        let reason = reason.get(..len).unwrap_or_default().to_owned();
        Self::Close { code, reason }
    }

    /// Appends the capsule.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Close { code, reason } => {
                let len = reason.len() as u64 + 4;
                Head {
                    kind: CLOSE_SESSION,
                    len,
                }
                .put(out);
                out.put_u32(*code);
                out.put_slice(reason.as_bytes());
            }
            Self::Drain => Head {
                kind: DRAIN_SESSION,
                len: 0,
            }
            .put(out),
            Self::MaxData(limit) => put_limit(MAX_DATA, *limit, out),
            Self::MaxStreams(direction, limit) => {
                put_limit(of(*direction, MAX_STREAMS_BIDI), *limit, out);
            }
            Self::DataBlocked(limit) => put_limit(DATA_BLOCKED, *limit, out),
            Self::StreamsBlocked(direction, limit) => {
                put_limit(of(*direction, STREAMS_BLOCKED_BIDI), *limit, out);
            }
            Self::OfStream => {}
        }
    }

    /// Reads the content of a capsule of a known type.
    fn read(kind: u64, mut content: &[u8]) -> Result<Self, Violation> {
        match kind {
            CLOSE_SESSION => {
                let code = content.try_get_u32();
                let code = code.map_err(|_| Violation::CapsuleLength)?;
                let reason = String::from_utf8_lossy(content).into_owned();
                Ok(Self::Close { code, reason })
            }
            DRAIN_SESSION => Ok(Self::Drain),
            MAX_STREAM_DATA | STREAM_DATA_BLOCKED => Ok(Self::OfStream),
            _ => {
                let limit = varint::read(&mut content).filter(|_| content.is_empty());
                let limit = limit.ok_or(Violation::CapsuleLength)?;
                Ok(match kind {
                    MAX_DATA => Self::MaxData(limit),
                    MAX_STREAMS_BIDI => Self::MaxStreams(Direction::Bidi, limit),
                    MAX_STREAMS_UNI => Self::MaxStreams(Direction::Uni, limit),
                    STREAMS_BLOCKED_BIDI => Self::StreamsBlocked(Direction::Bidi, limit),
                    STREAMS_BLOCKED_UNI => Self::StreamsBlocked(Direction::Uni, limit),
                    _ => Self::DataBlocked(limit),
                })
            }
        }
    }
}

/// Returns the type for a direction, given that for bidirectional streams.
const fn of(direction: Direction, bidi: u64) -> u64 {
    match direction {
        Direction::Bidi => bidi,
        Direction::Uni => bidi + 1,
    }
}

fn put_limit(kind: u64, limit: u64, out: &mut Vec<u8>) {
    let limit = limit.min(varint::MAX);
    let len = varint::len(limit) as u64;
    Head { kind, len }.put(out);
    varint::put(limit, out);
}

/// Returns the largest number of bytes of the content of a capsule; `None` if its type is not known.
const fn longest(kind: u64) -> Option<usize> {
    match kind {
        CLOSE_SESSION => Some(LONGEST),
        DRAIN_SESSION => Some(0),
        // One integer, or two.
        MAX_STREAM_DATA | STREAM_DATA_BLOCKED => Some(16),
        MAX_DATA..=STREAMS_BLOCKED_UNI => Some(8),
        _ => None,
    }
}

impl Decoder {
    /// Takes the next capsule off the front of the data; `None` once all of the data was taken and no complete capsule
    /// is left. Capsules of unknown types are skipped (RFC 9297 §3.2).
    ///
    /// # Errors
    /// The length of a capsule does not fit its content.
    pub fn next(&mut self, data: &mut Bytes) -> Result<Option<Capsule>, Violation> {
        let found = self
            .contents
            .next(data, longest, Violation::CapsuleLength)?;
        found
            .map(|(kind, content)| Capsule::read(kind, &content))
            .transpose()
    }

    /// Returns true between two capsules, where the stream may end.
    pub const fn is_between(&self) -> bool {
        self.contents.is_between()
    }

    /// Returns the bytes of memory that the beginning of a capsule takes.
    pub fn held(&self) -> usize {
        self.contents.held()
    }
}
