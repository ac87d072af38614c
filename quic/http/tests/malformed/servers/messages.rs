//! Responses (RFC 9114 §4 and §7, RFC 9110 §15).

use http::Method;
use hybriq_h3::Code;

use super::{FINE, Line, Script};
use crate::scripts::{GOES_ON, Last, Outcome, closes, frame, headers, literal, resets};

/// `:status: 200` and other field lines of the static table (RFC 9204 appendix A).
const OK: &[u8] = &[0xd9];
const EARLY_HINTS: &[u8] = &[0xd8];
const CONTINUE: &[u8] = &[0xff, 0x00];
const NO_CONTENT: &[u8] = &[0xff, 0x01];
const NOT_MODIFIED: &[u8] = &[0xda];

/// DATA of one byte.
const DATA: &[u8] = b"\0\x01x";

/// HEADERS of trailers.
const TRAILERS: &[u8] = b"\x01\x06\0\0\x21x\x01y";

/// Heads that are malformed, without their prefix.
const HEADS: &[(&str, &[u8])] = &[
    ("a head without fields (§4.3.2)", &[]),
    ("a head without :status (§4.3.2)", b"\x21x\x01y"),
    ("a status twice (§4.3.2)", &[0xd9, 0xd9]),
    ("two statuses (§4.3.2)", &[0xd9, 0xda]),
    ("a status behind a field (§4.3)", b"\x21x\x01y\xd9"),
    ("a status of two digits (§4.3.2)", b"\x5f\x09\x0220"),
    ("a status of four digits (§4.3.2)", b"\x5f\x09\x042000"),
    ("a status below 100 (RFC 9110 §15)", b"\x5f\x09\x03099"),
    ("a status with a reason (§4.3.2)", b"\x5f\x09\x06200 OK"),
    ("an empty status (§4.3.2)", b"\x5f\x09\x00"),
    ("status 101 (RFC 9114 §4.5)", b"\x5f\x09\x03101"),
    (":path in a response (§4.3)", &[0xd9, 0xc1]),
    (":method in a response (§4.3)", &[0xd1, 0xd9]),
    ("an unknown pseudo-header field (§4.3)", b"\xd9\x22:x\x01y"),
    ("capitals in a name (§4.2)", b"\xd9\x21X\x01y"),
    ("an empty name (§4.2)", b"\xd9\x20\x01y"),
    ("a name with a space (§4.2)", b"\xd9\x23x y\x01y"),
    ("a name with a line feed (§10.3)", b"\xd9\x22x\n\x01y"),
    ("a value with a NUL (§10.3)", b"\xd9\x21x\x01\0"),
    ("a value with a carriage return (§10.3)", b"\xd9\x21x\x01\r"),
    ("a value with a line feed (§10.3)", b"\xd9\x21x\x01\n"),
    (
        "connection in a response (§4.2)",
        b"\xd9\x27\x03connection\x05close",
    ),
    (
        "keep-alive in a response (§4.2)",
        b"\xd9\x27\x03keep-alive\x01x",
    ),
    (
        "proxy-connection in a response (§4.2)",
        b"\xd9\x27\x09proxy-connection\x01x",
    ),
    ("upgrade in a response (§4.2)", b"\xd9\x27\0upgrade\x01x"),
    (
        "transfer-encoding in a response (§4.2)",
        b"\xd9\x27\x0atransfer-encoding\x07chunked",
    ),
    ("te in a response (§4.2)", b"\xd9\x22te\x04gzip"),
    (
        "an interim response with connection (§4.2)",
        b"\xd8\x27\x03connection\x05close",
    ),
];

/// Lengths that cannot be, with content of one byte.
const LENGTHS: &[(&str, &[&[u8]])] = &[
    ("a length that is too short (§4.1.2)", &[b"0"]),
    ("a length that is too long (§4.1.2)", &[b"2"]),
    ("a length with letters (RFC 9110 §8.6)", &[b"1x"]),
    ("an empty length (§8.6)", &[b""]),
    ("a negative length (§8.6)", &[b"-1"]),
    ("a length with a plus (§8.6)", &[b"+1"]),
    ("two lengths (§8.6)", &[b"1", b"2"]),
    ("a list of lengths (§8.6)", &[b"1, 1"]),
    (
        "a length of more than 64 bits (§8.6)",
        &[b"18446744073709551617"],
    ),
];

/// Streams from their beginning to their end.
const STREAMS: &[Line<'_>] = &[
    (
        "nothing (RFC 9114 §4.1)",
        &[],
        resets(Code::H3_MESSAGE_ERROR),
    ),
    (
        "nothing but a reserved frame (§4.1)",
        &[0x21, 0],
        resets(Code::H3_MESSAGE_ERROR),
    ),
    (
        "DATA before HEADERS (§4.1)",
        DATA,
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    ("half a type (§7.1)", &[0x40], closes(Code::H3_FRAME_ERROR)),
    (
        "HEADERS without a length (§7.1)",
        &[1],
        closes(Code::H3_FRAME_ERROR),
    ),
    (
        "HEADERS that are cut (§7.1)",
        &[1, 3, 0, 0],
        closes(Code::H3_FRAME_ERROR),
    ),
    (
        "PUSH_PROMISE before the head (§7.2.5)",
        &[5, 4, 0, 0, 0, 0xd1],
        closes(Code::H3_ID_ERROR),
    ),
];

/// Frames behind a head, up to the end.
const BEHIND: &[Line<'_>] = &[
    (
        "CANCEL_PUSH on a stream of a request (§7.2.3)",
        &[3, 1, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "SETTINGS on a stream of a request (§7.2.4)",
        &[4, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "PUSH_PROMISE (§7.2.5)",
        &[5, 4, 0, 0, 0, 0xd1],
        closes(Code::H3_ID_ERROR),
    ),
    (
        "GOAWAY on a stream of a request (§7.2.6)",
        &[7, 1, 4],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "MAX_PUSH_ID on a stream of a request (§7.2.7)",
        &[0xd, 1, 4],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "PRIORITY_UPDATE on a stream of a request (RFC 9218 §7.1)",
        &[0x80, 0xf, 7, 0, 1, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "PRIORITY of HTTP/2 on a stream of a request (RFC 9114 §7.2.8)",
        &[2, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "PING of HTTP/2 on a stream of a request (§7.2.8)",
        &[6, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "WINDOW_UPDATE of HTTP/2 on a stream of a request (§7.2.8)",
        &[8, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "CONTINUATION of HTTP/2 on a stream of a request (§7.2.8)",
        &[9, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "DATA that is cut (§7.1)",
        &[0, 2, b'x'],
        closes(Code::H3_FRAME_ERROR),
    ),
    (
        "DATA of the largest length (§7.1)",
        &[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, b'x'],
        closes(Code::H3_FRAME_ERROR),
    ),
    (
        "an unknown frame of the largest length (§7.1)",
        &[0x21, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, b'x'],
        closes(Code::H3_FRAME_ERROR),
    ),
    (
        "DATA without a length (§7.1)",
        &[0],
        closes(Code::H3_FRAME_ERROR),
    ),
    (
        "a final head behind the final head (§4.3)",
        &[1, 3, 0, 0, 0xd9],
        resets(Code::H3_MESSAGE_ERROR),
    ),
    (
        "an interim response behind the final head (§4.3)",
        &[1, 3, 0, 0, 0xd8],
        resets(Code::H3_MESSAGE_ERROR),
    ),
    (
        "trailers with :path (§4.3)",
        &[1, 3, 0, 0, 0xc1],
        resets(Code::H3_MESSAGE_ERROR),
    ),
    (
        "trailers with connection (§4.2)",
        b"\x01\x10\0\0\x27\x03connection\x01x",
        resets(Code::H3_MESSAGE_ERROR),
    ),
    (
        "trailers with capitals (§4.2)",
        b"\x01\x06\0\0\x21X\x01y",
        resets(Code::H3_MESSAGE_ERROR),
    ),
];

/// Frames behind trailers.
const AFTER_TRAILERS: &[Line<'_>] = &[
    (
        "DATA behind trailers (§4.1)",
        DATA,
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "trailers behind trailers (§4.1)",
        TRAILERS,
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "half a frame behind trailers (§7.1)",
        &[0x21],
        closes(Code::H3_FRAME_ERROR),
    ),
    (
        "a reserved frame behind trailers (§4.1)",
        &[0x21, 0],
        GOES_ON,
    ),
];

/// Returns the frames of a response.
fn response(status: &[u8], fields: &[u8], behind: &[u8]) -> Vec<u8> {
    [&headers(&[status, fields])[..], behind].concat()
}

/// Returns a field that announces a length.
fn length(length: &[u8]) -> Vec<u8> {
    literal(b"content-length", length)
}

/// Returns a section of 100 fields that count for 67,200 bytes.
fn large() -> Vec<u8> {
    literal(b"x", &[b'y'; 120]).repeat(440)
}

pub(super) fn scripts() -> Vec<Script> {
    const MESSAGE: Outcome = resets(Code::H3_MESSAGE_ERROR);
    let heads = HEADS
        .iter()
        .map(|(name, head)| Script::answer(name, &headers(&[head]), MESSAGE));
    let lengths = LENGTHS.iter().map(|(name, lengths)| {
        let fields: Vec<_> = lengths.iter().flat_map(|value| length(value)).collect();
        Script::answer(name, &response(OK, &fields, DATA), MESSAGE)
    });
    let whole = |(name, stream, expected): &Line<'_>| Script::answer(name, stream, *expected);
    let behind = |before: &[u8], (name, more, expected): &Line<'_>| {
        let bytes = [&response(OK, &[], before)[..], more].concat();
        Script::answer(name, &bytes, *expected).told(if *expected == GOES_ON {
            "200 "
        } else {
            super::TOLD
        })
    };
    let streams = STREAMS.iter().map(whole);
    let after_head = BEHIND.iter().map(|line| behind(&[], line));
    let after_trailers = AFTER_TRAILERS.iter().map(|line| behind(TRAILERS, line));
    heads
        .chain(lengths)
        .chain(streams)
        .chain(after_head)
        .chain(after_trailers)
        .chain(without_content())
        .chain(interim())
        .chain(large_sections())
        .chain(legal())
        .chain(ended())
        .collect()
}

/// Responses without content (RFC 9110 §6.4.1).
fn without_content() -> Vec<Script> {
    let head = Method::HEAD;
    let refused = |name, status, method: Method| {
        let script = Script::answer(
            name,
            &response(status, &[], DATA),
            resets(Code::H3_MESSAGE_ERROR),
        );
        script.asked(method, 1)
    };
    let fine = |name, status: &[u8], method: Method, told| {
        let bytes = response(status, &length(b"5"), &[]);
        let script = Script::answer(name, &bytes, GOES_ON);
        script.asked(method, 1).told(told)
    };
    vec![
        refused("content for HEAD (RFC 9110 §9.3.2)", OK, head.clone()),
        refused("content with 204 (§15.3.5)", NO_CONTENT, Method::POST),
        refused("content with 304 (§15.4.5)", NOT_MODIFIED, Method::POST),
        fine("a length for HEAD (§8.6)", OK, head, "200 "),
        fine(
            "a length with 304 (§8.6)",
            NOT_MODIFIED,
            Method::POST,
            "304 ",
        ),
        Script::answer(
            "no content for a length (RFC 9114 §4.1.2)",
            &response(OK, &length(b"5"), &[]),
            resets(Code::H3_MESSAGE_ERROR),
        ),
    ]
}

/// Interim responses (RFC 9110 §15.2).
fn interim() -> Vec<Script> {
    let hint = headers(&[EARLY_HINTS]);
    let behind = |more: &[u8]| [&hint[..], more].concat();
    let many = |count| [&hint.repeat(count)[..], FINE].concat();
    vec![
        Script::answer(
            "103 alone (RFC 9114 §4.1)",
            &hint,
            resets(Code::H3_MESSAGE_ERROR),
        ),
        Script::answer(
            "100 alone (§4.1)",
            &headers(&[CONTINUE]),
            resets(Code::H3_MESSAGE_ERROR),
        ),
        Script::answer(
            "DATA behind an interim response (§4.1)",
            &behind(DATA),
            closes(Code::H3_FRAME_UNEXPECTED),
        ),
        Script::answer(
            "a length in an interim response (RFC 9110 §8.6)",
            &[&headers(&[EARLY_HINTS, &length(b"5")])[..], FINE].concat(),
            GOES_ON,
        ),
        Script::answer("interim responses (§15.2)", &many(16), GOES_ON),
        Script::answer("too many interim responses (§15.2)", &many(17), GOES_ON)
            .told("more than 16 interim ones"),
    ]
}

/// Sections that are larger than the client takes, which are 64 KiB (RFC 9114 §4.2.2).
fn large_sections() -> Vec<Script> {
    const TOLD: &str = "the fields of the response are larger than 65536 bytes";
    let endless = [1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0];
    let trailers = frame(1, &[&[0, 0], &large()[..]].concat());
    vec![
        Script::answer(
            "a head of 67 KiB (RFC 9114 §4.2.2)",
            &response(OK, &large(), DATA),
            GOES_ON,
        )
        .told(TOLD),
        Script {
            last: Last::Open,
            ..Script::answer("a head of the largest length (§4.2.2)", &endless, GOES_ON).told(TOLD)
        },
        Script::answer(
            "trailers of 67 KiB (§4.2.2)",
            &response(OK, &[], &[DATA, &trailers].concat()),
            resets(Code::H3_EXCESSIVE_LOAD),
        ),
    ]
}

/// Responses that look wrong, and are not.
fn legal() -> Vec<Script> {
    let status = |status: &[u8]| [b"\x5f\x09\x03", status].concat();
    let fine = |name, bytes: Vec<u8>, told| Script::answer(name, &bytes, GOES_ON).told(told);
    let reserved = [0x21, 3, 1, 2, 3, 0x40, 0x40, 0];
    vec![
        fine("status 599 (RFC 9110 §15)", response(&status(b"599"), &[], DATA), "599 x"),
        fine("status 999 (§15)", response(&status(b"999"), &[], DATA), "999 x"),
        fine(
            "the same length twice (§8.6)",
            response(OK, &[length(b"1"), length(b"1")].concat(), DATA),
            "200 x",
        ),
        fine(
            "te: trailers in a response (RFC 9114 §4.2)",
            response(OK, b"\x22te\x08trailers", DATA),
            "200 x",
        ),
        fine(
            "reserved frames everywhere (§7.2.8)",
            [&reserved[..], &headers(&[OK]), &reserved, DATA, &reserved, TRAILERS, &reserved].concat(),
            "200 x",
        ),
        fine(
            "DATA without content (§7.2.1)",
            response(OK, &[], &[&[0, 0], DATA, &[0, 0], DATA].concat()),
            "200 xx",
        ),
        fine(
            "integers in eight bytes (RFC 9000 §16)",
            b"\xc0\0\0\0\0\0\0\x01\xc0\0\0\0\0\0\0\x03\0\0\xd9\xc0\0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\x01x".to_vec(),
            "200 x",
        ),
    ]
}

/// Streams that are reset.
fn ended() -> Vec<Script> {
    const TOLD: &str = "H3_REQUEST_CANCELLED";
    let ended = |name, bytes: &[u8]| {
        let script = Script::answer(name, bytes, GOES_ON).told(TOLD);
        Script {
            last: Last::Reset,
            ..script
        }
    };
    vec![
        ended("a stream that is reset at once (RFC 9114 §4.1.1)", &[]),
        ended(
            "a stream that is reset inside its head (§4.1.1)",
            &[1, 3, 0],
        ),
        ended(
            "a stream that is reset behind its head (§4.1.1)",
            &headers(&[OK]),
        ),
        ended(
            "a stream that is reset inside its content (§4.1.1)",
            &response(OK, &[], b"\0\x05x"),
        ),
    ]
}
