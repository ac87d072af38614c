//! Scripts of a client beyond [`CASES`](crate::cases::CASES): illegal ones, and legal ones that look so.

mod control;
mod fields;
mod frames;
mod messages;
mod qpack;

use hybriq_h3::Code;

use crate::cases::{Case, End, Expected, On};

/// What the server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It closes the connection, or resets the last stream. H3_MESSAGE_ERROR may be a status 400 as well.
    Fails(Expected),
    /// It serves the last stream, if it is a request, and continues.
    GoesOn,
    /// It does nothing any more, not even for requests behind the script.
    FallsSilent,
}

/// How the last stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    Open,
    Finished,
    Reset,
    /// It stays open, and a stream of the other end with this type is stopped.
    Stops(u8),
}

/// Streams in the order in which they are opened, with their bytes.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) name: String,
    pub(crate) streams: Vec<(On, Vec<u8>)>,
    pub(crate) last: Last,
    pub(crate) expected: Outcome,
}

impl From<&Case> for Script {
    fn from(case: &Case) -> Self {
        let streams = case.streams.iter();
        Self {
            name: case.name.to_owned(),
            streams: streams.map(|(on, bytes)| (*on, bytes.to_vec())).collect(),
            last: match case.end {
                End::Open => Last::Open,
                End::Finish => Last::Finished,
            },
            expected: Outcome::Fails(case.expected),
        }
    }
}

/// A line of a table: name, bytes, and what they lead to.
type Line<'l> = (&'l str, &'l [u8], Outcome);

pub(crate) const GOES_ON: Outcome = Outcome::GoesOn;

pub(crate) const fn closes(code: Code) -> Outcome {
    Outcome::Fails(Expected::Connection(code.0))
}

pub(crate) const fn resets(code: Code) -> Outcome {
    Outcome::Fails(Expected::Stream(code.0))
}

/// A control stream with empty SETTINGS.
pub(crate) const SETTINGS: [u8; 3] = [0, 4, 0];

/// A section without its prefix: `:method: POST`, `:scheme: https`, `:path: /echo`, `:authority: a`.
const POST: &[u8] = b"\xd4\xd7\x51\x05/echo\x50\x01a";

/// Returns a frame, with integers of one byte where they have room.
pub(crate) fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for value in [kind, payload.len() as u64] {
        if value < 0x40 {
            out.push(value as u8);
        } else {
            out.extend((value as u32 | 0x8000_0000).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
    out
}

/// Returns HEADERS of these field lines.
pub(crate) fn headers(lines: &[&[u8]]) -> Vec<u8> {
    frame(1, &[&[0, 0], &lines.concat()[..]].concat())
}

/// Returns a literal field line.
pub(crate) fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut line = Vec::new();
    if name.len() < 7 {
        line.push(0x20 | name.len() as u8);
    } else {
        line.extend([0x27, name.len() as u8 - 7]);
    }
    line.extend_from_slice(name);
    line.push(value.len() as u8);
    line.extend_from_slice(value);
    line
}

fn script(name: &str, streams: Vec<(On, Vec<u8>)>, last: Last, expected: Outcome) -> Script {
    Script {
        name: name.to_owned(),
        streams,
        last,
        expected,
    }
}

/// A request behind a control stream.
fn request(name: &str, bytes: Vec<u8>, expected: Outcome) -> Script {
    let streams = vec![(On::Uni, SETTINGS.to_vec()), (On::Bidi, bytes)];
    script(name, streams, Last::Finished, expected)
}

/// Returns all scripts, those of the cases first.
pub(crate) fn all() -> Vec<Script> {
    let cases = crate::cases::CASES.iter().map(Script::from);
    let more = [
        control::scripts(),
        frames::scripts(),
        messages::scripts(),
        fields::scripts(),
        qpack::scripts(),
    ];
    cases.chain(more.into_iter().flatten()).collect()
}
