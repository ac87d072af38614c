//! Field sections and instructions (RFC 9204). The client's table has 4,096 bytes, and 16 streams may wait for it.

use http::Method;
use hybriq_h3::Code;

use super::{Line, Script, To};
use crate::scripts::{GOES_ON, Last, Outcome, SETTINGS, closes, frame};

const SECTION: Outcome = closes(Code::QPACK_DECOMPRESSION_FAILED);
const ENCODER: Outcome = closes(Code::QPACK_ENCODER_STREAM_ERROR);
const DECODER: Outcome = closes(Code::QPACK_DECODER_STREAM_ERROR);

/// Set Dynamic Table Capacity to 4,096.
const CAPACITY: [u8; 3] = [0x3f, 0xe1, 0x1f];

/// Insert with Literal Name: `x: y`.
const INSERT: [u8; 4] = [0x41, b'x', 1, b'y'];

/// Sections while the table is empty.
const EMPTY: &[Line<'_>] = &[
    ("a section without a prefix (RFC 9204 §4.5.1)", &[], SECTION),
    ("half a prefix (§4.5.1)", &[0], SECTION),
    (
        "a base before the first entry (§4.5.1.2)",
        &[0, 0x80, 0xd9],
        SECTION,
    ),
    ("a dynamic index (§2.2.3)", &[0, 0, 0xd9, 0x80], SECTION),
    (
        "a dynamic index behind the base (§2.2.3)",
        &[0, 0, 0xd9, 0x10],
        SECTION,
    ),
    ("a dynamic name (§2.2.3)", &[0, 0, 0xd9, 0x40, 0], SECTION),
    (
        "a static index that does not exist (§3.1)",
        &[0, 0, 0xd9, 0xff, 0x24],
        SECTION,
    ),
    (
        "a static index that is cut (§4.1.1)",
        &[0, 0, 0xd9, 0xff],
        SECTION,
    ),
    (
        "a name whose length lies (§4.1.2)",
        &[0, 0, 0xd9, 0x25, b'x'],
        SECTION,
    ),
    (
        "a value whose length lies (§4.1.2)",
        &[0, 0, 0xd9, 0x21, b'x', 9, b'y'],
        SECTION,
    ),
    (
        "Huffman code with zeros for padding (RFC 7541 §5.2)",
        &[0, 0, 0xd9, 0x21, b'x', 0x81, 0x18],
        SECTION,
    ),
    (
        "the code of the end (§5.2)",
        &[0, 0, 0xd9, 0x21, b'x', 0x84, 0xff, 0xff, 0xff, 0xff],
        SECTION,
    ),
    (
        "a required insert count beyond the range of the table (RFC 9204 §4.5.1.1)",
        &[0xff, 0x02, 0, 0xd9],
        SECTION,
    ),
    (
        "a required insert count of more than 62 bits (§4.1.1)",
        &[
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0xd9,
        ],
        SECTION,
    ),
];

/// Sections when the table has the entry `x: y`, and had one before that was evicted.
const EVICTED: &[Line<'_>] = &[
    (
        "an entry that is there (§4.5.2)",
        &[3, 0, 0xd9, 0x80],
        GOES_ON,
    ),
    (
        "an entry that was evicted (§2.2.3)",
        &[3, 0, 0xd9, 0x81],
        SECTION,
    ),
    (
        "an entry that never was (§2.2.3)",
        &[3, 0, 0xd9, 0x82],
        SECTION,
    ),
    (
        "a name that was evicted (§2.2.3)",
        &[3, 0, 0xd9, 0x41, 0],
        SECTION,
    ),
    (
        "an entry beyond the required insert count (§2.2.3)",
        &[2, 1, 0xd9, 0x80],
        SECTION,
    ),
    (
        "an entry behind the base, and the count (§2.2.3)",
        &[3, 0, 0xd9, 0x10],
        SECTION,
    ),
];

/// Encoder streams, behind their type.
const ENCODERS: &[Line<'_>] = &[
    (
        "a capacity beyond the limit (§4.3.1)",
        &[0x3f, 0xe2, 0x1f],
        ENCODER,
    ),
    (
        "a capacity of more than 62 bits (§4.1.1)",
        &[
            0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
        ],
        ENCODER,
    ),
    (
        "an entry before there is a capacity (§3.2.2)",
        &INSERT,
        ENCODER,
    ),
    (
        "an entry larger than the table (§3.2.2)",
        &[0x3f, 1, 0x41, b'x', 1, b'y'],
        ENCODER,
    ),
    (
        "a duplicate of nothing (§4.3.4)",
        &[0x3f, 0xe1, 0x1f, 0],
        ENCODER,
    ),
    (
        "a name of nothing (§4.3.2)",
        &[0x3f, 0xe1, 0x1f, 0x80, 0],
        ENCODER,
    ),
    (
        "a name of the static table that is not there (§4.3.2)",
        &[0x3f, 0xe1, 0x1f, 0xff, 0x24, 0],
        ENCODER,
    ),
    ("a capacity of 0 (§4.3.1)", &[0x20, 0x20], GOES_ON),
    ("half an instruction (§4.3)", &[0x3f], GOES_ON),
    (
        "entries that evict each other (§3.2.2)",
        &[
            0x3f, 3, 0x41, b'x', 1, b'y', 0, 0, 0x41, b'x', 1, b'z', 0x20,
        ],
        GOES_ON,
    ),
];

/// Decoder streams, behind their type.
const DECODERS: &[Line<'_>] = &[
    (
        "an acknowledgement of no section (§4.4.1)",
        &[0x80],
        DECODER,
    ),
    (
        "an acknowledgement of a stream that is not open (§4.4.1)",
        &[0xff, 0x80, 0x01],
        DECODER,
    ),
    ("an increment of 0 (§4.4.3)", &[0x00], DECODER),
    (
        "an increment beyond what was sent (§4.4.3)",
        &[0x3e],
        DECODER,
    ),
    (
        "an increment of more than 62 bits (§4.1.1)",
        &[
            0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
        ],
        DECODER,
    ),
    (
        "a cancellation of a stream without sections (§4.4.2)",
        &[0x40, 0x44],
        GOES_ON,
    ),
];

/// A server that sends these instructions before its answers, or behind them.
fn with_table(name: &str, streams: &[(To, &[u8])], outcome: Outcome) -> Script {
    let mut all = vec![(To::Uni, SETTINGS.to_vec())];
    all.extend(streams.iter().map(|(to, bytes)| (*to, bytes.to_vec())));
    let is_answered = all.last().is_some_and(|(to, _)| *to == To::Requests);
    let last = if is_answered {
        Last::Finished
    } else {
        Last::Open
    };
    Script::new(name, all, last, outcome)
}

pub(super) fn scripts() -> Vec<Script> {
    let empty = EMPTY
        .iter()
        .map(|(name, section, outcome)| Script::answer(name, &frame(1, section), *outcome));
    // A table with room for one of them.
    let evicting = [&[2, 0x3f, 3][..], &INSERT, &INSERT].concat();
    let evicted = EVICTED.iter().map(|(name, section, outcome)| {
        let answer = frame(1, section);
        let streams = [(To::Uni, &evicting[..]), (To::Requests, &answer)];
        with_table(name, &streams, *outcome).told(if *outcome == GOES_ON {
            "200 "
        } else {
            super::TOLD
        })
    });
    let uni = |kind: u8, (name, bytes, outcome): &Line<'_>| {
        let bytes = [&[kind], *bytes].concat();
        with_table(name, &[(To::Uni, &bytes)], *outcome)
    };
    let encoders = ENCODERS.iter().map(|line| uni(2, line));
    let decoders = DECODERS.iter().map(|line| uni(3, line));
    empty
        .chain(evicted)
        .chain(encoders)
        .chain(decoders)
        .chain(waiting())
        .collect()
}

/// Responses that wait for entries, and entries that grow by decoding.
fn waiting() -> Vec<Script> {
    let waiting = frame(1, &[2, 0, 0xd9, 0x80]);
    let entries = [&[2][..], &CAPACITY, &INSERT].concat();
    // An entry of 3,000 bytes, and a section that names it 30 times.
    let long = [
        &[2][..],
        &CAPACITY,
        &[0x41, b'x', 0x7f, 0xb9, 0x16],
        &[b'y'; 3000],
    ]
    .concat();
    let bomb = frame(1, &[&[2, 0, 0xd9][..], &[0x80; 30]].concat());
    let both = |streams: &[(To, &[u8])], name, outcome| with_table(name, streams, outcome);
    vec![
        both(
            &[(To::Requests, &waiting)],
            "more responses that wait than allowed (§2.1.2)",
            SECTION,
        )
        .asked(Method::POST, 17),
        Script {
            last: Last::Open,
            ..both(
                &[(To::Requests, &waiting), (To::Uni, &entries)],
                "as many responses that wait as allowed (§2.1.2)",
                GOES_ON,
            )
            .asked(Method::POST, 16)
            .told("200 ")
        },
        Script {
            last: Last::Reset,
            ..both(
                &[(To::Requests, &waiting)],
                "a response that waits, and is reset (§2.2.2.2)",
                GOES_ON,
            )
            .told("H3_REQUEST_CANCELLED")
        },
        both(
            &[(To::Uni, &long), (To::Requests, &bomb)],
            "a section that grows by decoding (RFC 9114 §4.2.2)",
            GOES_ON,
        )
        .told("the fields of the response are larger than 65536 bytes"),
    ]
}
