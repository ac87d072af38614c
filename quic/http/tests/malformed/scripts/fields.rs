//! Field sections that break a rule of RFC 9114 §4.2 or §4.3, or that cannot be decoded.

use hybriq_h3::Code;

use super::{POST, Script, closes, headers, request, resets};

/// A section of a request: `:method: POST`, `:scheme: https`, `:path: /echo`, `:authority: a`, and more.
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

pub(super) fn scripts() -> Vec<Script> {
    let of = |section: &Section| {
        let bytes = if section.in_trailers {
            [headers(&[POST]), headers(&[section.lines])].concat()
        } else {
            headers(&[POST, section.lines])
        };
        let expected = if section.is_decoded {
            resets(Code::H3_MESSAGE_ERROR)
        } else {
            closes(Code::QPACK_DECOMPRESSION_FAILED)
        };
        request(section.name, bytes, expected)
    };
    let userinfo = headers(&[&[0xd4, 0xd7, 0xc1], b"\x50\x03u@a"]);
    let userinfo = request(
        "userinfo in :authority (§4.3.1)",
        userinfo,
        resets(Code::H3_MESSAGE_ERROR),
    );
    SECTIONS.iter().map(of).chain([userinfo]).collect()
}
