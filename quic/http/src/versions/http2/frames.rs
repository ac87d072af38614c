//! Finds the frames of one direction of a connection (RFC 9113 §4.1), whose bytes arrive in arbitrary parts.

/// Types of frames (RFC 9113 §6).
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const ACK: u8 = 0x1;
pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;

/// Length of the preface of a client (RFC 9113 §3.4).
const PREFACE: u32 = 24;

/// Length of a frame header.
pub(crate) const HEADER: usize = 9;

/// Most bytes of a payload that are read.
const START: usize = 4;

/// A frame, with the start of its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    flags: u8,
    pub(crate) stream: u32,
    len: u32,
    start: [u8; START],
}

impl Frame {
    fn parse(bytes: [u8; HEADER + START]) -> Self {
        let [high, middle, low, kind, flags, a, b, c, d, start @ ..] = bytes;
        Self {
            kind,
            flags,
            // The highest bit is reserved.
            stream: u32::from_be_bytes([a & 0x7f, b, c, d]),
            len: u32::from_be_bytes([0, high, middle, low]),
            start,
        }
    }

    /// Returns the number of bytes of the payload that must be known.
    fn needed(&self) -> usize {
        let needed: u32 = match self.kind {
            DATA if self.flags & PADDED != 0 => 1,
            PRIORITY | RST_STREAM | GOAWAY => START as u32,
            _ => 0,
        };
        needed.min(self.len) as usize
    }

    /// Returns true if this is the last frame that its sender sends on the stream.
    pub(crate) fn is_end_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }

    /// Returns the length of the payload.
    pub(crate) fn len(&self) -> u64 {
        self.len.into()
    }

    /// Returns the length of the data of a DATA frame, without padding.
    pub(crate) fn data_len(&self) -> u64 {
        let [padding, ..] = self.start;
        let less = match self.flags & PADDED {
            0 => 0,
            _ => 1 + u32::from(padding),
        };
        self.len.saturating_sub(less).into()
    }

    /// Returns the error code of a RST_STREAM frame.
    pub(crate) fn error_code(&self) -> u32 {
        u32::from_be_bytes(self.start)
    }

    /// Returns the last stream that a GOAWAY frame accepts.
    pub(crate) fn last_stream(&self) -> u32 {
        u32::from_be_bytes(self.start) & 0x7fff_ffff
    }

    /// Returns true for a PRIORITY frame that makes a stream depend on itself (RFC 7540 §5.3.1).
    pub(crate) fn depends_on_itself(&self) -> bool {
        // The highest bit is another flag.
        let dependency = u32::from_be_bytes(self.start) & 0x7fff_ffff;
        self.kind == PRIORITY && dependency == self.stream
    }

    /// Returns true for the answer to SETTINGS.
    pub(crate) fn is_settings_ack(&self) -> bool {
        self.kind == SETTINGS && self.flags & ACK != 0
    }

    fn is_of_field_block(&self) -> bool {
        matches!(self.kind, HEADERS | CONTINUATION)
    }
}

/// Position in the frames of one direction.
#[derive(Debug)]
pub(crate) struct Frames {
    /// Bytes to skip until the next frame.
    rest: u32,
    /// Start of the next frame.
    bytes: [u8; HEADER + START],
    have: usize,
    /// True if the bytes being skipped end a field block.
    ends_block: bool,
    is_in_block: bool,
    blocks: u64,
}

impl Frames {
    const fn new(rest: u32) -> Self {
        Self {
            rest,
            bytes: [0; HEADER + START],
            have: 0,
            ends_block: false,
            is_in_block: false,
            blocks: 0,
        }
    }

    /// Returns the position before the frames of a client.
    pub(crate) const fn of_client() -> Self {
        Self::new(PREFACE)
    }

    /// Returns the position before the frames of a server.
    pub(crate) const fn of_server() -> Self {
        Self::new(0)
    }

    /// Returns the number of the field block (RFC 9113 §4.3) that has begun but not ended.
    pub(crate) fn field_block(&self) -> Option<u64> {
        self.is_in_block.then_some(self.blocks)
    }

    /// Returns the number of bytes of the last frame that have not arrived.
    pub(crate) fn missing(&self) -> u64 {
        self.rest.into()
    }

    /// Returns the bytes of the next frame that have arrived, if they are too few to know it.
    pub(crate) fn partial(&self) -> &[u8] {
        self.bytes.get(..self.have).unwrap_or_default()
    }

    /// Skips bytes up to the next frame of which enough has arrived. Returns `None` if there is none; then all bytes
    /// were skipped.
    pub(crate) fn next_in(&mut self, bytes: &mut &[u8]) -> Option<Frame> {
        while !bytes.is_empty() {
            if self.rest > 0 {
                let len = bytes.len().min(self.rest as usize);
                self.rest -= len as u32;
                *bytes = bytes.get(len..).unwrap_or_default();
                self.end_block();
                continue;
            }
            let missing = self.needed() - self.have;
            let (part, behind) = bytes.split_at(missing.min(bytes.len()));
            let room = self.bytes.iter_mut().skip(self.have);
            for (to, from) in room.zip(part) {
                *to = *from;
            }
            self.have += part.len();
            *bytes = behind;
            // The header tells how much of the payload is needed.
            if self.have >= HEADER && self.have == self.needed() {
                return Some(self.next_frame());
            }
        }
        None
    }

    /// Returns the number of bytes of the next frame that must be known.
    fn needed(&self) -> usize {
        if self.have < HEADER {
            HEADER
        } else {
            HEADER + Frame::parse(self.bytes).needed()
        }
    }

    fn next_frame(&mut self) -> Frame {
        let frame = Frame::parse(self.bytes);
        self.rest = frame.len - frame.needed() as u32;
        self.bytes = [0; HEADER + START];
        self.have = 0;
        if frame.is_of_field_block() {
            self.blocks += u64::from(frame.kind == HEADERS);
            self.is_in_block = true;
            self.ends_block = frame.flags & END_HEADERS != 0;
            self.end_block();
        }
        frame
    }

    fn end_block(&mut self) {
        if self.rest == 0 && self.ends_block {
            self.is_in_block = false;
            self.ends_block = false;
        }
    }
}

/// Returns the bytes of a frame.
#[cfg(test)]
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, high, middle, low] = (payload.len() as u32).to_be_bytes();
    let mut out = vec![high, middle, low, kind, flags];
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the parts are in which frames come, each is found once. Payloads look like headers, and like 7
    /// bytes of padding.
    #[test]
    fn frames_are_found_in_any_parts() {
        let mut bytes = vec![b'P'; PREFACE as usize];
        bytes.extend(frame(SETTINGS, ACK, 0, &[]));
        bytes.extend(frame(DATA, 0, 1, &[7; 300]));
        bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, 3, &[0; 7]));
        for (flags, len) in [
            (END_STREAM, 0),
            (0, 1),
            (PADDED, 50),
            (PADDED, 7),
            (PADDED, 0),
        ] {
            bytes.extend(frame(DATA, flags, 1, &vec![7; len]));
        }
        bytes.extend(frame(RST_STREAM, 0, 0x8000_0005, &[0, 0, 0, 8]));
        bytes.extend(frame(GOAWAY, 0, 0, &[0, 0, 0, 9, 0, 0, 0, 0, 1, 1]));
        bytes.extend(frame(PRIORITY, 0, 9, &[0x80, 0, 0, 9, 0]));
        bytes.extend(frame(PRIORITY, 0, 9, &[0, 0, 0, 7, 0]));
        for size in 1..bytes.len() {
            let (mut frames, mut found) = (Frames::of_client(), Vec::new());
            for mut part in bytes.chunks(size) {
                while let Some(frame) = frames.next_in(&mut part) {
                    found.push(frame);
                }
            }
            let kinds: Vec<_> = found.iter().map(|frame| frame.kind).collect();
            assert_eq!(
                kinds,
                [4, 0, 1, 0, 0, 0, 0, 0, 3, 7, 2, 2],
                "in parts of {size}"
            );
            let data = found.iter().filter(|frame| frame.kind == DATA);
            let data: Vec<_> = data.map(Frame::data_len).collect();
            assert_eq!(data, [300, 0, 1, 42, 0, 0], "in parts of {size}");
            assert!(found[2].is_end_stream() && found[3].is_end_stream());
            assert_eq!((found[8].stream, found[8].error_code()), (5, 8));
            assert_eq!(found[9].last_stream(), 9);
            assert!(found[10].depends_on_itself() && !found[11].depends_on_itself());
            assert!(found[0].is_settings_ack());
        }
    }

    #[test]
    fn a_field_block_lasts_until_the_end_of_its_last_frame() {
        let mut frames = Frames::of_server();
        let mut step = |mut bytes: &[u8]| {
            while frames.next_in(&mut bytes).is_some() {}
            frames.field_block()
        };
        let whole = frame(HEADERS, END_HEADERS, 1, &[0; 3]);
        assert_eq!(step(&whole), None);
        assert_eq!(step(&whole[..11]), Some(2));
        assert_eq!(step(&whole[11..]), None);
        assert_eq!(step(&frame(HEADERS, 0, 3, &[0; 3])), Some(3));
        assert_eq!(step(&frame(CONTINUATION, 0, 3, &[])), Some(3));
        assert_eq!(step(&frame(CONTINUATION, END_HEADERS, 3, &[])), None);
        let two = [&whole[..], &whole[..9]].concat();
        assert_eq!(step(&two), Some(5));
    }
}
