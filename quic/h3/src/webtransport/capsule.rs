//! Capsules (RFC 9297 §3.2) on the stream of a session's request.

use bytes::{Buf, BufMut, Bytes};

use crate::{
    error::Violation,
    wire::frame::{Head, Partial},
};

/// Types of capsules (draft-ietf-webtrans-http3 §9.6).
const CLOSE_SESSION: u64 = 0x2843;
const DRAIN_SESSION: u64 = 0x78ae;

/// Largest number of bytes of the reason with which a session is closed (draft-ietf-webtrans-http3 §6).
pub const LONGEST_REASON: usize = 1024;

/// Largest number of bytes of the content of a capsule that is read: that of WT_CLOSE_SESSION.
const LONGEST: u64 = 4 + LONGEST_REASON as u64;

/// A capsule that a session takes notice of.
#[derive(Clone, Debug, PartialEq, Eq)]
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
}

/// Finds capsules in the bytes of a stream. Holds at most the content of the longest capsule that it knows; all
/// others are skipped without being held.
#[derive(Debug, Default)]
pub struct Decoder {
    begun: Partial,
    at: At,
    /// The beginning of a capsule's content.
    content: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
enum At {
    /// Type and length.
    #[default]
    Head,
    Content {
        kind: u64,
        left: usize,
    },
    Skipped(u64),
}

impl Capsule {
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
            _ if content.is_empty() => Ok(Self::Drain),
            _ => Err(Violation::CapsuleLength),
        }
    }
}

/// Returns the largest number of bytes of the content of a capsule; `None` if its type is not known.
const fn longest(kind: u64) -> Option<u64> {
    match kind {
        CLOSE_SESSION => Some(LONGEST),
        DRAIN_SESSION => Some(0),
        _ => None,
    }
}

impl Decoder {
    /// Takes the next capsule off the front of the data; `None` once no whole one is left, and all of the data was
    /// taken. Capsules of unknown types are skipped (RFC 9297 §3.2).
    ///
    /// # Errors
    /// The length of a capsule does not fit its content.
    pub fn next(&mut self, data: &mut Bytes) -> Result<Option<Capsule>, Violation> {
        loop {
            match self.at {
                At::Head => {
                    let Some(head) = self.begun.take(data, Head::read) else {
                        return Ok(None);
                    };
                    self.at = match longest(head.kind) {
                        Some(most) if head.len > most => return Err(Violation::CapsuleLength),
                        Some(_) => At::Content {
                            kind: head.kind,
                            left: head.len as usize,
                        },
                        None => At::Skipped(head.len),
                    };
                }
                At::Content { kind, left } => {
                    let part = data.split_to(left.min(data.len()));
                    if part.len() == left && self.content.is_empty() {
                        self.at = At::Head;
                        return Capsule::read(kind, &part).map(Some);
                    }
                    if part.is_empty() {
                        return Ok(None);
                    }
                    self.content.reserve_exact(left);
                    self.content.extend_from_slice(&part);
                    let left = left - part.len();
                    if left > 0 {
                        self.at = At::Content { kind, left };
                        return Ok(None);
                    }
                    self.at = At::Head;
                    let content = std::mem::take(&mut self.content);
                    return Capsule::read(kind, &content).map(Some);
                }
                At::Skipped(left) => {
                    let passed = left.min(data.len() as u64);
                    data.advance(passed as usize);
                    if passed < left {
                        self.at = At::Skipped(left - passed);
                        return Ok(None);
                    }
                    self.at = At::Head;
                }
            }
        }
    }

    /// Returns true between two capsules, where the stream may end.
    pub const fn is_between(&self) -> bool {
        matches!(self.at, At::Head) && !self.begun.is_begun()
    }

    /// Returns the bytes of memory that the beginning of a capsule takes.
    pub fn held(&self) -> usize {
        self.content.capacity()
    }
}
