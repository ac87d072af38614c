//! Field sections and instructions that cannot be (RFC 9204). They are wrong whatever the capacity of the server's table.

use hybriq_h3::Code;

use super::{GOES_ON, Last, Line, Outcome, POST, SETTINGS, Script, closes, frame, request, script};
use crate::cases::On::Uni;

const SECTION: Outcome = closes(Code::QPACK_DECOMPRESSION_FAILED);
const ENCODER: Outcome = closes(Code::QPACK_ENCODER_STREAM_ERROR);
const DECODER: Outcome = closes(Code::QPACK_DECODER_STREAM_ERROR);

/// Whole sections.
const SECTIONS: &[Line<'_>] = &[
    ("a section without a prefix (RFC 9204 §4.5.1)", &[], SECTION),
    ("half a prefix (§4.5.1)", &[0], SECTION),
    (
        "a base before the first entry (§4.5.1.2)",
        &[0, 0x80, 0xd1],
        SECTION,
    ),
    (
        "a required insert count that wraps too far (§4.5.1.1)",
        &[0xff, 0xff, 0xff, 0xff, 0x07, 0],
        SECTION,
    ),
    (
        "a required insert count of more than 62 bits (§4.1.1)",
        &[
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0,
        ],
        SECTION,
    ),
];

/// Lines behind those of a POST.
const LINES: &[Line<'_>] = &[
    (
        "a name of the static table that does not exist (§3.1)",
        &[0x5f, 0x54, 0],
        SECTION,
    ),
    (
        "a static index of more than 62 bits (§4.1.1)",
        &[
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
        ],
        SECTION,
    ),
    ("a static index that is cut (§4.1.1)", &[0xff], SECTION),
    ("a dynamic name (§4.5.4)", &[0x40, 0], SECTION),
    ("a dynamic index behind the base (§4.5.3)", &[0x10], SECTION),
    (
        "a dynamic name behind the base (§4.5.5)",
        &[0x00, 0],
        SECTION,
    ),
    ("a name whose length lies (§4.1.2)", &[0x25, b'x'], SECTION),
    (
        "a value whose length lies (§4.1.2)",
        &[0x21, b'x', 9, b'y'],
        SECTION,
    ),
    ("a name without a value (§4.5.6)", &[0x21, b'x'], SECTION),
    (
        "an integer with zeros behind it (RFC 7541 §5.1)",
        &[0x5f, 0x90, 0x80, 0, 0],
        GOES_ON,
    ),
];

/// Encoder streams, behind their type.
const ENCODERS: &[Line<'_>] = &[
    (
        "a capacity of more than 62 bits (RFC 9204 §4.1.1)",
        &[
            0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
        ],
        ENCODER,
    ),
    ("a capacity of 0 (§4.3.1)", &[0x20, 0x20], GOES_ON),
    ("a duplicate of nothing (§4.3.4)", &[0x00], ENCODER),
    (
        "a name of an entry that is not there (§4.3.2)",
        &[0x80, 0],
        ENCODER,
    ),
    (
        "a name of the static table that is not there (§4.3.2)",
        &[0xff, 0x24, 0],
        ENCODER,
    ),
    (
        "an entry with its name in a table of no capacity (§3.2.2)",
        &[0x41, b'x', 1, b'y'],
        ENCODER,
    ),
    ("half an instruction (§4.3)", &[0x3f], GOES_ON),
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
    (
        "a cancellation of a stream without sections (§4.4.2)",
        &[0x40, 0x44],
        GOES_ON,
    ),
    (
        "an increment of more than 62 bits (§4.1.1)",
        &[
            0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f,
        ],
        DECODER,
    ),
    ("half an increment (§4.4.3)", &[0x3f], GOES_ON),
];

pub(super) fn scripts() -> Vec<Script> {
    let section =
        |(name, section, expected): &Line<'_>| request(name, frame(1, section), *expected);
    let sections = SECTIONS.iter().map(section);
    let lines = LINES.iter().map(|(name, line, expected)| {
        section(&(*name, &[&[0, 0], POST, line].concat(), *expected))
    });
    let uni = |kind: u8, (name, bytes, expected): &Line<'_>| {
        let streams = vec![
            (Uni, SETTINGS.to_vec()),
            (Uni, [&[kind], &bytes[..]].concat()),
        ];
        script(name, streams, Last::Open, *expected)
    };
    let encoders = ENCODERS.iter().map(|line| uni(2, line));
    let decoders = DECODERS.iter().map(|line| uni(3, line));
    sections
        .chain(lines)
        .chain(encoders)
        .chain(decoders)
        .collect()
}
