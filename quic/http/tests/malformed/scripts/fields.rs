//! Field sections that break a rule of RFC 9114 §4.2 or §4.3, or that cannot be decoded.

use crate::cases::{
    Case, DECOMPRESSION_FAILED, End,
    Expected::{Connection as Closes, Stream as Resets},
    MESSAGE_ERROR, On,
    On::{Bidi, Uni},
};

/// A section of a request: `:method: POST`, `:scheme: https`, `:path: /`, `:authority: a`, and more.
struct Section {
    name: &'static str,
    /// The section is that of the trailers, behind such a request.
    in_trailers: bool,
    lines: &'static [u8],
    is_decoded: bool,
}

const fn head(name: &'static str, lines: &'static [u8]) -> Section {
    Section {
        name,
        in_trailers: false,
        lines,
        is_decoded: true,
    }
}

const fn trailers(name: &'static str, lines: &'static [u8]) -> Section {
    Section {
        in_trailers: true,
        ..head(name, lines)
    }
}

const fn coded(name: &'static str, lines: &'static [u8]) -> Section {
    Section {
        is_decoded: false,
        ..head(name, lines)
    }
}

const SECTIONS: &[Section] = &[
    head(":authority twice (§4.3)", &[0x50, 1, b'b']),
    head("an unknown pseudo-header (§4.3)", &[0x22, b':', b'x', 0]),
    head("connection (§4.2)", b"\x27\x03connection\x05close"),
    head("keep-alive (§4.2)", b"\x27\x03keep-alive\x011"),
    head(
        "proxy-connection (§4.2)",
        b"\x27\x09proxy-connection\x05close",
    ),
    head(
        "transfer-encoding (§4.2)",
        b"\x27\x0atransfer-encoding\x07chunked",
    ),
    head("upgrade (§4.2)", b"\x27\x00upgrade\x03h2c"),
    head("a host with userinfo (§4.3.1)", b"\x24host\x03u@a"),
    trailers("a pseudo-header in trailers (§4.3)", &[0xd1]),
    trailers(":status in trailers (§4.3)", &[0xd9]),
    trailers(
        "connection in trailers (§4.2)",
        b"\x27\x03connection\x05close",
    ),
    trailers("te in trailers (§4.2)", b"\x22te\x04gzip"),
    trailers("capitals in trailers (§4.2)", b"\x21X\x01y"),
    trailers("an empty name in trailers (§4.2)", b"\x20\x01y"),
    trailers("a line feed in trailers (§10.3)", b"\x21x\x01\n"),
    coded(
        "Huffman code with zeros for padding (RFC 7541 §5.2)",
        &[0x21, b'x', 0x81, 0x18],
    ),
    coded("a byte of padding (§5.2)", &[0x21, b'x', 0x82, 0x1f, 0xff]),
    coded("nothing but padding (§5.2)", &[0x21, b'x', 0x81, 0xff]),
    coded(
        "the code of the end (§5.2)",
        &[0x21, b'x', 0x85, 0x1f, 0xff, 0xff, 0xff, 0xff],
    ),
    coded(
        "the code of the end in a name (§5.2)",
        &[0x2d, 0x1f, 0xff, 0xff, 0xff, 0xff, 0],
    ),
    Section {
        is_decoded: false,
        ..trailers(
            "the code of the end in trailers",
            &[0x21, b'x', 0x84, 0xff, 0xff, 0xff, 0xff],
        )
    },
];

const POST: [u8; 8] = [0, 0, 0xd4, 0xd7, 0xc1, 0x50, 1, b'a'];

/// `:authority` is another one than that of [`POST`].
const USERINFO: &[u8] = b"\x01\x0a\x00\x00\xd4\xd7\xc1\x50\x03u@a";

fn frame(start: &[u8], lines: &[u8]) -> Vec<u8> {
    let len = (start.len() + lines.len()) as u8;
    [&[1, len][..], start, lines].concat()
}

/// The cases, by name.
pub(crate) fn cases() -> Vec<Case> {
    let case = |name, bytes: Vec<u8>, expected| Case {
        name,
        // Lives as long as the test.
        streams: Box::leak(Box::<[(On, &'static [u8])]>::from([
            (Uni, &[0, 4, 0][..]),
            (Bidi, Vec::leak(bytes)),
        ])),
        end: End::Finish,
        expected,
    };
    let of = |section: &Section| {
        let bytes = if section.in_trailers {
            [frame(&POST, &[]), frame(&[0, 0], section.lines)].concat()
        } else {
            frame(&POST, section.lines)
        };
        let expected = if section.is_decoded {
            Resets(MESSAGE_ERROR)
        } else {
            Closes(DECOMPRESSION_FAILED)
        };
        case(section.name, bytes, expected)
    };
    let mut cases: Vec<_> = SECTIONS.iter().map(of).collect();
    let userinfo = "userinfo in :authority (§4.3.1)";
    cases.push(case(userinfo, USERINFO.to_vec(), Resets(MESSAGE_ERROR)));
    cases
}
