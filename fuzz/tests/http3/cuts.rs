//! Streams of a hostile peer, made of pieces that are mostly well formed.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::{Method, Request, Response};
use hybriq::{StreamId, tls::Side};
use hybriq_h3::{
    Config, Connection, Critical, Event, Head, Received, Receiver, Scope, Settings, Start, Uni,
    UniReceiver, Violation,
};

/// A piece: its stream, what it is, how it is cut, and bytes.
pub(crate) type Piece = (u8, u8, u8, Vec<u8>);

/// How pieces arrive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Whole,
    /// In parts of some bytes each, with the end of the stream behind them.
    Parts,
}

/// Largest field section, table and blocked streams of the victim.
const FIELDS: u64 = 2048;
const TABLE: u64 = 512;
const BLOCKED: u64 = 1;

/// What an end may hold: the table with its entries, buffers, and what it answers a piece.
const MEMORY: usize = 16 * 1024;

/// Streams with messages.
const MESSAGES: usize = 3;
/// The other streams, by their place in [`Victim::unis`].
const CONTROL: usize = 3;
const ENCODER: usize = 4;
const DECODER: usize = 5;
const OTHER: usize = 6;

const PLACES: [usize; 12] = [
    0, 0, 0, 0, 1, 1, 2, ENCODER, ENCODER, CONTROL, DECODER, OTHER,
];

/// What became of a stream.
#[derive(Debug, Default)]
struct Story {
    /// Heads, trailers and the like.
    parts: Vec<String>,
    content: Vec<u8>,
    end: Option<Result<(), Violation>>,
}

/// What an end made of all streams.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    stories: [Story; 7],
    events: Vec<String>,
    /// The violation for which the connection is closed.
    closed: Option<Violation>,
}

impl Outcome {
    /// Checks that two ways to cut the same bytes end in the same.
    pub(crate) fn check_same(&self, other: &Self) {
        assert_eq!(self.closed, other.closed, "{self:?}\n{other:?}");
        assert_eq!(self.events, other.events, "{self:?}\n{other:?}");
        for (one, two) in self.stories.iter().zip(&other.stories) {
            assert_eq!(one.parts, two.parts, "{self:?}\n{other:?}");
            assert_eq!(one.end, two.end, "{self:?}\n{other:?}");
            // A fault may be found before content in front of it is given.
            let is_whole = self.closed.is_none() && !matches!(one.end, Some(Err(_)));
            if is_whole {
                assert_eq!(one.content, two.content, "{self:?}\n{other:?}");
            } else {
                let (short, long) = if one.content.len() < two.content.len() {
                    (&one.content, &two.content)
                } else {
                    (&two.content, &one.content)
                };
                assert!(long.starts_with(short), "{self:?}\n{other:?}");
            }
        }
    }
}

/// An end of a connection.
pub(crate) struct Victim<H> {
    connection: Connection,
    messages: Vec<Receiver<H>>,
    unis: Vec<UniReceiver>,
    /// Streams that wait for entries.
    blocked: BTreeSet<usize>,
    begun: [bool; 7],
    finished: [bool; 7],
    outcome: Outcome,
}

/// Lines of field sections, good and bad.
const LINES: [&[u8]; 32] = [
    &[0xd1],
    &[0xd4],
    &[0xcf],
    &[0xd7],
    &[0xc1],
    &[0xd9],
    &[0xd8],
    &[0xc4],
    &[0x50, 1, b'a'],
    &[0x51, 2, b'/', b'a'],
    &[0x54, 1, b'5'],
    &[0x54, 1, b'9'],
    &[0x55, 1, b'c'],
    &[0x22, b't', b'e', 4, b'g', b'z', b'i', b'p'],
    &[0x21, b'x', 1, b'y'],
    &[0x21, b'X', 1, b'y'],
    &[0x21, b'x', 1, 0],
    &[0x20, 0],
    &[0x21, b'x', 0x82, 0xff, 0xff],
    &[0x29, 0x1f, 0],
    &[0x80],
    &[0x81],
    &[0x82],
    &[0x10],
    &[0x00, 1, b'z'],
    &[0x40, 1, b'z'],
    &[0x41, 0],
    &[0xff, 0x24],
    &[0x5f, 0x4d, 0],
    &[0x27, 0, b'u', b'p', b'g', b'r', b'a', b'd', b'e', 0],
    &[
        0x27, 2, b':', b'p', b'r', b'o', b't', b'o', b'c', b'o', b'l', 1, b'w',
    ],
    &[0x24, b'h', b'o', b's', b't', 1, b'a'],
];

/// Writes an integer of RFC 9000 §16, in more bytes than it needs if that is wanted.
fn integer(out: &mut Vec<u8>, value: usize, long: bool) {
    if value < 0x40 && !long {
        out.push(value as u8);
    } else {
        out.extend((value as u32 | 0x8000_0000).to_be_bytes());
    }
}

fn frame(kind: usize, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    integer(&mut out, kind, false);
    integer(&mut out, payload.len(), payload.len() % 2 == 1);
    out.extend_from_slice(payload);
    out
}

fn lines(prefix: &[u8], start: &[u8], choices: &[u8]) -> Vec<u8> {
    let chosen = choices
        .iter()
        .map(|choice| LINES[usize::from(*choice) % LINES.len()]);
    let all: Vec<_> = [prefix, start].into_iter().chain(chosen).collect();
    frame(1, &all.concat())
}

/// Returns the bytes of a piece of a message.
fn of_message(start: &[u8], what: u8, bytes: &[u8]) -> Vec<u8> {
    let first = bytes.first().copied().unwrap_or_default();
    match what % 16 {
        0..=2 => lines(&[0, 0], start, &[]),
        3 => lines(&[0, 0], start, bytes),
        4 => lines(&[0, 0], &[], bytes),
        // Entries up to some of the first.
        5 | 6 => lines(&[2 + first % 4, 0], start, &[20 + first % 8]),
        7 => lines(&[first, what], start, bytes),
        8 | 9 => frame(0, bytes),
        10 => frame(0x21, bytes),
        11 => frame(usize::from(first % 16), bytes),
        12 => [&frame(usize::from(first % 2), bytes)[..1], &[what], bytes].concat(),
        13 => bytes.to_vec(),
        14 => [0x40, 0x41, first].to_vec(),
        _ => [0x21, 0].repeat(70),
    }
}

/// Returns the bytes of a piece of another stream.
fn of_uni(place: usize, is_first: bool, what: u8, bytes: &[u8]) -> Vec<u8> {
    let first = bytes.first().copied().unwrap_or_default();
    let mut out = Vec::new();
    if is_first && place != OTHER {
        out.push([0, 2, 3][place - CONTROL]);
    }
    match (place, what % 8) {
        (CONTROL, _) if is_first => out.extend(frame(4, &[1, 0x3f, 7, first % 9])),
        (CONTROL, 0) => out.extend(frame(7, &[first % 64])),
        (CONTROL, 1) => out.extend(frame(0xd, &[first % 64])),
        (CONTROL, 2 | 3) => out.extend(frame(0xf_0700, bytes)),
        (CONTROL, 4) => out.extend(frame(0x21, bytes)),
        (CONTROL, 5) => out.extend(frame(usize::from(first % 16), bytes)),
        // A capacity; entries with names of their own, of the static table and of the dynamic one.
        (ENCODER, _) if is_first => out.extend([0x3f, 0xe1, 0x03]),
        (ENCODER, 0) => out.extend([0x3f, first % 128]),
        (ENCODER, 1 | 2) => {
            let value = bytes.get(..bytes.len().min(40)).unwrap_or_default();
            out.extend([0x41, b'n', value.len() as u8]);
            out.extend_from_slice(value);
        }
        (ENCODER, 3) => out.extend([0xc0 + first % 64, 1, b'v']),
        (ENCODER, 4) => out.extend([0x80 + first % 4, 0]),
        (ENCODER, 5) => out.push(first % 4),
        _ => out.extend_from_slice(bytes),
    }
    out
}

fn settings(choice: u8) -> Settings {
    let mut settings = Settings::new();
    settings.max_field_section_size = Some(FIELDS);
    settings.qpack_max_table_capacity = TABLE;
    settings.qpack_blocked_streams = BLOCKED;
    if choice & 4 == 0 {
        // SETTINGS_WT_ENABLED of draft 02.
        settings.others.push((0x2b60_3742, 1));
    }
    settings
}

impl Victim<Request<()>> {
    pub(crate) fn server(choice: u8) -> Self {
        Self::new(Side::Server, choice, Receiver::request)
    }
}

impl Victim<Response<()>> {
    pub(crate) fn client(choice: u8) -> Self {
        let method = [Method::GET, Method::HEAD, Method::CONNECT, Method::POST];
        let method = &method[usize::from(choice >> 3) % 4];
        Self::new(Side::Client, choice, |id| Receiver::response(id, method))
    }
}

impl<H: Head + std::fmt::Debug> Victim<H> {
    fn new(side: Side, choice: u8, receiver: impl Fn(StreamId) -> Receiver<H>) -> Self {
        let messages = (0..MESSAGES).map(|index| receiver(StreamId(4 * index as u64)));
        Self {
            connection: Connection::new(side, Config::new(settings(choice))),
            messages: messages.collect(),
            unis: (0..7).map(|_| UniReceiver::new()).collect(),
            blocked: BTreeSet::new(),
            begun: [false; 7],
            finished: [false; 7],
            outcome: Outcome::default(),
        }
    }

    /// Plays pieces until the connection is closed.
    pub(crate) fn play(mut self, pieces: &[Piece], cut: Cut) -> Outcome {
        let is_server = self.connection.side() == Side::Server;
        let start: &[u8] = if is_server {
            &[0xd4, 0xd7, 0xc1, 0x50, 1, b'a']
        } else {
            &[0xd9]
        };
        for (stream, what, parts, bytes) in pieces {
            let place = PLACES[usize::from(*stream) % PLACES.len()];
            if self.finished[place] || self.outcome.stories[place].end.is_some() {
                continue;
            }
            let is_first = !std::mem::replace(&mut self.begun[place], true);
            let data = if place < MESSAGES {
                of_message(start, *what, bytes)
            } else {
                of_uni(place, is_first, *what, bytes)
            };
            let is_last = *what >= 0xe0;
            self.finished[place] = is_last;
            let size = match cut {
                Cut::Whole => data.len().max(1),
                Cut::Parts => 1 + usize::from(*parts % 8),
            };
            if let Err(violation) = self.deliver(place, &data, size, is_last, cut) {
                self.outcome.closed = Some(violation);
                break;
            }
        }
        self.outcome
    }

    fn deliver(
        &mut self,
        place: usize,
        data: &[u8],
        size: usize,
        is_last: bool,
        cut: Cut,
    ) -> Result<(), Violation> {
        let mut parts = data.chunks(size).peekable();
        if place < MESSAGES {
            while let Some(part) = parts.next() {
                self.messages[place].on_data(Bytes::copy_from_slice(part));
                // The end comes with the last data, or behind it.
                if is_last && cut == Cut::Whole && parts.peek().is_none() {
                    self.messages[place].on_fin();
                }
                self.read(place, cut)?;
            }
            if is_last {
                self.messages[place].on_fin();
                self.read(place, cut)?;
            }
        } else {
            for part in parts {
                self.read_uni(place, part)?;
            }
            if is_last {
                self.unis[place].on_end()?;
            }
        }
        self.turn(cut)
    }

    /// Does what a driver does when nothing more has arrived.
    fn turn(&mut self, cut: Cut) -> Result<(), Violation> {
        let mut unblocked = Vec::new();
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Unblocked(id) => unblocked.push(id.0 as usize / 4),
                event => self.outcome.events.push(format!("{event:?}")),
            }
        }
        unblocked.sort_unstable();
        for place in unblocked {
            assert!(self.blocked.remove(&place), "stream {place} did not wait");
            self.read(place, cut)?;
        }
        for stream in [Critical::Control, Critical::Encoder, Critical::Decoder] {
            self.connection.take_output(stream);
        }
        let memory = self.connection.memory();
        assert!(memory <= MEMORY, "the connection holds {memory} bytes");
        Ok(())
    }

    /// Reads a message as far as it has come. Faults of the stream end in its story.
    fn read(&mut self, place: usize, cut: Cut) -> Result<(), Violation> {
        if self.blocked.contains(&place) || self.outcome.stories[place].end.is_some() {
            return Ok(());
        }
        match self.read_message(place, cut) {
            Err(violation) if violation.scope() == Scope::Stream => {
                self.outcome.stories[place].end = Some(Err(violation));
                Ok(())
            }
            read => read,
        }
    }

    fn read_message(&mut self, place: usize, cut: Cut) -> Result<(), Violation> {
        let Self {
            connection,
            messages,
            blocked,
            outcome,
            ..
        } = self;
        let (message, story) = (&mut messages[place], &mut outcome.stories[place]);
        // A server looks for sessions before it reads; this changes nothing.
        if cut == Cut::Parts && connection.side() == Side::Server {
            match message.start(connection)? {
                None => return Ok(()),
                Some(Start::Session(id)) => {
                    story.parts.push(format!("session {}", id.0));
                    story.end = Some(Ok(()));
                    return Ok(());
                }
                Some(Start::Message) => {}
            }
        }
        loop {
            let is_end = message.is_end();
            let left = message.content_left();
            let received = message.poll(connection)?;
            assert!(!is_end || matches!(received, Received::End), "{received:?}");
            match received {
                Received::NeedData => {
                    assert!(message.held() as u64 <= FIELDS, "{} bytes", message.held());
                    return Ok(());
                }
                Received::Pause => {}
                Received::Blocked => {
                    blocked.insert(place);
                    return Ok(());
                }
                Received::Data(data) => {
                    assert!(!data.is_empty());
                    assert!(left.is_none_or(|left| data.len() as u64 <= left));
                    story.content.extend_from_slice(&data);
                }
                Received::Session(id) => {
                    story.parts.push(format!("session {}", id.0));
                    story.end = Some(Ok(()));
                    return Ok(());
                }
                Received::End => {
                    story.end = Some(Ok(()));
                    return Ok(());
                }
                received => story.parts.push(format!("{received:?}")),
            }
        }
    }

    fn read_uni(&mut self, place: usize, part: &[u8]) -> Result<(), Violation> {
        let story = &mut self.outcome.stories[place];
        if story.end.is_some() {
            return Ok(());
        }
        let data = Bytes::copy_from_slice(part);
        match self.unis[place].on_data(data, &mut self.connection)? {
            Uni::Ignored(violation) => story.end = Some(Err(violation)),
            Uni::Session(id, _) => {
                story.parts.push(format!("session {}", id.0));
                story.end = Some(Ok(()));
            }
            _ => {}
        }
        Ok(())
    }
}
