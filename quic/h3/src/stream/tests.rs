//! Streams from one end to the other, and bytes that break a rule.

use std::fmt::Write as _;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hybriq_proto::Side;
use hybriq_proto::{StreamId, owners::streams::Priority};

use super::{Received, Receiver, Uni, UniReceiver};
use crate::{
    connection::{Config, Connection, Critical, Event, put_data_head},
    error::{Scope, Violation},
    message::Head,
    wire::{settings::Settings, varint},
};

const ALL: [Critical; 3] = [Critical::Encoder, Critical::Control, Critical::Decoder];
const FIRST: StreamId = StreamId(0);

/// An end of a connection, and the unidirectional streams of its peer.
struct End {
    connection: Connection,
    unis: [UniReceiver; 3],
}

impl End {
    fn new(side: Side, settings: Settings) -> Self {
        Self::of(side, Config::new(settings))
    }

    fn of(side: Side, config: Config) -> Self {
        Self {
            connection: Connection::new(side, config),
            unis: Default::default(),
        }
    }

    /// Delivers what the peer has sent on one of its critical streams.
    fn deliver(&mut self, from: &mut Self, stream: Critical) -> Result<(), Violation> {
        let data = from.connection.take_output(stream);
        let uni = self.unis.get_mut(stream as usize).expect("three streams");
        uni.on_data(data, &mut self.connection)
            .map(|uni| assert_eq!(uni, Uni::NeedData))
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.connection.poll_event()).collect()
    }
}

/// Settings with a dynamic table.
fn with_table() -> Settings {
    Settings {
        qpack_max_table_capacity: 4096,
        qpack_blocked_streams: 16,
        ..Settings::new()
    }
}

fn pair(settings: &Settings) -> (End, End) {
    let mut client = End::new(Side::Client, settings.clone());
    let mut server = End::new(Side::Server, settings.clone());
    exchange(&mut client, &mut server);
    assert_eq!(client.events(), [Event::Settings]);
    assert_eq!(server.events(), [Event::Settings]);
    (client, server)
}

/// Delivers all that waits on critical streams.
fn exchange(client: &mut End, server: &mut End) {
    while client.connection.has_output() || server.connection.has_output() {
        for stream in ALL {
            server
                .deliver(client, stream)
                .expect("a client that keeps the rules");
            client
                .deliver(server, stream)
                .expect("a server that keeps the rules");
        }
    }
}

fn get(path: &str) -> Request<()> {
    let uri = format!("https://example.com{path}");
    let request = Request::get(uri).header("user-agent", "a program with a name");
    request.body(()).expect("a request")
}

/// All that a receiver finds in a stream.
fn read<H: Head>(
    receiver: &mut Receiver<H>,
    connection: &mut Connection,
) -> Result<Vec<Received<H>>, Violation> {
    let mut all = Vec::new();
    loop {
        match receiver.poll(connection)? {
            Received::NeedData => return Ok(all),
            Received::Pause => {}
            last @ (Received::End | Received::Blocked | Received::Session(_)) => {
                all.push(last);
                return Ok(all);
            }
            received => all.push(received),
        }
    }
}

/// Reads a stream that arrives cut into parts of this length.
fn read_cut<H: Head>(
    mut receiver: Receiver<H>,
    connection: &mut Connection,
    stream: &[u8],
    len: usize,
) -> Result<Vec<Received<H>>, Violation> {
    let mut all = Vec::new();
    for part in stream.chunks(len) {
        receiver.on_data(Bytes::copy_from_slice(part));
        all.extend(read(&mut receiver, connection)?);
    }
    receiver.on_fin();
    all.extend(read(&mut receiver, connection)?);
    Ok(all)
}

/// A message as text, whose content is joined.
fn text<H: std::fmt::Debug>(received: &[Received<H>]) -> String {
    let mut out = String::new();
    let mut content = Vec::new();
    for received in received {
        if let Received::Data(data) = received {
            content.extend_from_slice(data);
        } else {
            out.push_str(&String::from_utf8_lossy(&std::mem::take(&mut content)));
            let _ = write!(out, "[{received:?}]");
        }
    }
    out
}

#[test]
fn a_message_is_the_same_however_it_is_cut() {
    for settings in [Settings::new(), with_table()] {
        let (mut client, mut server) = pair(&settings);
        let mut stream = Vec::new();
        client
            .connection
            .write_request(FIRST, &get("/a"), &mut stream)
            .expect("a request");
        put_data_head(5, &mut stream);
        stream.extend_from_slice(b"hello");
        // A reserved frame, and one without data (RFC 9114 §7.2.8).
        stream.extend_from_slice(&[0x21, 3, 1, 2, 3, 0x40, 0x40, 0]);
        put_data_head(0, &mut stream);
        put_data_head(1, &mut stream);
        stream.push(b'!');
        let trailers = HeaderMap::from_iter([(http::header::ETAG, HeaderValue::from_static("e"))]);
        client
            .connection
            .write_trailers(FIRST, &trailers, &mut stream)
            .expect("trailers");
        exchange(&mut client, &mut server);
        let whole = Receiver::request(FIRST);
        let whole = read_cut(whole, &mut server.connection, &stream, stream.len());
        let whole = text(&whole.expect("a request"));
        assert!(whole.contains("]hello![Trailers("), "{whole}");
        for len in 1..stream.len() {
            let receiver = Receiver::request(FIRST);
            let cut = read_cut(receiver, &mut server.connection, &stream, len);
            assert_eq!(text(&cut.expect("a request")), whole, "parts of {len}");
        }
    }
}

#[test]
fn a_request_that_came_whole_is_known_to_have_no_content() {
    let (mut client, mut server) = pair(&Settings::new());
    let mut stream = Vec::new();
    client
        .connection
        .write_request(FIRST, &get("/"), &mut stream)
        .expect("a request");
    let mut receiver = Receiver::request(FIRST);
    receiver.on_data(stream.into());
    receiver.on_fin();
    let head = receiver.poll(&mut server.connection);
    assert!(matches!(head, Ok(Received::Head(_))), "{head:?}");
    assert!(receiver.is_end());
    assert!(matches!(
        receiver.poll(&mut server.connection),
        Ok(Received::End)
    ));
}

/// Clients send reserved frames behind a request (RFC 9114 §7.2.8): it has no content even so.
#[test]
fn reserved_frames_behind_a_head_do_not_hide_the_end() {
    for (rest, is_end) in [
        (&[][..], true),
        (&[0x21, 2, 7, 7], true),
        (&[0x21, 0, 0x40, 0x40, 1, 7], true),
        (&[0x21, 2, 7], false),
        (&[0x21], false),
        (&[0, 0], false),
        (&[0x21, 0, 0x0d, 1, 0], false),
    ] {
        for is_fin in [true, false] {
            let mut server = End::new(Side::Server, Settings::new());
            let mut receiver = Receiver::request(FIRST);
            receiver.on_data([&head()[..], rest].concat().into());
            if is_fin {
                receiver.on_fin();
            }
            assert!(!receiver.needs_data());
            let head = receiver.poll(&mut server.connection);
            assert!(matches!(head, Ok(Received::Head(_))), "{head:?}");
            assert_eq!(receiver.is_end(), is_fin && is_end, "{rest:?}");
            assert_eq!(receiver.needs_data(), !is_fin && rest.is_empty());
        }
    }
}

/// A peer that sends frames without number does not keep the task of their reader from others.
#[test]
fn frames_that_carry_nothing_come_in_turns() {
    for empty in [[0, 0], [0x21, 0]] {
        let mut server = End::new(Side::Server, Settings::new());
        let mut receiver = Receiver::request(FIRST);
        receiver.on_data([head(), empty.repeat(1000)].concat().into());
        receiver.on_fin();
        let mut polls = 1;
        while !matches!(receiver.poll(&mut server.connection), Ok(Received::End)) {
            polls += 1;
        }
        assert!(polls >= 1000 / 64, "{empty:?}");
    }
}

#[test]
fn content_is_not_copied() {
    let (mut client, mut server) = pair(&Settings::new());
    let mut stream = Vec::new();
    client
        .connection
        .write_request(FIRST, &get("/"), &mut stream)
        .expect("a request");
    put_data_head(1000, &mut stream);
    let start = stream.len();
    stream.resize(start + 1000, 7);
    let stream = Bytes::from(stream);
    let mut receiver = Receiver::request(FIRST);
    receiver.on_data(stream.clone());
    let received = read(&mut receiver, &mut server.connection).expect("a request");
    let Some(Received::Data(data)) = received.last() else {
        panic!("no data: {received:?}");
    };
    assert_eq!(data.as_ptr(), stream[start..].as_ptr());
    assert_eq!(receiver.held(), 0);
}

/// RFC 9204 §2.2.1: the request is read once the encoder stream has arrived.
#[test]
fn a_section_waits_for_its_entries() {
    let (mut client, mut server) = pair(&with_table());
    let mut streams = Vec::new();
    for index in 0..4 {
        let mut stream = Vec::new();
        let id = StreamId(index * 4);
        client
            .connection
            .write_request(id, &get("/same"), &mut stream)
            .expect("a request");
        let mut receiver = Receiver::request(id);
        receiver.on_data(stream.into());
        receiver.on_fin();
        streams.push(receiver);
    }
    assert!(
        client.connection.inserted().local > 0,
        "no entry was inserted"
    );
    let connection = &mut server.connection;
    let blocked: Vec<_> = streams
        .iter_mut()
        .filter_map(|stream| {
            let polled = stream.poll(connection).expect("a request");
            matches!(polled, Received::Blocked).then(|| stream.id())
        })
        .collect();
    assert!(!blocked.is_empty(), "no section refers to new entries");
    server
        .deliver(&mut client, Critical::Encoder)
        .expect("entries");
    let unblocked: Vec<_> = blocked.iter().map(|id| Event::Unblocked(*id)).collect();
    assert_eq!(server.events(), unblocked);
    for stream in &mut streams {
        if blocked.contains(&stream.id()) {
            let received = read(stream, &mut server.connection).expect("a request");
            assert!(matches!(received[..], [Received::Head(_), Received::End]));
        }
    }
    exchange(&mut client, &mut server);
    assert_eq!(
        server.connection.inserted().peer,
        client.connection.inserted().local
    );
}

/// RFC 9204 §2.2.2.2: the peer may evict what a stream that is given up refers to.
#[test]
fn a_stream_that_is_given_up_is_cancelled_in_qpack() {
    let (mut client, mut server) = pair(&with_table());
    let mut receiver = Receiver::request(FIRST);
    let mut stream = Vec::new();
    client
        .connection
        .write_request(FIRST, &get("/"), &mut stream)
        .expect("a request");
    // A client that has set no capacity may refer to nothing.
    Receiver::<Request<()>>::request(FIRST).cancel(&mut server.connection);
    let output = server.connection.take_output(Critical::Decoder);
    assert!(output.is_empty());
    let entries = client.connection.take_output(Critical::Encoder);
    server
        .connection
        .on_encoder_stream(&entries)
        .expect("entries");
    receiver.on_data(stream.into());
    receiver.cancel(&mut server.connection);
    assert_eq!(receiver.held(), 0);
    let output = server.connection.take_output(Critical::Decoder);
    // Both: the peer may refer to entries on the first one, too.
    assert_eq!(output[..2], [0x40, 0x40]);
}

#[test]
fn a_response_may_have_interim_ones_before_it() {
    let (mut client, mut server) = pair(&Settings::new());
    let mut stream = Vec::new();
    let fields = HeaderMap::from_iter([(http::header::LINK, HeaderValue::from_static("</a>"))]);
    for status in [
        StatusCode::EARLY_HINTS,
        StatusCode::PROCESSING,
        StatusCode::OK,
    ] {
        let written = server
            .connection
            .write_response(FIRST, status, &fields, [], &mut stream);
        written.expect("a response");
    }
    let receiver = Receiver::response(FIRST, &Method::GET);
    let received = read_cut(receiver, &mut client.connection, &stream, 7).expect("a response");
    let statuses: Vec<_> = received
        .iter()
        .filter_map(|received| match received {
            Received::Head(head) => Some(head.status().as_u16()),
            _ => None,
        })
        .collect();
    assert_eq!(statuses, [103, 102, 200]);
    assert!(matches!(received.last(), Some(Received::End)));
}

/// Writes a response with this status, content length and content.
fn response(status: u16, length: Option<u64>, content: usize) -> Vec<u8> {
    let mut server = End::new(Side::Server, Settings::new());
    let mut fields = HeaderMap::new();
    fields.extend(length.map(|length| (http::header::CONTENT_LENGTH, length.into())));
    let status = StatusCode::from_u16(status).expect("a status");
    let mut stream = Vec::new();
    let written = server
        .connection
        .write_response(FIRST, status, &fields, [], &mut stream);
    written.expect("a response");
    if content > 0 {
        put_data_head(content as u64, &mut stream);
        stream.resize(stream.len() + content, 0);
    }
    stream
}

#[test]
fn content_is_checked_against_what_the_head_says() {
    use Violation as V;
    for (method, status, length, content, expected) in [
        (Method::GET, 200, Some(5), 5, None),
        (Method::GET, 200, None, 5, None),
        (Method::GET, 200, Some(5), 4, Some(V::ContentLengthDiffers)),
        (Method::GET, 200, Some(5), 6, Some(V::ContentLengthDiffers)),
        (Method::GET, 200, Some(5), 0, Some(V::ContentLengthDiffers)),
        (Method::HEAD, 200, Some(5), 0, None),
        (Method::HEAD, 200, Some(5), 5, Some(V::ContentNotAllowed)),
        (Method::GET, 304, Some(5), 0, None),
        (Method::GET, 204, None, 1, Some(V::ContentNotAllowed)),
        // A tunnel has no length (RFC 9110 §9.3.6).
        (Method::CONNECT, 200, Some(5), 6, None),
        (
            Method::CONNECT,
            404,
            Some(5),
            6,
            Some(V::ContentLengthDiffers),
        ),
    ] {
        let mut client = End::new(Side::Client, Settings::new());
        let receiver = Receiver::response(FIRST, &method);
        let stream = response(status, length, content);
        let read = read_cut(receiver, &mut client.connection, &stream, 64);
        assert_eq!(
            read.err(),
            expected,
            "{method} {status} {length:?} {content}"
        );
    }
}

#[test]
fn a_head_that_is_too_large_can_be_answered() {
    let settings = Settings {
        max_field_section_size: Some(200),
        ..with_table()
    };
    let mut server = End::new(Side::Server, settings.clone());
    let mut client = End::new(Side::Client, Settings::new());
    let large = Request::get("https://example.com/")
        .header("x", "y".repeat(201))
        .body(());
    let large = large.expect("a request");
    // Before the settings arrive, nobody knows.
    let mut stream = Vec::new();
    client
        .connection
        .write_request(FIRST, &large, &mut stream)
        .expect("a request");
    // A section of many small fields is short, and large even so.
    let mut many = vec![1, 32, 0, 0];
    many.extend_from_slice(&[0xdd; 30]);
    // What follows is passed over.
    many.extend_from_slice(&[0, 1, b'x', 1, 2, 0, 0]);
    for stream in [stream, many] {
        let receiver = Receiver::request(FIRST);
        let received = read_cut(receiver, &mut server.connection, &stream, 1000);
        let received = received.expect("a request");
        assert!(
            matches!(received[..], [Received::HeadTooLarge, Received::End]),
            "{received:?}"
        );
    }
    exchange(&mut client, &mut server);
    let refused = client
        .connection
        .write_request(FIRST, &large, &mut Vec::new());
    assert_eq!(refused.err().map(|error| error.most), Some(200));
}

/// The bytes of a HEADERS frame of a GET, without its end.
fn head() -> Vec<u8> {
    let mut client = End::new(Side::Client, Settings::new());
    let mut stream = Vec::new();
    client
        .connection
        .write_request(FIRST, &get("/"), &mut stream)
        .expect("a request");
    stream
}

#[test]
fn streams_of_requests_that_break_a_rule_are_errors() {
    use Violation as V;
    let after_head = |more: &[u8]| [&head(), more].concat();
    let trailers: &[u8] = &[1, 5, 0, 0, 0x21, b'x', 0];
    let mut connect = Vec::new();
    let mut client = End::new(Side::Client, Settings::new());
    let request = Request::connect("example.com:443")
        .body(())
        .expect("a request");
    client
        .connection
        .write_request(FIRST, &request, &mut connect)
        .expect("a request");
    for (stream, violation) in [
        (vec![], V::RequestIncomplete),
        (vec![0x21, 0], V::RequestIncomplete),
        (vec![0, 0], V::FrameNotAllowed),
        (vec![0, 5], V::FrameNotAllowed),
        (vec![3, 1, 0], V::FrameNotAllowed),
        (vec![4, 0], V::FrameNotAllowed),
        (vec![5, 1, 0], V::FrameNotAllowed),
        (vec![7, 1, 0], V::FrameNotAllowed),
        (vec![13, 1, 0], V::FrameNotAllowed),
        (vec![0x80, 0xf, 7, 0, 1, 0], V::FrameNotAllowed),
        (vec![2, 0], V::FrameOfHttp2),
        (after_head(&[6, 0]), V::FrameOfHttp2),
        (after_head(&[8, 0]), V::FrameOfHttp2),
        (after_head(&[9, 0]), V::FrameOfHttp2),
        (after_head(&[0]), V::FrameCut),
        (after_head(&[0, 2, 1]), V::FrameCut),
        (after_head(&[0x21, 2, 1]), V::FrameCut),
        (after_head(&[1, 9, 0, 0]), V::FrameCut),
        (
            after_head(&[trailers, &[0, 1, 1]].concat()),
            V::FrameNotAllowed,
        ),
        (
            after_head(&[trailers, trailers].concat()),
            V::FrameNotAllowed,
        ),
        (after_head(&[1, 2, 0, 0, 4, 0]), V::FrameNotAllowed),
        // RFC 9114 §4.4: nothing but DATA on a tunnel.
        ([&connect[..], trailers].concat(), V::FrameNotAllowed),
    ] {
        let mut server = End::new(Side::Server, Settings::new());
        let receiver = Receiver::request(FIRST);
        let read = read_cut(receiver, &mut server.connection, &stream, 3);
        assert_eq!(read.err(), Some(violation), "{stream:?}");
    }
    let mut server = End::new(Side::Server, Settings::new());
    let read = read_cut(
        Receiver::request(FIRST),
        &mut server.connection,
        &[1, 3, 5, 0, 0x80],
        9,
    );
    let error = read.expect_err("entries of no table");
    assert_eq!(error.code().0, 0x200);
    assert_eq!(error.scope(), Scope::Connection);
}

#[test]
fn streams_of_responses_that_break_a_rule_are_errors() {
    use Violation as V;
    let interim = response(103, None, 0);
    for (stream, violation) in [
        (vec![], V::ResponseIncomplete),
        (interim.clone(), V::ResponseIncomplete),
        ([&interim[..], &[0, 0]].concat(), V::FrameNotAllowed),
        (vec![5, 1, 0], V::PushNotAllowed),
        (
            [&response(200, None, 0)[..], &[5, 1, 0]].concat(),
            V::PushNotAllowed,
        ),
    ] {
        let mut client = End::new(Side::Client, Settings::new());
        let receiver = Receiver::response(FIRST, &Method::GET);
        let read = read_cut(receiver, &mut client.connection, &stream, 3);
        assert_eq!(read.err(), Some(violation), "{stream:?}");
    }
}

#[test]
fn a_stream_of_a_session_is_told_apart_if_sessions_are_allowed() {
    let stream = [0x40, 0x41, 8, b'x'];
    let mut allowing = Settings::new();
    allowing.others.push((0x2b60_3742, 1));
    let mut server = End::new(Side::Server, allowing.clone());
    let mut receiver = Receiver::request(StreamId(12));
    receiver.on_data(Bytes::copy_from_slice(&stream));
    let received = receiver.poll(&mut server.connection);
    assert!(
        matches!(received, Ok(Received::Session(StreamId(8)))),
        "{received:?}"
    );
    assert_eq!(receiver.take_rest(), "x");
    let wrong = read_cut(
        Receiver::request(FIRST),
        &mut server.connection,
        &[0x40, 0x41, 9],
        9,
    );
    assert_eq!(wrong.err(), Some(Violation::SessionId));
    let mut late = head();
    late.extend_from_slice(&stream);
    let late = read_cut(Receiver::request(FIRST), &mut server.connection, &late, 99);
    assert_eq!(late.err(), Some(Violation::SessionSignalLate));

    let mut uni = UniReceiver::new();
    let data = Bytes::from_static(&[0x40, 0x54, 8, b'y']);
    let session = uni.on_data(data.clone(), &mut server.connection);
    assert_eq!(
        session,
        Ok(Uni::Session(StreamId(8), Bytes::from_static(b"y")))
    );
    let mut plain = End::new(Side::Server, Settings::new());
    let ignored = UniReceiver::new().on_data(data, &mut plain.connection);
    assert_eq!(ignored, Ok(Uni::Ignored(Violation::UnknownStream)));
}

/// Gives data to a new unidirectional stream, byte by byte.
fn uni(end: &mut End, data: &[u8]) -> Result<UniReceiver, Violation> {
    let mut uni = UniReceiver::new();
    for byte in data {
        uni.on_data(Bytes::copy_from_slice(&[*byte]), &mut end.connection)?;
    }
    Ok(uni)
}

#[test]
fn critical_streams_that_break_a_rule_are_errors() {
    use Violation as V;
    const SETTINGS: &[u8] = &[0, 4, 0];
    let after = |more: &[u8]| [SETTINGS, more].concat();
    let both = [Side::Client, Side::Server];
    let cases: &[(&[Side], Vec<u8>, Violation)] = &[
        (&both, vec![0, 7, 1, 0], V::MissingSettings),
        (&both, vec![0, 0x21, 0], V::MissingSettings),
        (&both, vec![0, 4, 1, 6], V::FrameLength),
        (&both, vec![0, 4, 0x50, 1], V::ControlFrameTooLong),
        (
            &[Side::Server],
            vec![0, 4, 2, 0x33, 1],
            V::DatagramsWithoutTransport,
        ),
        (&both, after(&[4, 0]), V::FrameNotAllowed),
        (&both, after(&[0, 0]), V::FrameNotAllowed),
        (&both, after(&[1, 0]), V::FrameNotAllowed),
        (&both, after(&[5, 0]), V::FrameNotAllowed),
        (&both, after(&[2, 0]), V::FrameOfHttp2),
        (&both, after(&[7, 0]), V::FrameLength),
        (&both, after(&[7, 2, 0, 0]), V::FrameLength),
        (&both, after(&[7, 1, 4, 7, 1, 8]), V::GoawayIncreased),
        (&both, after(&[3, 1, 0]), V::UnknownPush),
        (&[Side::Client], after(&[7, 1, 1]), V::GoawayId),
        (&[Side::Client], after(&[13, 1, 0]), V::FrameNotAllowed),
        (
            &[Side::Client],
            after(&[0x80, 0xf, 7, 0, 1, 0]),
            V::FrameNotAllowed,
        ),
        (
            &[Side::Server],
            after(&[13, 1, 4, 13, 1, 3]),
            V::MaxPushIdReduced,
        ),
        (
            &[Side::Server],
            after(&[0x80, 0xf, 7, 0, 1, 1]),
            V::PriorityOfNoRequest,
        ),
        (
            &[Side::Server],
            after(&[0x80, 0xf, 7, 1, 1, 0]),
            V::UnknownPush,
        ),
        (&[Side::Server], vec![1], V::PushStreamOfClient),
        (&[Side::Client], vec![1], V::PushNotAllowed),
    ];
    for (sides, stream, violation) in cases {
        for side in *sides {
            let mut end = End::new(*side, Settings::new());
            let read = uni(&mut end, stream).map(drop);
            assert_eq!(read, Err(*violation), "{side:?} {stream:?}");
        }
    }
    for (stream, code) in [
        (&[2, 0x80][..], 0x201),
        (&[3, 0x80], 0x202),
        (&[3, 0x01], 0x202),
    ] {
        let mut end = End::new(Side::Server, Settings::new());
        let error = uni(&mut end, stream)
            .map(drop)
            .expect_err("instructions for no table");
        assert_eq!(error.code().0, code, "{stream:?}");
    }
}

#[test]
fn critical_streams_exist_once_and_do_not_end() {
    for (kind, violation) in [
        (0, Violation::SecondControlStream),
        (2, Violation::SecondQpackStream),
        (3, Violation::SecondQpackStream),
    ] {
        let mut end = End::new(Side::Server, Settings::new());
        let first = uni(&mut end, &[kind]).expect("the first");
        assert_eq!(first.on_end(), Err(Violation::CriticalStreamClosed));
        assert_eq!(uni(&mut end, &[kind]).map(drop), Err(violation));
    }
    let mut end = End::new(Side::Server, Settings::new());
    // RFC 9114 §6.2: one that ends before its type is no error.
    let opening = uni(&mut end, &[0x40]).expect("half a type");
    assert!(opening.is_opening());
    assert_eq!(opening.on_end(), Ok(()));
}

#[test]
fn news_of_the_control_stream_are_events() {
    let mut server = End::new(Side::Server, Settings::new());
    let update = [0x80, 0xf, 7, 0, 6, 8, b'u', b'=', b'1', b',', b'i'];
    let stream = [&[0, 4, 2, 6, 5][..], &update, &[0x21, 2, 9, 9, 7, 1, 3]].concat();
    uni(&mut server, &stream).expect("a control stream");
    let priority = Priority::new(1).incremental();
    assert_eq!(
        server.events(),
        [Event::Settings, Event::Priority(StreamId(8), priority)]
    );
    let peer = server.connection.peer_settings();
    assert_eq!(peer.and_then(|peer| peer.max_field_section_size), Some(5));
}

/// RFC 9297 §2.1.1 forbids it, but some servers do it: the client goes on without datagrams.
#[test]
fn a_server_that_takes_datagrams_by_its_settings_alone_takes_none() {
    let mut client = End::new(Side::Client, Settings::new());
    uni(&mut client, &[0, 4, 2, 0x33, 1]).expect("settings");
    let peer = client.connection.peer_settings().expect("settings");
    assert!(!peer.h3_datagram);
}

#[test]
fn goaway_refuses_requests_from_an_id_on() {
    let (mut client, mut server) = pair(&Settings::new());
    for (sent, told, refused) in [
        (8, Some(8), 8),
        (12, None, 8),
        (4, Some(4), 4),
        (4, None, 4),
    ] {
        server.connection.go_away(StreamId(sent));
        exchange(&mut client, &mut server);
        let events: Vec<_> = told
            .map(|id| Event::Goaway(StreamId(id)))
            .into_iter()
            .collect();
        assert_eq!(client.events(), events, "{sent}");
        for end in [&client, &server] {
            assert!(end.connection.is_refused(StreamId(refused)));
            assert!(!end.connection.is_refused(StreamId(refused - 4)));
        }
    }
}

#[test]
fn settings_of_an_earlier_connection_hold_for_early_data() {
    let config = Config {
        remembered: Some(with_table()),
        ..Config::new(with_table())
    };
    let mut client = End::of(Side::Client, config);
    let mut stream = Vec::new();
    for _ in 0..2 {
        client
            .connection
            .write_request(FIRST, &get("/"), &mut stream)
            .expect("a request");
    }
    assert!(
        client.connection.inserted().local > 0,
        "the table is used at once"
    );
    let mut server = End::new(Side::Server, with_table());
    assert!(!client.connection.has_peer_settings());
    client
        .deliver(&mut server, Critical::Control)
        .expect("the same settings");
    assert!(client.connection.has_peer_settings());
    let mut other = End::new(Side::Server, Settings::new());
    let config = Config {
        remembered: Some(with_table()),
        ..Config::new(with_table())
    };
    let mut client = End::of(Side::Client, config);
    let refused = client.deliver(&mut other, Critical::Control);
    assert_eq!(refused, Err(Violation::SettingTakenBack));
}

/// RFC 9114 §6.2.3, §7.2.4.1 and §7.2.8: peers ignore what is reserved.
#[test]
fn what_is_reserved_is_sent_and_ignored() {
    let config = Config {
        grease: Some(0x1234_5678_9abc_def0),
        ..Config::new(Settings::new())
    };
    let mut client = End::of(Side::Client, config.clone());
    let mut server = End::new(Side::Server, Settings::new());
    let mut same = Connection::new(Side::Client, config);
    let control = same.take_output(Critical::Control);
    // The type of the stream, SETTINGS of one setting, and an empty frame.
    let [0, 4, 5, ref rest @ ..] = control[..] else {
        panic!("{control:x?}");
    };
    let kind = varint::read(&mut &rest[5..]).expect("a frame");
    assert_eq!((kind % 0x1f, rest.len()), (0x21 % 0x1f, 5 + 5));
    assert_eq!(rest.last(), Some(&0));
    let stream = client.connection.reserved_stream().expect("a stream");
    assert!(stream.len() <= 4);
    assert_eq!(server.connection.reserved_stream(), None);
    let ignored = UniReceiver::new().on_data(stream.into(), &mut server.connection);
    assert_eq!(ignored, Ok(Uni::Ignored(Violation::UnknownStream)));
    server
        .deliver(&mut client, Critical::Control)
        .expect("settings");
    let peer = server.connection.peer_settings().expect("settings");
    let [(id, _)] = peer.others[..] else {
        panic!("one reserved setting: {peer:?}");
    };
    assert_eq!(id % 0x1f, 0x21 % 0x1f);
}
