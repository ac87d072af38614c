//! A look at the peer's frames before `h3` sees them.
//!
//! `h3` collects every frame but DATA as a whole, however long it says it is, and ignores
//! PRIORITY_UPDATE. So frames are followed here, without copying the stream.

use std::fmt;

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Type of DATA frames (RFC 9114 §7.2.1).
const DATA: u64 = 0;
/// Type of the signal that the rest of a stream belongs to a WebTransport session.
const WEBTRANSPORT: u64 = 0x41;
/// Type of PRIORITY_UPDATE frames for requests (RFC 9218 §7.1).
const PRIORITY_UPDATE: u64 = 0xf_0700;
/// Type of the control stream (RFC 9114 §6.2.1).
const CONTROL: u64 = 0;
/// Longest priority field that is read, in bytes.
const LONGEST_PRIORITY: u64 = 256;

/// Error: a frame is longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong {
    pub(crate) len: u64,
    pub(crate) limit: u64,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { len, limit } = self;
        write!(f, "a frame of {len} bytes, where {limit} are allowed")
    }
}

impl std::error::Error for TooLong {}

/// A PRIORITY_UPDATE frame (RFC 9218 §7.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PriorityUpdate {
    /// Stream of the request.
    pub(crate) stream: u64,
    /// The priority field.
    pub(crate) field: Bytes,
}

/// Position in the frames of a stream.
#[derive(Debug)]
pub(crate) struct Frames {
    at: At,
    limit: u64,
    /// First bytes of an integer that is not whole yet.
    integer: [u8; 8],
    have: usize,
}

#[derive(Debug)]
enum At {
    /// The type of a unidirectional stream.
    StreamType,
    /// The type of a frame.
    Type,
    /// The length of a frame of this type.
    Length(u64),
    /// The payload of a frame, with so many bytes left.
    Payload(u64),
    /// The payload of a PRIORITY_UPDATE frame.
    Priority { left: u64, payload: BytesMut },
    /// Bytes that are no frames.
    Raw,
}

impl Frames {
    /// Returns the position at the start of a bidirectional stream.
    pub(crate) fn of_bidi(limit: u64) -> Self {
        Self::at(At::Type, limit)
    }

    /// Returns the position at the start of a unidirectional stream.
    pub(crate) fn of_uni(limit: u64) -> Self {
        Self::at(At::StreamType, limit)
    }

    fn at(at: At, limit: u64) -> Self {
        Self {
            at,
            limit,
            integer: [0; 8],
            have: 0,
        }
    }

    /// Follows the next bytes of the stream. Calls `update` for each whole PRIORITY_UPDATE frame.
    ///
    /// # Errors
    /// A frame other than DATA is longer than the limit.
    pub(crate) fn follow(
        &mut self,
        mut data: &[u8],
        mut update: impl FnMut(PriorityUpdate),
    ) -> Result<(), TooLong> {
        while !data.is_empty() {
            match &mut self.at {
                At::Raw => return Ok(()),
                At::Payload(left) => {
                    let passed = (*left).min(data.len() as u64);
                    data.advance(passed as usize);
                    *left -= passed;
                    if *left == 0 {
                        self.at = At::Type;
                    }
                }
                At::Priority { left, payload } => {
                    let passed = (*left).min(data.len() as u64);
                    payload.put(data.copy_to_bytes(passed as usize));
                    *left -= passed;
                    if *left == 0 {
                        if let Some(frame) = read_update(payload) {
                            update(frame);
                        }
                        self.at = At::Type;
                    }
                }
                At::StreamType | At::Type | At::Length(_) => {
                    let Some(value) = self.integer(&mut data) else {
                        return Ok(());
                    };
                    self.at = self.after(value)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the position after an integer.
    fn after(&self, value: u64) -> Result<At, TooLong> {
        Ok(match self.at {
            At::StreamType if value == CONTROL => At::Type,
            At::Type if value == WEBTRANSPORT => At::Raw,
            At::Type => At::Length(value),
            At::Length(kind) if kind != DATA && value > self.limit => {
                return Err(TooLong {
                    len: value,
                    limit: self.limit,
                });
            }
            At::Length(_) if value == 0 => At::Type,
            At::Length(PRIORITY_UPDATE) if value <= LONGEST_PRIORITY => At::Priority {
                left: value,
                payload: BytesMut::with_capacity(value as usize),
            },
            At::Length(_) => At::Payload(value),
            At::StreamType | At::Payload(_) | At::Priority { .. } | At::Raw => At::Raw,
        })
    }

    /// Reads a variable-length integer (RFC 9000 §16), which may come in parts.
    fn integer(&mut self, data: &mut &[u8]) -> Option<u64> {
        while data.has_remaining() {
            if let Some(byte) = self.integer.get_mut(self.have) {
                *byte = data.get_u8();
            }
            self.have += 1;
            let mut so_far = self.integer.get(..self.have).unwrap_or_default();
            if let Some(value) = read_integer(&mut so_far) {
                self.have = 0;
                return Some(value);
            }
        }
        None
    }
}

/// Reads a variable-length integer (RFC 9000 §16) if it is whole.
pub(crate) fn read_integer(data: &mut &[u8]) -> Option<u64> {
    let first = *data.first()?;
    let bytes = data.get(..1 << (first >> 6))?;
    let value = bytes
        .iter()
        .skip(1)
        .fold(u64::from(first & 0x3f), |value, byte| {
            value << 8 | u64::from(*byte)
        });
    data.advance(bytes.len());
    Some(value)
}

fn read_update(mut payload: &[u8]) -> Option<PriorityUpdate> {
    let stream = read_integer(&mut payload)?;
    Some(PriorityUpdate {
        stream,
        field: Bytes::copy_from_slice(payload),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows a stream in pieces of a size. Returns the updates.
    fn follow(frames: &mut Frames, stream: &[u8], size: usize) -> Result<usize, TooLong> {
        let mut updates = 0;
        for piece in stream.chunks(size) {
            frames.follow(piece, |update| {
                assert_eq!(update.stream, 4);
                assert_eq!(update.field, "u=1");
                updates += 1;
            })?;
        }
        Ok(updates)
    }

    /// HEADERS, two DATA frames of which one is long, an unknown frame, an empty one.
    fn request() -> Vec<u8> {
        let mut stream = vec![1, 3, 7, 7, 7, 0, 0x41, 0];
        stream.resize(stream.len() + 0x100, 9);
        stream.extend([0, 0, 0x21, 2, 1, 1, 0x40, 0x21, 0]);
        stream
    }

    #[test]
    fn frames_are_followed_in_pieces_of_any_size() {
        for size in 1..300 {
            let mut frames = Frames::of_bidi(3);
            assert_eq!(follow(&mut frames, &request(), size), Ok(0));
            // HEADERS of 4 bytes come next, one more than allowed.
            let error = TooLong { len: 4, limit: 3 };
            assert_eq!(follow(&mut frames, &[1, 4], size), Err(error), "{size}");
        }
    }

    #[test]
    fn priority_updates_are_read_on_the_control_stream() {
        // SETTINGS, PRIORITY_UPDATE, one of a push (ignored), PRIORITY_UPDATE.
        let update = [0x80, 0xf, 7, 0, 4, 4, b'u', b'=', b'1'];
        let push = [0x80, 0xf, 7, 1, 1, 0];
        let stream = [&[0, 4, 0][..], &update, &push, &update].concat();
        for size in 1..stream.len() {
            assert_eq!(follow(&mut Frames::of_uni(100), &stream, size), Ok(2));
        }
    }

    #[test]
    fn other_streams_have_no_frames() {
        for kind in [2, 3, 0x54] {
            let mut stream = vec![0x40, kind];
            stream.extend([0xff; 100]);
            assert_eq!(follow(&mut Frames::of_uni(5), &stream, 7), Ok(0));
        }
        let mut session = vec![0x40, 0x41, 0];
        session.extend([0xff; 100]);
        assert_eq!(follow(&mut Frames::of_bidi(5), &session, 7), Ok(0));
    }

    #[test]
    fn integers_are_read_as_in_rfc_9000() {
        let values: [(&[u8], u64); 4] = [
            (&[0x25], 37),
            (&[0x7b, 0xbd], 15_293),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
                151_288_809_941_952_652,
            ),
        ];
        for (mut bytes, value) in values {
            assert_eq!(read_integer(&mut bytes), Some(value));
            assert!(bytes.is_empty());
        }
    }
}
