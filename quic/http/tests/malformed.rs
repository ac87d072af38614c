//! Answers that RFC 9114 and RFC 9204 demand of a server when a client breaks their rules: the
//! HTTP/3 cases of h3spec, and their kin.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use axum::Router;
use hybriq::{Connection, ConnectionError, Direction, Endpoint};
use support::{Certificate, Http3, client_config, post, run, soon};

/// Bytes on a stream, and the error that the server must answer with.
struct Case {
    name: &'static str,
    /// Streams in the order in which they are opened.
    streams: &'static [(Direction, &'static [u8])],
    /// Close the last stream's sending end.
    end: End,
    expected: Expected,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Finish,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// CONNECTION_CLOSE with this code.
    Connection(u64),
    /// The last stream is reset or stopped with this code, or answered with status 400 (which RFC 9114
    /// §4.1.2 allows), and the connection goes on.
    Stream(u64),
}

use Direction::{Bidi, Uni};
use Expected::{Connection as Closes, Stream as Resets};

const STREAM_CREATION_ERROR: u64 = 0x103;
const CLOSED_CRITICAL_STREAM: u64 = 0x104;
const FRAME_UNEXPECTED: u64 = 0x105;
const FRAME_ERROR: u64 = 0x106;
const ID_ERROR: u64 = 0x108;
const SETTINGS_ERROR: u64 = 0x109;
const MISSING_SETTINGS: u64 = 0x10a;
const REQUEST_INCOMPLETE: u64 = 0x10d;
const MESSAGE_ERROR: u64 = 0x10e;
const DECOMPRESSION_FAILED: u64 = 0x200;
const ENCODER_STREAM_ERROR: u64 = 0x201;
const DECODER_STREAM_ERROR: u64 = 0x202;

/// A control stream with empty SETTINGS.
const CONTROL: (Direction, &[u8]) = (Uni, &[0, 4, 0]);

const CASES: &[Case] = &[
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
                    1, 8, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a', 1, 7, 0, 0, 0x21, b'x', 1, b'y',
                    0x00, 1, 2, 0, 0,
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
        streams: &[CONTROL, (Uni, &[2, 0x3f, 0x1f])],
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
];

/// Sends a case on a connection of its own. Returns the server's answer.
async fn answer(client: &Endpoint, address: std::net::SocketAddr, case: &Case) -> Option<Expected> {
    let connection = soon(client.connect(address, "localhost")).await.unwrap();
    let mut open = Vec::new();
    for (direction, bytes) in case.streams {
        let (mut send, recv) = match direction {
            Bidi => {
                let (send, recv) = connection.open_bidi().await.unwrap();
                (send, Some(recv))
            }
            Uni => (connection.open_uni().await.unwrap(), None),
        };
        send.write_all(bytes).await.unwrap();
        open.push((send, recv));
    }
    let (send, recv) = open.last_mut().unwrap();
    match case.end {
        End::Open => {}
        End::Finish => send.finish(),
    }
    let on_stream = async {
        match recv {
            Some(recv) => match recv.read_to_end(10_000).await {
                Err(hybriq::ReadError::Reset(code)) => Some(Resets(code)),
                // HEADERS with `:status 400`, entry 67 of the static table.
                Ok(bytes) if is_bad_request(&bytes) => Some(Resets(MESSAGE_ERROR)),
                Ok(_) => None,
                Err(_) => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    };
    // A connection error may be seen by the stream first.
    let answer = tokio::select! {
        biased;
        reason = connection.closed() => code(&reason),
        answer = on_stream => answer,
        // Nothing comes if the server ignores it: a request behind it is answered then.
        () = ignored(&connection) => None,
    };
    if let Some(Resets(_)) = answer {
        assert_eq!(connection.close_reason(), None, "{}", case.name);
    }
    answer
}

fn is_bad_request(response: &[u8]) -> bool {
    // HEADERS, and `:status` from the static table: index 67 does not fit into six bits.
    response.first() == Some(&1) && response.windows(2).any(|pair| pair == [0xff, 67 - 63])
}

fn code(reason: &ConnectionError) -> Option<Expected> {
    match reason {
        ConnectionError::Application { code, .. } => Some(Closes(*code)),
        _ => None,
    }
}

/// Returns once the server has answered a few requests after the case.
async fn ignored(connection: &Connection) {
    for _ in 0..3 {
        let Ok((mut send, mut recv)) = connection.open_bidi().await else {
            return std::future::pending().await;
        };
        let get = [1, 8, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a'];
        if send.write_all(&get).await.is_err() {
            return std::future::pending().await;
        }
        send.finish();
        if recv.read_to_end(10_000).await.is_err() {
            return std::future::pending().await;
        }
    }
}

#[tokio::test]
async fn broken_rules_are_answered_with_the_code_of_the_rfc() {
    let server = run(Router::new());
    let client = Endpoint::client(client_config(&Certificate::shared())).unwrap();
    let mut other = Http3::connect(server.address()).await;
    let mut wrong = Vec::new();
    for case in CASES {
        let answer = answer(&client, server.address(), case).await;
        if answer != Some(case.expected) {
            wrong.push(format!(
                "{}: {answer:x?} instead of {:x?}",
                case.name, case.expected
            ));
        }
        let echoed = other.ask(post("/", "fine")).await.unwrap();
        assert_eq!(echoed.body(), "fine", "{}", case.name);
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
