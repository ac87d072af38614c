//! Unidirectional streams (RFC 9114 §6.2 and §7.2, RFC 9218 §7.2).

use hybriq_h3::Code;

use super::{GOES_ON, Last, Line, SETTINGS, Script, closes, script};
use crate::cases::On::Uni;

/// Control streams, behind their type.
const FIRST: &[Line<'_>] = &[
    (
        "a reserved frame before SETTINGS (RFC 9114 §6.2.1)",
        &[0x21, 0],
        closes(Code::H3_MISSING_SETTINGS),
    ),
    (
        "DATA before SETTINGS (§6.2.1)",
        &[0, 0],
        closes(Code::H3_MISSING_SETTINGS),
    ),
    (
        "SETTINGS whose frame ends inside a value (§7.1)",
        &[4, 2, 6, 0x40],
        closes(Code::H3_FRAME_ERROR),
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
        "SETTINGS_MAX_FRAME_SIZE of HTTP/2 (§7.2.4.1)",
        &[4, 2, 5, 1],
        closes(Code::H3_SETTINGS_ERROR),
    ),
    (
        "a reserved setting twice (§7.2.4)",
        &[4, 4, 0x21, 0, 0x21, 0],
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
];

/// Control streams, behind empty SETTINGS.
const LATER: &[Line<'_>] = &[
    (
        "GOAWAY whose id rises (RFC 9114 §5.2)",
        &[7, 1, 4, 7, 1, 5],
        closes(Code::H3_ID_ERROR),
    ),
    (
        "GOAWAY whose id falls (§5.2)",
        &[7, 1, 4, 7, 1, 4, 7, 1, 0],
        GOES_ON,
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
        "MAX_PUSH_ID without an id (§7.1)",
        &[0xd, 0],
        closes(Code::H3_FRAME_ERROR),
    ),
    (
        "MAX_PUSH_ID with more than an id (§7.1)",
        &[0xd, 2, 1, 1],
        closes(Code::H3_FRAME_ERROR),
    ),
    (
        "MAX_PUSH_ID that rises, and stays (§7.2.7)",
        &[0xd, 1, 4, 0xd, 1, 4, 0xd, 1, 5],
        GOES_ON,
    ),
    (
        "CANCEL_PUSH without an id (§7.1)",
        &[3, 0],
        closes(Code::H3_FRAME_ERROR),
    ),
    (
        "CANCEL_PUSH for a push that is allowed, and not promised (§7.2.3)",
        &[0xd, 1, 5, 3, 1, 5],
        closes(Code::H3_ID_ERROR),
    ),
    (
        "PRIORITY of HTTP/2 on the control stream (§7.2.8)",
        &[2, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "WINDOW_UPDATE of HTTP/2 on the control stream (§7.2.8)",
        &[8, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "CONTINUATION of HTTP/2 on the control stream (§7.2.8)",
        &[9, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "DATA that does not come on the control stream (§7.2.1)",
        &[0, 0x80, 0, 0x10, 0],
        closes(Code::H3_FRAME_UNEXPECTED),
    ),
    (
        "PRIORITY_UPDATE of a stream of the server (RFC 9218 §7.2)",
        &[0x80, 0xf, 7, 0, 4, 1, b'u', b'=', b'1'],
        closes(Code::H3_ID_ERROR),
    ),
    (
        "PRIORITY_UPDATE of a unidirectional stream (§7.2)",
        &[0x80, 0xf, 7, 0, 1, 2],
        closes(Code::H3_ID_ERROR),
    ),
    (
        "PRIORITY_UPDATE of a push that was not promised (§7.2)",
        &[0x80, 0xf, 7, 1, 1, 0],
        closes(Code::H3_ID_ERROR),
    ),
    (
        "PRIORITY_UPDATE of a stream beyond the limit (§7.2)",
        &[0x80, 0xf, 7, 0, 4, 0xbf, 0xff, 0xff, 0xfc],
        closes(Code::H3_ID_ERROR),
    ),
    (
        "PRIORITY_UPDATE without an id (RFC 9114 §7.1)",
        &[0x80, 0xf, 7, 0, 0],
        closes(Code::H3_FRAME_ERROR),
    ),
    (
        "PRIORITY_UPDATE of a stream that is not open (RFC 9218 §7.2)",
        &[0x80, 0xf, 7, 0, 4, 4, b'u', b'=', b'1'],
        GOES_ON,
    ),
    (
        "GOAWAY of 4,097 bytes (RFC 9114 §10.5)",
        &[7, 0x50, 1],
        closes(Code::H3_EXCESSIVE_LOAD),
    ),
    (
        "reserved frames, one with a long length (§7.2.8)",
        &[0x21, 0, 0x40, 0x40, 0x80, 0, 0, 1, 9],
        GOES_ON,
    ),
    (
        "an unknown frame that does not come (§9)",
        &[0x21, 0xbf, 0xff, 0xff, 0xff],
        GOES_ON,
    ),
];

/// Unidirectional streams behind a control stream.
const OTHERS: &[Line<'_>] = &[
    (
        "a stream of a reserved type (§6.2.3)",
        &[0x21, 1, 2, 3],
        GOES_ON,
    ),
    (
        "a stream of an unknown type in eight bytes (§6.2)",
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0],
        GOES_ON,
    ),
    ("half a type (§6.2)", &[0x40], GOES_ON),
    ("a stream without a type (§6.2)", &[], GOES_ON),
    (
        "a stream of WebTransport that nobody asked for (§6.2.3)",
        &[0x40, 0x54, 0, 1],
        GOES_ON,
    ),
    (
        "a push stream with a long type (§6.2.2)",
        &[0x80, 0, 0, 1, 0],
        closes(Code::H3_STREAM_CREATION_ERROR),
    ),
];

pub(super) fn scripts() -> Vec<Script> {
    let behind = |start: &[u8], (name, bytes, expected): &Line<'_>| {
        let bytes = [start, bytes].concat();
        script(name, vec![(Uni, bytes)], Last::Open, *expected)
    };
    let first = FIRST.iter().map(|line| behind(&[0], line));
    let later = LATER.iter().map(|line| behind(&SETTINGS, line));
    let others = OTHERS.iter().map(|(name, bytes, expected)| {
        let streams = vec![(Uni, SETTINGS.to_vec()), (Uni, bytes.to_vec())];
        script(name, streams, Last::Finished, *expected)
    });
    let closed = closes(Code::H3_CLOSED_CRITICAL_STREAM);
    let reset = [(0, "control"), (2, "QPACK encoder"), (3, "QPACK decoder")];
    let reset = reset.map(|(kind, name)| {
        let start: &[u8] = if kind == 0 { &SETTINGS } else { &[kind] };
        let name = format!("the {name} stream is reset (§6.2.1, RFC 9204 §4.2)");
        let control = (kind != 0).then(|| (Uni, SETTINGS.to_vec()));
        let streams = control.into_iter().chain([(Uni, start.to_vec())]);
        script(&name, streams.collect(), Last::Reset, closed)
    });
    let stopped = [(0, "control"), (2, "QPACK encoder"), (3, "QPACK decoder")];
    let stopped = stopped.map(|(kind, name)| {
        let name = format!("our {name} stream is stopped (§6.2.1, RFC 9204 §4.2)");
        let streams = vec![(Uni, SETTINGS.to_vec())];
        script(&name, streams, Last::Stops(kind), closed)
    });
    let long = vec![(Uni, vec![0xc0, 0, 0, 0, 0, 0, 0, 0, 4, 0])];
    let long = script(
        "a control stream whose type has eight bytes (RFC 9000 §16)",
        long,
        Last::Open,
        GOES_ON,
    );
    let second = vec![(Uni, SETTINGS.to_vec()), (Uni, vec![0x40, 0])];
    let second = script(
        "a second control stream with a long type (§6.2.1)",
        second,
        // Its end would be an error, too.
        Last::Open,
        closes(Code::H3_STREAM_CREATION_ERROR),
    );
    let both = vec![(Uni, vec![2]), (Uni, vec![3]), (Uni, SETTINGS.to_vec())];
    let both = script(
        "QPACK streams before the control stream (RFC 9204 §4.2)",
        both,
        Last::Open,
        GOES_ON,
    );
    first
        .chain(later)
        .chain(others)
        .chain(reset)
        .chain(stopped)
        .chain([long, second, both])
        .collect()
}
