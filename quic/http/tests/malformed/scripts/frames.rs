//! Frames of streams with requests (RFC 9114 §4.1 and §7).

use hybriq_h3::Code;

use super::{GOES_ON, Line, POST, Script, closes, frame, headers, request, resets};

/// Frames that no such stream may have, and those that nobody needs.
const KINDS: [(u64, &str, &str); 12] = [
    (0x2, "PRIORITY of HTTP/2", "§7.2.8"),
    (0x3, "CANCEL_PUSH", "§7.2.3"),
    (0x4, "SETTINGS", "§7.2.4"),
    (0x5, "PUSH_PROMISE", "§7.2.5"),
    (0x6, "PING of HTTP/2", "§7.2.8"),
    (0x7, "GOAWAY", "§7.2.6"),
    (0x8, "WINDOW_UPDATE of HTTP/2", "§7.2.8"),
    (0x9, "CONTINUATION of HTTP/2", "§7.2.8"),
    (0xd, "MAX_PUSH_ID", "§7.2.7"),
    (0xf_0700, "PRIORITY_UPDATE of a request", "RFC 9218 §7.2"),
    (0xf_0701, "PRIORITY_UPDATE of a push", "RFC 9218 §7.2"),
    (0x1f * 7 + 0x21, "a reserved frame", "§7.2.8"),
];

/// Those which [`CASES`](crate::cases::CASES) has.
const KNOWN: [(u64, &str); 7] = [
    (0x2, "before the head"),
    (0x3, "before the head"),
    (0x3, "behind the head"),
    (0x4, "before the head"),
    (0x5, "before the head"),
    (0x7, "before the head"),
    (0xd, "before the head"),
];

const FRAME: super::Outcome = closes(Code::H3_FRAME_ERROR);
const INCOMPLETE: super::Outcome = resets(Code::H3_REQUEST_INCOMPLETE);
const UNEXPECTED: super::Outcome = closes(Code::H3_FRAME_UNEXPECTED);

/// Whole streams.
const ALONE: &[Line<'_>] = &[
    (
        "nothing but a reserved frame (§4.1)",
        &[0x21, 2, 0, 0],
        INCOMPLETE,
    ),
    (
        "nothing but a stream of WebTransport that nobody asked for (§4.1)",
        &[0x40, 0x41, 0],
        INCOMPLETE,
    ),
    ("half a type of a frame (§7.1)", &[0x40], FRAME),
    ("a type of a frame without a length (§7.1)", &[1], FRAME),
    ("half a length (§7.1)", &[1, 0x40], FRAME),
    ("HEADERS without its section (§7.1)", &[1, 8], FRAME),
    (
        "a reserved frame whose length lies (§7.1)",
        &[0x21, 9, 0],
        FRAME,
    ),
];

/// What comes behind the head of a POST.
const BEHIND: &[Line<'_>] = &[
    ("a request of a head alone (§4.1)", &[], GOES_ON),
    ("empty DATA (§7.2.1)", &[0, 0, 0, 0], GOES_ON),
    (
        "DATA with long integers (RFC 9000 §16)",
        &[0x40, 0, 0xc0, 0, 0, 0, 0, 0, 0, 1, b'x'],
        GOES_ON,
    ),
    ("half a type behind the head (§7.1)", &[0x80, 0, 0], FRAME),
    ("DATA without a length (§7.1)", &[0], FRAME),
    (
        "DATA of the largest length (§7.1)",
        &[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        FRAME,
    ),
    (
        "a reserved frame that is cut behind the head (§7.1)",
        &[0x21, 5, 1],
        FRAME,
    ),
    ("trailers that are cut (§7.1)", &[1, 5, 0, 0, 0x21], FRAME),
    (
        "trailers right behind the head (§4.1)",
        &[1, 5, 0, 0, 0x21, b'x', 0],
        GOES_ON,
    ),
    ("empty trailers (§4.1)", &[1, 2, 0, 0], GOES_ON),
    (
        "DATA behind trailers (§4.1)",
        &[1, 2, 0, 0, 0, 1, b'x'],
        UNEXPECTED,
    ),
    (
        "a reserved frame behind trailers (§4.1)",
        &[1, 2, 0, 0, 0x21, 1, 9],
        GOES_ON,
    ),
    (
        "half a frame behind trailers (§7.1)",
        &[1, 2, 0, 0, 0x21],
        FRAME,
    ),
    (
        "a stream of WebTransport behind the head, which nobody asked for (§9)",
        &[0x40, 0x41, 0],
        GOES_ON,
    ),
];

pub(super) fn scripts() -> Vec<Script> {
    let head = headers(&[POST]);
    let mut scripts = Vec::new();
    for (kind, name, section) in KINDS {
        let sent = frame(kind, &[0, 0]);
        let expected = if name.starts_with("a reserved") {
            GOES_ON
        } else {
            UNEXPECTED
        };
        let data: &[u8] = &[0, 1, b'x'];
        let trailers: &[u8] = &[1, 2, 0, 0];
        let places = [
            ("before the head", [&[], &sent[..], &head]),
            ("behind the head", [&head, &sent, data]),
            ("behind content", [&head, data, &sent]),
            ("behind trailers", [&head, trailers, &sent]),
        ];
        for (place, parts) in places {
            if !KNOWN.contains(&(kind, place)) {
                let name = format!("{name} {place} ({section})");
                scripts.push(request(&name, parts.concat(), expected));
            }
        }
    }
    let alone = ALONE.iter();
    scripts.extend(alone.map(|(name, bytes, expected)| request(name, bytes.to_vec(), *expected)));
    let behind = BEHIND.iter();
    scripts.extend(
        behind.map(|(name, bytes, expected)| request(name, [&head[..], bytes].concat(), *expected)),
    );
    let long = [&[0x40, 1, 0x80, 0, 0, 14, 0, 0], POST].concat();
    scripts.push(request(
        "HEADERS with long integers (RFC 9000 §16)",
        long,
        GOES_ON,
    ));
    scripts
}
