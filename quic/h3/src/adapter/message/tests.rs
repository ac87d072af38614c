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

/// `:method`, `:scheme`, `:path` from the static table, `:authority` with a value.
const GET: [u8; 8] = [0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a'];

fn with(lines: &[u8]) -> Vec<u8> {
    [&GET, lines].concat()
}

/// Returns a field line of literals.
fn line(name: &str, value: &str) -> Vec<u8> {
    let mut line = Vec::new();
    let mut numbers = Numbers(1);
    numbers.string(0x20, 3, name.as_bytes(), &mut line);
    numbers.string(0, 7, value.as_bytes(), &mut line);
    line
}

/// Returns a field line whose strings are in Huffman code.
fn huffman(name: &str) -> Vec<u8> {
    let mut line = Vec::new();
    qpack::put_string(&mut line, 0x20, 3, name.as_bytes());
    assert_ne!(line[0] & 0x08, 0);
    line.push(0);
    line
}

fn is_malformed(section: &[u8], part: Part) -> bool {
    matches!(inspect(section, part), Err(Fault::Malformed(_)))
}

#[test]
fn requests_are_well_formed() {
    assert!(inspect(&GET, Part::Request).is_ok());
    // `accept: */*`, a literal name, a name with Huffman code.
    let lines = [0xdd, 0x21, b'x', 1, b'y', 0x2a, 0x9d, 0x7f, 0];
    let found = inspect(&with(&lines), Part::Request).unwrap();
    assert_eq!((found.count, found.protocol), (7, None));
    // `:protocol` as it is, and in Huffman code.
    let (plain, coded) = (line(":protocol", ""), huffman(":protocol"));
    for line in [&plain, &coded] {
        let found = inspect(&with(line), Part::Request).unwrap();
        assert_eq!(found.protocol, Some(GET.len() + 2));
    }
    assert!(is_malformed(&with(&[plain, coded].concat()), Part::Request));
}

#[test]
fn pseudo_header_fields_stand_once_before_all_others() {
    for name in OF_REQUESTS {
        let name = std::str::from_utf8(name).unwrap();
        let once = if name == ":protocol" { 2 } else { 1 };
        for line in [line(name, "a"), huffman(name)] {
            assert!(
                is_malformed(&with(&line.repeat(once)), Part::Request),
                "{name}"
            );
            let late = [&[0, 0, 0xdd][..], &line].concat();
            assert!(is_malformed(&late, Part::Request), "{name}");
            assert!(is_malformed(&[&[0, 0][..], &line].concat(), Part::Trailers));
            assert!(is_malformed(&[&[0, 0][..], &line].concat(), Part::Response));
        }
    }
    assert!(is_malformed(&with(&[0xd9]), Part::Request), "`:status`");
    assert!(
        is_malformed(&with(&line(":x", "")), Part::Request),
        "unknown"
    );
    assert!(
        is_malformed(&with(&line(":", "")), Part::Request),
        "unknown"
    );
    for part in [Part::Request, Part::Trailers] {
        assert!(is_malformed(&[0, 0, 0xd9], part), "`:status`");
    }
    assert!(inspect(&[0, 0, 0xd9], Part::Response).is_ok());
    assert!(is_malformed(&[0, 0, 0xd9, 0xd9], Part::Response));
    assert!(is_malformed(&[0, 0, 0xc2, 0xd9], Part::Response));
}

#[test]
fn fields_of_connections_are_malformed_everywhere() {
    let fields = [
        ("connection", "close"),
        ("keep-alive", "1"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "x"),
        ("te", "gzip"),
        ("te", "trailers, gzip"),
    ];
    for (part, start) in [
        (Part::Request, &GET[..]),
        (Part::Response, &[0, 0, 0xd9]),
        (Part::Trailers, &[0, 0]),
    ] {
        for (name, value) in fields {
            let section = [start, &line(name, value)].concat();
            assert!(is_malformed(&section, part), "{name} in {part:?}");
        }
        let section = [start, &line("te", "Trailers")].concat();
        assert!(inspect(&section, part).is_ok());
    }
}

#[test]
fn authorities_name_nobody_and_hosts_come_once() {
    let userinfo = [&[0, 0, 0xd1, 0xd7, 0xc1][..], &line(":authority", "u@a")].concat();
    assert!(is_malformed(&userinfo, Part::Request));
    assert!(is_malformed(&with(&line("host", "u@a")), Part::Request));
    let host = line("host", "a");
    assert!(inspect(&with(&host), Part::Request).is_ok());
    assert!(is_malformed(&with(&host.repeat(2)), Part::Request));
}

#[test]
fn characters_of_trailers_are_checked() {
    for (name, value) in [
        ("X", ""),
        ("", "x"),
        ("a b", ""),
        ("x", "\n"),
        ("x", "\0"),
        ("x", "\x7f"),
    ] {
        let section = [&[0, 0][..], &line(name, value)].concat();
        assert!(
            is_malformed(&section, Part::Trailers),
            "{name:?}: {value:?}"
        );
    }
    let fine = [&[0, 0][..], &line("x-a.1", "\tA\u{e9} z")].concat();
    assert!(inspect(&fine, Part::Trailers).is_ok());
}

#[test]
fn another_head_follows_an_interim_response() {
    // 103 and 100 from the static table, 200, 404.
    for (section, interim) in [
        (&[0, 0, 0xd8][..], true),
        (&[0, 0, 0xff, 0], true),
        (&[0, 0, 0xd9], false),
        (&[0, 0, 0xdb], false),
    ] {
        let found = inspect(section, Part::Response).unwrap();
        assert_eq!(found.interim, interim, "{section:x?}");
    }
}

/// RFC 7541 §5.2: padding is at most seven ones, and the code of the end is not sent.
#[test]
fn malformed_huffman_codes_are_unreadable() {
    for (coded, is_fine) in [
        (&[0x1f][..], true),
        (&[0x18], false),
        (&[0x1f, 0xff], false),
        (&[0x1f, 0xff, 0xff, 0xff, 0xff], false),
        (&[0xff], false),
        (&[0xff, 0xff, 0xff, 0xff], false),
    ] {
        let len = coded.len() as u8;
        let value = [&[0, 0, 0x21, b'x', 0x80 | len][..], coded].concat();
        let name = [&[0, 0, 0x28 | len][..], coded, &[0]].concat();
        for section in [value, name] {
            let read = inspect(&section, Part::Trailers);
            assert_eq!(read.is_ok(), is_fine, "{section:x?}");
            assert!(is_fine || matches!(read, Err(Fault::Unreadable(_))));
        }
    }
}

/// Integers that are longer than they need to be are read all the same.
#[test]
fn a_long_prefix_hides_nothing() {
    let long = [[0x80; 8].as_slice(), &[0]].concat();
    let prefix = [&[0, 0x7f], &long[..]].concat();
    let get = [&prefix, &GET[2..]].concat();
    let found = inspect(&get, Part::Request);
    assert_eq!(found.map(|findings| findings.count), Ok(4));
    let twice = [&get[..], &[0x50, 1, b'b']].concat();
    assert!(is_malformed(&twice, Part::Request));
    let longer = [&[0, 0x7f, 0x80], &long[..], &GET[2..]].concat();
    assert!(matches!(
        inspect(&longer, Part::Request),
        Err(Fault::Unreadable(_))
    ));
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
        for part in [Part::Request, Part::Response, Part::Trailers] {
            let read = inspect(&twice, part);
            assert!(matches!(read, Err(Fault::Unreadable(_))), "{lines:x?}");
        }
    }
    let found = inspect(&with(&[0xff, 35]), Part::Request);
    assert_eq!(found.map(|found| found.count), Ok(5));
}

/// Whatever comes, there is an answer.
#[test]
fn any_bytes_are_read() {
    for first in 0..=255 {
        for second in 0..=255 {
            let _ = inspect(&[0, 0, first, second, 0xff, 0xff, 0xff], Part::Request);
            let _ = inspect(&[first, second], Part::Trailers);
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

/// Number of ordinary fields of a section as it is read here; `None` if it cannot be.
fn ordinary(section: &[u8]) -> Option<usize> {
    let mut count = 0;
    let read = qpack::each(section, |field| {
        count += usize::from(field.name.first() != Some(&b':'));
    });
    read.is_ok().then_some(count)
}

/// Sections that both parsers read are the same to both. What is read here alone, `h3` refuses: it never reads more.
fn agree(sections: impl Fn(u64) -> Vec<u8>) -> [u32; 3] {
    const SEEDS: u64 = 30_000;
    let mut verdicts = [0_u32; 3];
    for seed in 0..SEEDS {
        let section = sections(seed);
        let here = ordinary(&section);
        let told = format!("seed {seed}: {section:x?}");
        match decode(&section) {
            Verdict::Fields(fields) => {
                verdicts[0] += 1;
                // `h3` takes Huffman codes that are malformed, and sections that refer to a dynamic table.
                let is_lax = section.contains(&0xff) || section[0] != 0 || section[1] & 0x80 != 0;
                assert!(here.is_some() || is_lax, "unreadable here: {told}");
                assert!(here.is_none_or(|count| count == fields.len()), "{told}");
            }
            Verdict::Malformed => verdicts[1] += 1,
            Verdict::Unreadable => {
                verdicts[2] += 1;
                assert_eq!(here, None, "readable here: {told}");
            }
        }
    }
    verdicts
}

/// Both parsers find the same fields.
#[test]
fn both_parsers_agree() {
    let verdicts = agree(|seed| Numbers(seed).section());
    assert!(verdicts.iter().all(|count| *count > 500), "{verdicts:?}");
}

/// Whatever bytes come, what is read here is what `h3` reads.
#[test]
fn both_parsers_agree_on_any_bytes() {
    agree(|seed| {
        let mut numbers = Numbers(seed);
        let mut section = vec![0, 0];
        // Most first bits of lines, and long integers.
        for _ in 0..numbers.below(16) {
            let byte = numbers.next() as u8;
            section.push([byte, byte | 0x80, 0xff, 0x5f, byte & 0x7][numbers.below(5) as usize]);
        }
        section
    });
}
