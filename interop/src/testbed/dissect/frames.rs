//! Frames of a packet (RFC 9000 §19), as far as a verdict needs them.

use crate::witness::Cursor;

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::testbed) enum Frame {
    Padding,
    Ping,
    Ack {
        with_ecn: bool,
    },
    Crypto {
        offset: u64,
        data: Vec<u8>,
    },
    Stream {
        id: u64,
        offset: u64,
        len: usize,
        fin: bool,
        /// Data, on unidirectional streams.
        uni: Vec<u8>,
    },
    PathChallenge([u8; 8]),
    PathResponse([u8; 8]),
    NewConnectionId(Vec<u8>),
    Close {
        code: u64,
    },
    HandshakeDone,
    /// Another one, by its type.
    Other(u64),
}

/// Reads frames. Those behind an unknown one are left out.
pub(super) fn read(payload: &[u8]) -> Vec<Frame> {
    let mut cursor = Cursor::new(payload);
    let mut frames = Vec::new();
    while !cursor.rest().is_empty() {
        match frame(&mut cursor) {
            Some(Frame::Padding) if frames.last() == Some(&Frame::Padding) => {}
            Some(frame) => frames.push(frame),
            None => break,
        }
    }
    frames
}

fn frame(cursor: &mut Cursor<'_>) -> Option<Frame> {
    let kind = cursor.varint()?;
    let skip = |cursor: &mut Cursor<'_>, count: u64| -> Option<Frame> {
        for _ in 0..count {
            cursor.varint()?;
        }
        Some(Frame::Other(kind))
    };
    Some(match kind {
        0x00 => Frame::Padding,
        0x01 => Frame::Ping,
        0x02 | 0x03 => {
            skip(cursor, 2)?;
            let ranges = cursor.varint()?;
            skip(cursor, 1 + 2 * ranges + if kind == 3 { 3 } else { 0 })?;
            Frame::Ack {
                with_ecn: kind == 3,
            }
        }
        0x04 => skip(cursor, 3)?,
        0x06 => {
            let offset = cursor.varint()?;
            let data = sized(cursor)?.to_vec();
            Frame::Crypto { offset, data }
        }
        0x08..=0x0f => {
            let id = cursor.varint()?;
            let offset = if kind & 4 == 0 { 0 } else { cursor.varint()? };
            let data = if kind & 2 == 0 {
                let all = cursor.rest().len();
                cursor.take(all)?
            } else {
                sized(cursor)?
            };
            let is_uni = id & 2 != 0;
            Frame::Stream {
                id,
                offset,
                len: data.len(),
                fin: kind & 1 != 0,
                uni: if is_uni { data.to_vec() } else { Vec::new() },
            }
        }
        0x10 | 0x12 | 0x13 | 0x14 | 0x16 | 0x17 | 0x19 => skip(cursor, 1)?,
        0x05 | 0x11 | 0x15 => skip(cursor, 2)?,
        0x18 => {
            skip(cursor, 2)?;
            let id = cursor.prefixed8()?.to_vec();
            cursor.take(16)?;
            Frame::NewConnectionId(id)
        }
        0x1a => Frame::PathChallenge(cursor.take(8)?.try_into().ok()?),
        0x1b => Frame::PathResponse(cursor.take(8)?.try_into().ok()?),
        0x1c | 0x1d => {
            let code = cursor.varint()?;
            skip(cursor, u64::from(kind == 0x1c))?;
            sized(cursor)?;
            Frame::Close { code }
        }
        0x1e => Frame::HandshakeDone,
        0x1f => Frame::Other(kind),
        0x30 => {
            let all = cursor.rest().len();
            cursor.take(all)?;
            Frame::Other(kind)
        }
        0x07 | 0x31 => {
            sized(cursor)?;
            Frame::Other(kind)
        }
        // ACK_FREQUENCY.
        0xaf => skip(cursor, 4)?,
        _ => return None,
    })
}

fn sized<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let len = cursor.varint()?;
    cursor.take(usize::try_from(len).ok()?)
}
