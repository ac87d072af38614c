//! Illegal scripts of a client, and the answers that RFC 9114 and RFC 9204 demand.

/// Kind of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Bidi,
    Uni,
}

/// Bytes on a stream, and the error that the server must answer with.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Streams in the order in which they are opened.
    pub(crate) streams: &'static [(On, &'static [u8])],
    /// Close the last stream's sending end.
    pub(crate) end: End,
    pub(crate) expected: Expected,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Open,
    Finish,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// CONNECTION_CLOSE with this code.
    Connection(u64),
    /// The last stream is reset or stopped with this code, or answered with status 400 (which RFC 9114
    /// §4.1.2 allows), and the connection continues.
    Stream(u64),
}

use Expected::{Connection as Closes, Stream as Resets};
use On::{Bidi, Uni};

const STREAM_CREATION_ERROR: u64 = 0x103;
const CLOSED_CRITICAL_STREAM: u64 = 0x104;
const FRAME_UNEXPECTED: u64 = 0x105;
const FRAME_ERROR: u64 = 0x106;
const ID_ERROR: u64 = 0x108;
const SETTINGS_ERROR: u64 = 0x109;
const MISSING_SETTINGS: u64 = 0x10a;
const REQUEST_INCOMPLETE: u64 = 0x10d;
pub(crate) const MESSAGE_ERROR: u64 = 0x10e;
const DECOMPRESSION_FAILED: u64 = 0x200;
const ENCODER_STREAM_ERROR: u64 = 0x201;
const DECODER_STREAM_ERROR: u64 = 0x202;

/// A control stream with empty SETTINGS.
const CONTROL: (On, &[u8]) = (Uni, &[0, 4, 0]);

/// The cases, by name.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "DATA before HEADERS (RFC 9114 §4.1)",
        streams: &[CONTROL, (Bidi, &[0, 1, 7])],
        end: End::Open,
        expected: Closes(FRAME_UNEXPECTED),
    },
    Case {
        name: "a stream without a request (§4.1)",
        streams: &[CONTROL, (Bidi, &[])],
        end: End::Finish,
        expected: Resets(REQUEST_INCOMPLETE),
    },
    Case {
        name: "HEADERS after trailers (§4.1)",
        streams: &[
            CONTROL,
            (
                Bidi,
                &[
                    1, 8, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a', 1, 6, 0, 0, 0x21, b'x', 1, b'y',
                    1, 2, 0, 0,
                ],
            ),
        ],
        end: End::Finish,
        expected: Closes(FRAME_UNEXPECTED),
    },
    Case {
        name: "a frame that ends with the stream in its middle (§7.1)",
        streams: &[CONTROL, (Bidi, &[1, 8, 0, 0, 0xd1])],
        end: End::Finish,
        expected: Closes(FRAME_ERROR),
    },
    Case {
        name: "a DATA frame that ends with the stream in its middle (§7.1)",
        streams: &[
            CONTROL,
            (
                Bidi,
                &[1, 8, 0, 0, 0xd4, 0xd7, 0xc1, 0x50, 1, b'a', 0, 9, b'x'],
            ),
        ],
        end: End::Finish,
        expected: Closes(FRAME_ERROR),
    },
    Case {
        name: "CANCEL_PUSH on a request stream (§7.2.3)",
        streams: &[CONTROL, (Bidi, &[3, 1, 0])],
        end: End::Open,
        expected: Closes(FRAME_UNEXPECTED),
    },
    Case {
        name: "SETTINGS on a request stream (§7.2.4)",
        streams: &[CONTROL, (Bidi, &[4, 0])],
        end: End::Open,
        expected: Closes(FRAME_UNEXPECTED),
    },
    Case {
        name: "PUSH_PROMISE of a client (§7.2.5)",
        streams: &[CONTROL, (Bidi, &[5, 3, 0, 0, 0])],
        end: End::Open,
        expected: Closes(FRAME_UNEXPECTED),
    },
    Case {
        name: "GOAWAY on a request stream (§7.2.6)",
        streams: &[CONTROL, (Bidi, &[7, 1, 0])],
        end: End::Open,
        expected: Closes(FRAME_UNEXPECTED),
    },
    Case {
        name: "MAX_PUSH_ID on a request stream (§7.2.7)",
        streams: &[CONTROL, (Bidi, &[0xd, 1, 0])],
        end: End::Open,
        expected: Closes(FRAME_UNEXPECTED),
    },
    Case {
        name: "CANCEL_PUSH after HEADERS (§7.2.3)",
        streams: &[
            CONTROL,
            (
                Bidi,
                &[1, 8, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a', 3, 1, 0],
            ),
        ],
        end: End::Open,
        expected: Closes(FRAME_UNEXPECTED),
    },
    Case {
        name: "a frame of HTTP/2 (§7.2.8)",
        streams: &[CONTROL, (Bidi, &[2, 1, 0])],
        end: End::Open,
        expected: Closes(FRAME_UNEXPECTED),
    },
    Case {
        name: "a frame of HTTP/2 on the control stream (§7.2.8)",
        streams: &[(Uni, &[0, 4, 0, 6, 1, 0])],
        end: End::Open,
        expected: Closes(FRAME_UNEXPECTED),
    },
    Case {
        name: "no SETTINGS first (§6.2.1)",
        streams: &[(Uni, &[0, 7, 1, 0])],
        end: End::Open,
        expected: Closes(MISSING_SETTINGS),
    },
    Case {
        name: "DATA on the control stream (§7.2.1)",
        streams: &[(Uni, &[0, 4, 0, 0, 1, 0])],
        end: End::Open,
        expected: Closes(FRAME_UNEXPECTED),
    },
    Case {
        name: "HEADERS on the control stream (§7.2.2)",
        streams: &[(Uni, &[0, 4, 0, 1, 2, 0, 0])],
        end: End::Open,
        expected: Closes(FRAME_UNEXPECTED),
    },
    Case {
        name: "a second SETTINGS frame (§7.2.4)",
        streams: &[(Uni, &[0, 4, 0, 4, 0])],
        end: End::Open,
        expected: Closes(FRAME_UNEXPECTED),
    },
    Case {
        name: "a setting twice (§7.2.4)",
        streams: &[(Uni, &[0, 4, 4, 6, 1, 6, 1])],
        end: End::Open,
        expected: Closes(SETTINGS_ERROR),
    },
    Case {
        name: "a setting of HTTP/2 (§7.2.4.1)",
        streams: &[(Uni, &[0, 4, 2, 4, 1])],
        end: End::Open,
        expected: Closes(SETTINGS_ERROR),
    },
    Case {
        name: "SETTINGS cut short (§7.1)",
        streams: &[(Uni, &[0, 4, 1, 6])],
        end: End::Open,
        expected: Closes(FRAME_ERROR),
    },
    Case {
        name: "PUSH_PROMISE on the control stream (§7.2.5)",
        streams: &[(Uni, &[0, 4, 0, 5, 3, 0, 0, 0])],
        end: End::Open,
        expected: Closes(FRAME_UNEXPECTED),
    },
    Case {
        name: "a push that was not promised is cancelled (§7.2.3)",
        streams: &[(Uni, &[0, 4, 0, 3, 1, 5])],
        end: End::Open,
        expected: Closes(ID_ERROR),
    },
    Case {
        name: "MAX_PUSH_ID goes back (§7.2.7)",
        streams: &[(Uni, &[0, 4, 0, 0xd, 1, 5, 0xd, 1, 4])],
        end: End::Open,
        expected: Closes(ID_ERROR),
    },
    Case {
        name: "a second control stream (§6.2.1)",
        streams: &[CONTROL, CONTROL],
        end: End::Open,
        expected: Closes(STREAM_CREATION_ERROR),
    },
    Case {
        name: "a push stream of a client (§6.2.2)",
        streams: &[CONTROL, (Uni, &[1, 0])],
        end: End::Open,
        expected: Closes(STREAM_CREATION_ERROR),
    },
    Case {
        name: "a second QPACK encoder stream (RFC 9204 §4.2)",
        streams: &[CONTROL, (Uni, &[2]), (Uni, &[2])],
        end: End::Open,
        expected: Closes(STREAM_CREATION_ERROR),
    },
    Case {
        name: "a second QPACK decoder stream (§4.2)",
        streams: &[CONTROL, (Uni, &[3]), (Uni, &[3])],
        end: End::Open,
        expected: Closes(STREAM_CREATION_ERROR),
    },
    Case {
        name: "the control stream ends (RFC 9114 §6.2.1)",
        streams: &[CONTROL],
        end: End::Finish,
        expected: Closes(CLOSED_CRITICAL_STREAM),
    },
    Case {
        name: "the QPACK encoder stream ends (RFC 9204 §4.2)",
        streams: &[CONTROL, (Uni, &[2])],
        end: End::Finish,
        expected: Closes(CLOSED_CRITICAL_STREAM),
    },
    Case {
        name: "the QPACK decoder stream ends (§4.2)",
        streams: &[CONTROL, (Uni, &[3])],
        end: End::Finish,
        expected: Closes(CLOSED_CRITICAL_STREAM),
    },
    Case {
        name: "a dynamic table beyond the limit (§4.1.3)",
        streams: &[CONTROL, (Uni, &[2, 0x3f, 0xe2, 0x1f])],
        end: End::Open,
        expected: Closes(ENCODER_STREAM_ERROR),
    },
    Case {
        name: "an entry in a table of no capacity (§3.2.2)",
        streams: &[CONTROL, (Uni, &[2, 0xc0, 1, b'a'])],
        end: End::Open,
        expected: Closes(ENCODER_STREAM_ERROR),
    },
    Case {
        name: "an Insert Count Increment of 0 (§4.4.3)",
        streams: &[CONTROL, (Uni, &[3, 0])],
        end: End::Open,
        expected: Closes(DECODER_STREAM_ERROR),
    },
    Case {
        name: "an Insert Count Increment beyond what was sent (§4.4.3)",
        streams: &[CONTROL, (Uni, &[3, 1])],
        end: End::Open,
        expected: Closes(DECODER_STREAM_ERROR),
    },
    Case {
        name: "a static index that does not exist (§3.1)",
        streams: &[CONTROL, (Bidi, &[1, 4, 0, 0, 0xff, 0x24])],
        end: End::Open,
        expected: Closes(DECOMPRESSION_FAILED),
    },
    Case {
        name: "a dynamic index (§2.2.3)",
        streams: &[CONTROL, (Bidi, &[1, 3, 0, 0, 0x80])],
        end: End::Open,
        expected: Closes(DECOMPRESSION_FAILED),
    },
    Case {
        name: "a required insert count (§2.2.1)",
        streams: &[CONTROL, (Bidi, &[1, 3, 1, 0, 0x80])],
        end: End::Open,
        expected: Closes(DECOMPRESSION_FAILED),
    },
    Case {
        name: "a pseudo-header twice (RFC 9114 §4.3)",
        streams: &[
            CONTROL,
            (Bidi, &[1, 9, 0, 0, 0xd1, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a']),
        ],
        end: End::Finish,
        expected: Resets(MESSAGE_ERROR),
    },
    Case {
        name: "no :method (§4.3.1)",
        streams: &[CONTROL, (Bidi, &[1, 7, 0, 0, 0xd7, 0xc1, 0x50, 1, b'a'])],
        end: End::Finish,
        expected: Resets(MESSAGE_ERROR),
    },
    Case {
        name: "no :path (§4.3.1)",
        streams: &[CONTROL, (Bidi, &[1, 7, 0, 0, 0xd1, 0xd7, 0x50, 1, b'a'])],
        end: End::Finish,
        expected: Resets(MESSAGE_ERROR),
    },
    Case {
        name: "no :scheme (§4.3.1)",
        streams: &[CONTROL, (Bidi, &[1, 7, 0, 0, 0xd1, 0xc1, 0x50, 1, b'a'])],
        end: End::Finish,
        expected: Resets(MESSAGE_ERROR),
    },
    Case {
        name: ":status in a request (§4.3)",
        streams: &[
            CONTROL,
            (Bidi, &[1, 9, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a', 0xd9]),
        ],
        end: End::Finish,
        expected: Resets(MESSAGE_ERROR),
    },
    Case {
        name: "a pseudo-header after a field (§4.3)",
        streams: &[
            CONTROL,
            (Bidi, &[1, 9, 0, 0, 0xd1, 0xd7, 0x50, 1, b'a', 0xdd, 0xc1]),
        ],
        end: End::Finish,
        expected: Resets(MESSAGE_ERROR),
    },
    Case {
        name: "a field name in upper case (§4.2)",
        streams: &[
            CONTROL,
            (
                Bidi,
                &[
                    1, 12, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a', 0x21, b'X', 1, b'y',
                ],
            ),
        ],
        end: End::Finish,
        expected: Resets(MESSAGE_ERROR),
    },
    Case {
        name: "`te` with another value than trailers (§4.2)",
        streams: &[
            CONTROL,
            (
                Bidi,
                &[
                    1, 16, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a', 0x22, b't', b'e', 4, b'g', b'z',
                    b'i', b'p',
                ],
            ),
        ],
        end: End::Finish,
        expected: Resets(MESSAGE_ERROR),
    },
    Case {
        name: "a length that is no number (RFC 9110 §8.6)",
        streams: &[
            CONTROL,
            (
                Bidi,
                &[
                    1, 27, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a', 0x27, 7, b'c', b'o', b'n', b't',
                    b'e', b'n', b't', 0x2d, b'l', b'e', b'n', b'g', b't', b'h', 2, b'+', b'1',
                ],
            ),
        ],
        end: End::Finish,
        expected: Resets(MESSAGE_ERROR),
    },
    Case {
        name: "two lengths (§8.6)",
        streams: &[
            CONTROL,
            (
                Bidi,
                &[
                    1, 44, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a', 0x27, 7, b'c', b'o', b'n', b't',
                    b'e', b'n', b't', 0x2d, b'l', b'e', b'n', b'g', b't', b'h', 1, b'0', 0x27, 7,
                    b'c', b'o', b'n', b't', b'e', b'n', b't', 0x2d, b'l', b'e', b'n', b'g', b't',
                    b'h', 1, b'1',
                ],
            ),
        ],
        end: End::Finish,
        expected: Resets(MESSAGE_ERROR),
    },
    Case {
        name: "two hosts (§7.2)",
        streams: &[
            CONTROL,
            (
                Bidi,
                &[
                    1, 22, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a', 0x24, b'h', b'o', b's', b't', 1,
                    b'a', 0x24, b'h', b'o', b's', b't', 1, b'b',
                ],
            ),
        ],
        end: End::Finish,
        expected: Resets(MESSAGE_ERROR),
    },
    Case {
        name: "a host that contradicts :authority (RFC 9114 §4.3.1)",
        streams: &[
            CONTROL,
            (
                Bidi,
                &[
                    1, 15, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a', 0x24, b'h', b'o', b's', b't', 1,
                    b'b',
                ],
            ),
        ],
        end: End::Finish,
        expected: Resets(MESSAGE_ERROR),
    },
];
