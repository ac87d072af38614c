//! Unidirectional streams (RFC 9114 §6.2 and §7.2), and streams of servers.

use hybriq_h3::Code;

use super::{Line, Script, To};
use crate::scripts::{GOES_ON, Last, SETTINGS, closes};

/// Control streams, behind their type.
const FIRST: &[Line<'_>] = &[
    (
        "a reserved frame before SETTINGS (RFC 9114 §6.2.1)",
        &[0x21, 0],
        closes(Code::H3_MISSING_SETTINGS),
    ),
    (
        "GOAWAY before SETTINGS (§6.2.1)",
        &[7, 1, 0],
        closes(Code::H3_MISSING_SETTINGS),
    ),
    (
        "HEADERS before SETTINGS (§6.2.1)",
        &[1, 0],
        closes(Code::H3_MISSING_SETTINGS),
    ),
    (
        "SETTINGS whose frame ends inside a value (§7.1)",
        &[4, 2, 6, 0x40],
        closes(Code::H3_FRAME_ERROR),
    ),
    (
        "SETTINGS with an identifier alone (§7.1)",
        &[4, 1, 6],
        closes(Code::H3_FRAME_ERROR),
    ),
    (
        "a setting twice (§7.2.4)",
        &[4, 4, 6, 10, 6, 10],
        closes(Code::H3_SETTINGS_ERROR),
    ),
    (
        "a reserved setting twice (§7.2.4)",
        &[4, 4, 0x21, 0, 0x21, 0],
        closes(Code::H3_SETTINGS_ERROR),
    ),
    (
        "a setting 0x0 (§11.2.2)",
        &[4, 2, 0, 0],
        closes(Code::H3_SETTINGS_ERROR),
    ),
    (
        "SETTINGS_ENABLE_PUSH of HTTP/2 (§7.2.4.1)",
        &[4, 2, 2, 0],
        closes(Code::H3_SETTINGS_ERROR),
    ),
    (
        "SETTINGS_MAX_CONCURRENT_STREAMS of HTTP/2 (§7.2.4.1)",
        &[4, 2, 3, 1],
        closes(Code::H3_SETTINGS_ERROR),
    ),
    (
        "SETTINGS_INITIAL_WINDOW_SIZE of HTTP/2 (§7.2.4.1)",
        &[4, 2, 4, 1],
        closes(Code::H3_SETTINGS_ERROR),
    ),
    (
        "SETTINGS_MAX_FRAME_SIZE of HTTP/2 (§7.2.4.1)",
        &[4, 2, 5, 1],
        closes(Code::H3_SETTINGS_ERROR),
    ),
    (
        "SETTINGS_ENABLE_CONNECT_PROTOCOL of 2 (RFC 8441 §3)",
        &[4, 2, 8, 2],
        closes(Code::H3_SETTINGS_ERROR),
    ),
    (
        "SETTINGS_H3_DATAGRAM of 2 (RFC 9297 §2.1.1)",
        &[4, 2, 0x33, 2],
        closes(Code::H3_SETTINGS_ERROR),
    ),
    (
        "SETTINGS of 4,097 bytes (RFC 9114 §10.5)",
        &[4, 0x50, 1],
        closes(Code::H3_EXCESSIVE_LOAD),
    ),
    (
        "reserved settings (RFC 9114 §7.2.4.1)",
        &[4, 5, 0x21, 5, 0x40, 0x40, 0],
        GOES_ON,
    ),
    (
        "SETTINGS with long integers (RFC 9000 §16)",
        &[0x40, 4, 0x80, 0, 0, 3, 0x40, 7, 0x20],
        GOES_ON,
    ),
    (
        "SETTINGS_H3_DATAGRAM without datagrams of QUIC (RFC 9297 §2.1.1)",
        &[4, 2, 0x33, 1],
        GOES_ON,
    ),
    (
        "the largest table and the most blocked streams (RFC 9204 §5)",
        &[
            4, 18, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 7, 0xff, 0xff, 0xff, 0xff,
            0xff, 0xff, 0xff, 0xff,
        ],
        GOES_ON,
    ),
];

/// Control streams, behind empty SETTINGS.
const LATER: &[Line<'_>] = &[
    (
        "SETTINGS again (§7.2.4)",
        &[4, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "DATA on the control stream (§7.2.1)",
        &[0, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "HEADERS on the control stream (§7.2.2)",
        &[1, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "PUSH_PROMISE on the control stream (§7.2.5)",
        &[5, 1, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "MAX_PUSH_ID of a server (§7.2.7)",
        &[0xd, 1, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "CANCEL_PUSH without a push (§7.2.3)",
        &[3, 1, 0],
        closes(Code::H3_ID_ERROR),
    ),
    (
        "CANCEL_PUSH without an id (§7.1)",
        &[3, 0],
        closes(Code::H3_FRAME_ERROR),
    ),
    (
        "PRIORITY_UPDATE of a server (RFC 9218 §7.1)",
        &[0x80, 0xf, 7, 0, 1, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "PRIORITY_UPDATE of a push by a server (§7.1)",
        &[0x80, 0xf, 7, 1, 1, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "PRIORITY of HTTP/2 (RFC 9114 §7.2.8)",
        &[2, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "PING of HTTP/2 (§7.2.8)",
        &[6, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "WINDOW_UPDATE of HTTP/2 (§7.2.8)",
        &[8, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "CONTINUATION of HTTP/2 (§7.2.8)",
        &[9, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "GOAWAY whose id rises (§5.2)",
        &[7, 1, 4, 7, 1, 8],
        closes(Code::H3_ID_ERROR),
    ),
    (
        "GOAWAY with the id of a stream of the server (§5.2)",
        &[7, 1, 1],
        closes(Code::H3_ID_ERROR),
    ),
    (
        "GOAWAY with the id of a unidirectional stream (§5.2)",
        &[7, 1, 2],
        closes(Code::H3_ID_ERROR),
    ),
    (
        "GOAWAY without an id (§7.1)",
        &[7, 0],
        closes(Code::H3_FRAME_ERROR),
    ),
    (
        "GOAWAY with more than an id (§7.1)",
        &[7, 2, 0, 0],
        closes(Code::H3_FRAME_ERROR),
    ),
    (
        "GOAWAY whose id is cut (§7.1)",
        &[7, 1, 0x40],
        closes(Code::H3_FRAME_ERROR),
    ),
    (
        "GOAWAY of 4,097 bytes (§10.5)",
        &[7, 0x50, 1],
        closes(Code::H3_EXCESSIVE_LOAD),
    ),
    (
        "reserved frames, one with a long length (§7.2.8)",
        &[0x21, 0, 0x40, 0x40, 0x80, 0, 0, 1, 9],
        GOES_ON,
    ),
    (
        "an unknown frame of the largest length (§9)",
        &[0x21, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        GOES_ON,
    ),
];

/// Unidirectional streams behind a control stream.
const OTHERS: &[Line<'_>] = &[
    (
        "a second control stream (§6.2.1)",
        &SETTINGS,
        closes(Code::H3_STREAM_CREATION_ERROR),
    ),
    (
        "a push stream (§4.6)",
        &[1, 0, 1, 3, 0, 0, 0xd9],
        closes(Code::H3_ID_ERROR),
    ),
    (
        "a push stream without an id (§4.6)",
        &[1],
        closes(Code::H3_ID_ERROR),
    ),
    ("a stream of a reserved type (§6.2.3)", &[0x21, 1], GOES_ON),
    (
        "a stream of WebTransport that nobody asked for (§6.2.3)",
        &[0x40, 0x54, 0, 1],
        GOES_ON,
    ),
    ("half a type (§6.2)", &[0x40], GOES_ON),
    ("a stream without a type (§6.2)", &[], GOES_ON),
];

/// Critical streams.
const CRITICAL: [(u8, &str); 3] = [(0, "control"), (2, "QPACK encoder"), (3, "QPACK decoder")];

pub(super) fn scripts() -> Vec<Script> {
    let behind = |start: &[u8], (name, bytes, expected): &Line<'_>| {
        let bytes = [start, bytes].concat();
        Script::new(name, vec![(To::Uni, bytes)], Last::Open, *expected)
    };
    let first = FIRST.iter().map(|line| behind(&[0], line));
    let later = LATER.iter().map(|line| behind(&SETTINGS, line));
    let pair = |to, bytes: &[u8]| vec![(To::Uni, SETTINGS.to_vec()), (to, bytes.to_vec())];
    let others = OTHERS.iter().map(|(name, bytes, expected)| {
        Script::new(name, pair(To::Uni, bytes), Last::Finished, *expected)
    });
    let ends = [
        (Last::Finished, "ends"),
        (Last::Reset, "is reset"),
        (Last::Stops(0), "is stopped by the server"),
    ];
    let critical = CRITICAL.iter().flat_map(|(kind, name)| {
        ends.map(|(last, how)| {
            let whose = if matches!(last, Last::Stops(_)) {
                "our"
            } else {
                "the"
            };
            let name = format!("{whose} {name} stream {how} (§6.2.1, RFC 9204 §4.2)");
            let (streams, last) = match (last, kind) {
                (Last::Stops(_), kind) => (vec![(To::Uni, SETTINGS.to_vec())], Last::Stops(*kind)),
                (last, 0) => (vec![(To::Uni, SETTINGS.to_vec())], last),
                (last, kind) => (pair(To::Uni, &[*kind]), last),
            };
            let closed = closes(Code::H3_CLOSED_CRITICAL_STREAM);
            Script::new(&name, streams, last, closed)
        })
    });
    let second = CRITICAL[1..].iter().map(|(kind, name)| {
        let name = format!("a second {name} stream (RFC 9204 §4.2)");
        let mut streams = pair(To::Uni, &[*kind]);
        streams.push((To::Uni, vec![*kind]));
        let refused = closes(Code::H3_STREAM_CREATION_ERROR);
        Script::new(&name, streams, Last::Open, refused)
    });
    let own = Script::new(
        "a bidirectional stream of the server (RFC 9114 §6.1)",
        pair(To::Bidi, &[0x21, 0]),
        Last::Open,
        closes(Code::H3_STREAM_CREATION_ERROR),
    );
    // Requests behind it go to another connection.
    let leaving = [
        ("GOAWAY for requests behind this one (§5.2)", &[7, 1, 4][..]),
        ("GOAWAY whose id falls (§5.2)", &[7, 1, 8, 7, 1, 8, 7, 1, 4]),
    ];
    let leaving = leaving.map(|(name, bytes)| {
        let control = [&SETTINGS, bytes].concat();
        let streams = vec![(To::Uni, control), (To::Requests, super::FINE.to_vec())];
        Script::new(name, streams, Last::Finished, closes(Code::H3_NO_ERROR))
    });
    first
        .chain(later)
        .chain(others)
        .chain(critical)
        .chain(second)
        .chain([own])
        .chain(leaving)
        .collect()
}
