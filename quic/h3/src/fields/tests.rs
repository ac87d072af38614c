use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use h3::{
    SharedState,
    connection::RequestStream,
    error::StreamError,
    frame::FrameStream,
    quic::{RecvStream, StreamErrorIncoming, StreamId},
    stream::BufRecvStream,
};
use http::HeaderMap;

use super::*;

fn well_formed(section: &[u8]) -> bool {
    inspect(section).is_ok()
}

/// `:method`, `:scheme`, `:path` from the static table, `:authority` with a value.
const GET: [u8; 8] = [0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a'];

fn with(lines: &[u8]) -> Vec<u8> {
    [&GET, lines].concat()
}

#[test]
fn requests_are_well_formed() {
    assert!(well_formed(&GET));
    // `accept: */*`, a literal name, a name with Huffman code.
    assert!(well_formed(&with(&[
        0xdd, 0x21, b'x', 1, b'y', 0x2a, 0x9d, 0x7f, 0
    ])));
    // `:protocol` as it is, and in Huffman code.
    let plain = [&[0x27, 2][..], b":protocol", &[0]].concat();
    assert!(well_formed(&with(&plain)));
    let huffman = [&[0x2f, 0][..], LITERALS[4].2, &[0]].concat();
    assert!(well_formed(&with(&huffman)));
    assert!(!well_formed(&with(&[&plain[..], &huffman].concat())));
}

#[test]
fn faults_are_found() {
    for (name, _, huffman) in LITERALS {
        if name != Pseudo::Protocol {
            let len = huffman.len() as u8;
            let line = if len < 7 {
                [&[0x28 | len][..], huffman, &[0]].concat()
            } else {
                [&[0x2f, len - 7][..], huffman, &[0]].concat()
            };
            assert!(!well_formed(&with(&line)), "twice");
        }
    }
    assert!(!well_formed(&with(&[0xd1])), "`:method` twice");
    assert!(!well_formed(&with(&[0xd9])), "`:status`");
    assert!(!well_formed(&with(&[0x22, b':', b'x', 0])), "unknown");
    assert!(!well_formed(&[0, 0, 0xdd, 0xd1]), "after a field");
}

/// Integers that are longer than they need to be are read all the same.
#[test]
fn a_long_prefix_hides_nothing() {
    let long = [[0x80; 8].as_slice(), &[0]].concat();
    let prefix = [&[0, 0x7f], &long[..]].concat();
    let get = [&prefix, &GET[2..]].concat();
    assert_eq!(inspect(&get).map(|findings| findings.count), Ok(4));
    let twice = [&get[..], &[0x50, 1, b'b']].concat();
    assert_eq!(inspect(&twice), Err(Fault::Malformed));
    let longer = [&[0, 0x7f, 0x80], &long[..], &GET[2..]].concat();
    assert_eq!(inspect(&longer), Err(Fault::Unreadable));
}

/// What cannot be read is a fault of the section, whatever comes before it.
#[test]
fn unreadable_sections_are_found() {
    for lines in [
        // Entry 99 of the static table, and as a name; the dynamic table; a string that is cut.
        &[0xff, 36][..],
        &[0x5f, 84, 0],
        &[0x80],
        &[0x10],
        &[0x40, 0],
        &[0x50, 2, b'a'],
        &[0x27],
    ] {
        let twice = with(&[&[0xd1], lines].concat());
        assert_eq!(inspect(&twice), Err(Fault::Unreadable), "{lines:x?}");
        assert_eq!(count(&twice), Err(Fault::Unreadable), "{lines:x?}");
    }
    assert_eq!(inspect(&with(&[0xff, 35])).map(|found| found.count), Ok(5));
    assert_eq!(count(&GET), Ok(4));
}

/// Whatever comes, there is an answer.
#[test]
fn any_bytes_are_read() {
    for first in 0..=255 {
        for second in 0..=255 {
            let _ = well_formed(&[0, 0, first, second, 0xff, 0xff, 0xff]);
            let _ = well_formed(&[first, second]);
        }
    }
}

/// A stream whose data has come as a whole.
struct Whole(Option<Bytes>);

impl RecvStream for Whole {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        Poll::Ready(Ok(self.0.take()))
    }

    fn stop_sending(&mut self, _: u64) {}

    fn recv_id(&self) -> StreamId {
        0_u64.try_into().expect("a stream")
    }
}

/// Verdict of `h3` on a section.
enum Verdict {
    /// It was read; these are its ordinary fields.
    Fields(HeaderMap),
    /// It was read, and a name or a value was not allowed.
    Malformed,
    /// It cannot be read.
    Unreadable,
}

/// Has `h3` decode a section, as that of trailers.
fn decode(section: &[u8]) -> Verdict {
    let mut frame = vec![1];
    frame.extend((section.len() as u32 | 0x8000_0000).to_be_bytes());
    frame.extend(section);
    let stream = FrameStream::<_, Bytes>::new(BufRecvStream::new(Whole(Some(frame.into()))));
    let state = Arc::new(SharedState::default());
    let mut stream = RequestStream::new(stream, u64::MAX, state, false);
    let mut cx = Context::from_waker(Waker::noop());
    match stream.poll_recv_trailers(&mut cx) {
        Poll::Ready(Ok(Some(fields))) => Verdict::Fields(fields),
        Poll::Ready(Err(StreamError::StreamError { .. })) => Verdict::Malformed,
        Poll::Ready(Err(StreamError::ConnectionError(error))) => {
            let error = format!("{error:?}");
            assert!(error.contains("QPACK_DECOMPRESSION_FAILED"), "{error}");
            Verdict::Unreadable
        }
        other => panic!("{:?}", other.map_ok(drop)),
    }
}

/// Numbers that a seed determines (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Writes an integer with a prefix, which is sometimes longer than it needs to be, or too long.
    fn integer(&mut self, flags: u8, bits: u32, value: u64, out: &mut Vec<u8>) {
        let most = (1_u64 << bits) - 1;
        if value < most {
            return out.push(flags | value as u8);
        }
        out.push(flags | most as u8);
        let mut rest = value - most;
        let longer = match self.below(4) {
            0 => self.below(11),
            _ => 0,
        };
        for _ in 0..longer {
            out.push(0x80 | (rest & 0x7f) as u8);
            rest >>= 7;
        }
        while rest >= 0x80 {
            out.push(0x80 | (rest & 0x7f) as u8);
            rest >>= 7;
        }
        out.push(rest as u8);
    }

    fn string(&mut self, flags: u8, bits: u32, data: &[u8], out: &mut Vec<u8>) {
        self.integer(flags, bits, data.len() as u64, out);
        out.extend(data);
    }

    /// Writes a field line.
    fn line(&mut self, out: &mut Vec<u8>) {
        let names: [&[u8]; 6] = [b":authority", b":path", b":x", b"accept", b"x", b"Bad"];
        let name = names[self.below(6) as usize];
        let long = vec![b'v'; self.below(300) as usize];
        match self.below(6) {
            0 => {
                let end = [99, 120][self.below(2) as usize];
                let index = self.below(end);
                self.integer(0xc0, 6, index, out);
            }
            1 | 2 => {
                let index = self.below(105);
                self.integer(0x50, 4, index, out);
                self.string(0, 7, &long, out);
            }
            3 | 4 => {
                self.string(0x20, 3, name, out);
                self.string(0, 7, &long, out);
            }
            _ => out.push(self.next() as u8),
        }
    }

    /// Returns a section without Huffman codes, unless a fault makes some.
    fn section(&mut self) -> Vec<u8> {
        let mut section = Vec::new();
        for bits in [8, 7] {
            let end = [1, 300][self.below(2) as usize];
            let value = self.below(end);
            self.integer(0, bits, value, &mut section);
        }
        for _ in 0..self.below(8) {
            self.line(&mut section);
        }
        if self.below(4) == 0 {
            let at = self.below(section.len() as u64) as usize;
            section[at] = self.next() as u8;
        }
        if self.below(8) == 0 {
            section.truncate(self.below(section.len() as u64 + 1) as usize);
        }
        section
    }
}

/// Names of a section as they are read here, and whether it has strings in Huffman code.
fn names(mut section: &[u8]) -> (Option<Vec<Name>>, bool) {
    let mut all = Vec::new();
    if read_prefix(&mut section).is_err() {
        return (None, false);
    }
    let mut huffman = false;
    while !section.is_empty() {
        let start = section;
        let name = line(&mut section);
        huffman |= has_huffman(start);
        match name {
            Some(name) => all.push(name),
            None => return (None, huffman),
        }
    }
    (Some(all), huffman)
}

/// Returns true if the first line has a string in Huffman code.
fn has_huffman(mut section: &[u8]) -> bool {
    let first = section[0];
    if first & 0x80 != 0 {
        return false;
    }
    let name = if first & 0x40 != 0 {
        let _ = integer(&mut section, 4);
        false
    } else {
        string(&mut section, 3).is_some() && first & 0x08 != 0
    };
    name || section.first().is_some_and(|first| first & 0x80 != 0)
}

/// Both parsers read the same sections, and find the same fields in them. Huffman codes are `h3`'s alone.
#[test]
fn both_parsers_agree() {
    const SEEDS: u64 = 30_000;
    let mut verdicts = [0_u32; 3];
    for seed in 0..SEEDS {
        let section = Numbers(seed).section();
        let (names, huffman) = names(&section);
        let told = format!("seed {seed}: {section:x?}");
        assert_eq!(count(&section).ok(), names.as_ref().map(Vec::len), "{told}");
        let inspected = inspect(&section);
        let unreadable = names.is_none();
        assert_eq!(inspected == Err(Fault::Unreadable), unreadable, "{told}");
        match decode(&section) {
            Verdict::Fields(fields) => {
                verdicts[0] += 1;
                let ordinary = |name: &&Name| matches!(name, Name::Ordinary);
                let names = names.unwrap_or_else(|| panic!("unreadable here: {told}"));
                assert_eq!(
                    names.iter().filter(ordinary).count(),
                    fields.len(),
                    "{told}"
                );
            }
            Verdict::Malformed => {
                verdicts[1] += 1;
                assert!(!unreadable, "{told}");
            }
            Verdict::Unreadable => {
                verdicts[2] += 1;
                assert!(unreadable || huffman, "readable here: {told}");
            }
        }
    }
    assert!(verdicts.iter().all(|count| *count > 500), "{verdicts:?}");
}

/// Whatever bytes come, what is read here is what `h3` reads.
#[test]
fn both_parsers_agree_on_any_bytes() {
    for seed in 0..30_000 {
        let mut numbers = Numbers(seed);
        let mut section = vec![0, 0];
        // Most first bits of lines, and long integers.
        for _ in 0..numbers.below(16) {
            let byte = numbers.next() as u8;
            section.push([byte, byte | 0x80, 0xff, 0x5f, byte & 0x7][numbers.below(5) as usize]);
        }
        let (names, huffman) = names(&section);
        let readable = !matches!(decode(&section), Verdict::Unreadable);
        let told = format!("seed {seed}: {section:x?}");
        assert!(names.is_some() || !readable, "unreadable here: {told}");
        assert!(
            readable || names.is_none() || huffman,
            "readable here: {told}"
        );
    }
}
