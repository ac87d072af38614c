//! Clients that try to make a server hold or do much.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use axum::{Router, body::Body, extract::Request, http::StatusCode, routing::post as on_post};
use http_body_util::BodyExt as _;
use hybriq::{RecvStream, SendStream};
use hybriq_http::{Limits, Server};
use support::{Certificate, Http3, Running, client_config, post, run, run_with, soon};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::Notify,
};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls};

/// HEADERS of `POST / HTTP/3` for the authority `a`.
const POST: &[u8] = &[1, 8, 0, 0, 0xd4, 0xd7, 0xc1, 0x50, 1, b'a'];

fn with_limits(change: impl FnOnce(&mut Limits)) -> Running {
    let mut limits = Limits::default();
    change(&mut limits);
    let config = Certificate::shared().config();
    run_with(Server::builder().limits(limits), config, Router::new())
}

/// Opens a stream and sends bytes.
async fn send(client: &Http3, bytes: &[u8]) -> (SendStream, RecvStream) {
    let (mut send, recv) = soon(client.connection.open_bidi()).await.unwrap();
    soon(send.write_all(bytes)).await.unwrap();
    (send, recv)
}

#[tokio::test]
async fn an_empty_data_frame_does_not_end_a_body() {
    let server = run(Router::new());
    let client = Http3::connect(server.address()).await;
    let body = [POST, &[0, 0, 0, 2, b'h', b'e', 0, 0, 0, 3], b"llo", &[0, 0]].concat();
    let (mut send, mut recv) = send(&client, &body).await;
    send.finish();
    let response = soon(recv.read_to_end(10_000)).await.unwrap();
    let body = [&[0, 5], &b"hello"[..]].concat();
    assert!(
        response.windows(7).any(|seven| seven == body),
        "{response:?}"
    );
    assert_eq!(client.connection.close_reason(), None);
}

/// The service must not take the part that came for the whole body (RFC 9114 §7.1).
#[tokio::test]
async fn a_body_that_ends_in_the_middle_of_a_frame_is_an_error() {
    let echo = async |request: Request| Body::new(request.into_body());
    let server = run(Router::new().route("/", on_post(echo)));
    let client = Http3::connect(server.address()).await;
    let (mut send, mut recv) = send(&client, &[POST, &[0, 10, b'z']].concat()).await;
    // The service has read everything that came.
    let mut response = Vec::new();
    while !response.contains(&b'z') {
        let data = soon(recv.read_chunk(1000)).await.unwrap().unwrap();
        response.extend_from_slice(&data);
    }
    send.finish();
    let reason = soon(client.connection.closed()).await;
    let hybriq::ConnectionError::Application { code, .. } = reason else {
        panic!("{reason}");
    };
    assert_eq!(code, 0x106, "H3_FRAME_ERROR");
}

#[tokio::test]
async fn a_body_that_nobody_reads_is_stopped_without_an_error() {
    let ignore = async || StatusCode::NO_CONTENT;
    let server = run(Router::new().route("/", on_post(ignore)));
    let mut client = Http3::connect(server.address()).await;
    let (send, _recv) = send(&client, &[POST, &[0, 0x80, 0x10, 0, 0]].concat()).await;
    assert_eq!(soon(send.stopped()).await, Ok(Some(0x100)), "H3_NO_ERROR");
    assert_eq!(client.ask(post("/x", "fine")).await.unwrap().body(), "fine");
}

/// A body of frames that carry nothing does not keep the thread of its reader from other tasks.
#[tokio::test]
async fn a_body_of_empty_frames_is_read_in_turns() {
    const MANY: usize = 8_000;
    let (told, arrived) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let turns = Arc::new(AtomicUsize::new(0));
    let read = {
        let (told, arrived, turns) = (told.clone(), arrived.clone(), turns.clone());
        async move |request: Request| {
            let counting = {
                let turns = turns.clone();
                tokio::spawn(async move {
                    // `yield_now` would let the reader go before, many times.
                    std::future::poll_fn::<(), _>(|context| {
                        turns.fetch_add(1, Ordering::Relaxed);
                        context.waker().wake_by_ref();
                        Poll::Pending
                    })
                    .await;
                })
            };
            told.notify_one();
            arrived.notified().await;
            let before = turns.load(Ordering::Relaxed);
            let body = request.into_body().collect().await.unwrap().to_bytes();
            assert!(body.is_empty());
            counting.abort();
            turns.fetch_sub(before, Ordering::Relaxed);
        }
    };
    let server = run(Router::new().route("/", on_post(read)));
    let client = Http3::connect(server.address()).await;
    let (mut send, mut recv) = send(&client, POST).await;
    soon(told.notified()).await;
    soon(send.write_all(&[0, 0].repeat(MANY))).await.unwrap();
    send.finish();
    let delivered = async {
        while !client.connection.is_delivered(send.id()) {
            tokio::task::yield_now().await;
        }
    };
    soon(delivered).await;
    arrived.notify_one();
    soon(recv.read_to_end(1000)).await.unwrap();
    let turns = turns.load(Ordering::Relaxed);
    assert!(turns > MANY / 100, "others had {turns} turns");
}

/// A field section that is short on the wire and long in memory ends its stream alone.
#[tokio::test]
async fn fields_that_grow_by_decoding_are_refused() {
    let server = with_limits(|limits| limits.header_list = 16 << 10);
    let mut client = Http3::connect(server.address()).await;
    let get = [0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a'];
    // `content-security-policy`, entry 85 of the static table, a thousand times.
    let many = [0xff, 85 - 63].repeat(1000);
    let len = u16::try_from(get.len() + many.len()).unwrap() | 0x4000;
    let headers = [&[1][..], &len.to_be_bytes(), &get, &many].concat();
    let (mut send, mut recv) = send(&client, &headers).await;
    send.finish();
    let response = soon(recv.read_to_end(10_000)).await.unwrap();
    // HEADERS with `:status`.
    assert!(response.ends_with(b"\x03431"), "{response:x?}");
    assert_eq!(client.ask(post("/", "fine")).await.unwrap().body(), "fine");
}

/// Streams of unknown types are stopped, and give their credit back.
#[tokio::test]
async fn unknown_unidirectional_streams_cost_nothing() {
    let server = run(Router::new());
    let mut client = Http3::connect(server.address()).await;
    for _ in 0..2_000 {
        let mut send = soon(client.connection.open_uni()).await.unwrap();
        // The server may have stopped it.
        let _ = send.write_all(&[0x21, 1, 2, 3]).await;
        send.finish();
    }
    assert_eq!(client.ask(post("/", "fine")).await.unwrap().body(), "fine");
}

async fn over_tcp(server: &Running, alpn: &str) -> TlsStream<tokio::net::TcpStream> {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(Certificate::shared().der()).unwrap();
    let tls = rustls::ClientConfig::builder_with_provider(std::sync::Arc::new(provider));
    let tls = tls.with_safe_default_protocol_versions().unwrap();
    let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![alpn.into()];
    let stream = tokio::net::TcpStream::connect(server.address())
        .await
        .unwrap();
    let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(std::sync::Arc::new(tls));
    soon(connector.connect(name, stream)).await.unwrap()
}

/// A connection on which no request comes is closed, however its client goes about it.
#[tokio::test]
async fn connections_over_tcp_without_a_request_are_closed() {
    let server = with_limits(|limits| limits.header_time = Duration::from_millis(200));
    let settings = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let cases: [(&str, &[u8]); 6] = [
        ("http/1.1", b""),
        ("http/1.1", b"P"),
        ("http/1.1", b"GET / HTTP/1.1\r\nhost: a\r\nx: "),
        ("h2", b""),
        ("h2", b"PRI * HTTP"),
        ("h2", settings),
    ];
    for (alpn, bytes) in cases {
        let mut stream = over_tcp(&server, alpn).await;
        stream.write_all(bytes).await.unwrap();
        stream.flush().await.unwrap();
        // A response is read to its end; an end without close_notify is one, too.
        let _ = soon(stream.read_to_end(&mut Vec::new())).await;
    }
}

/// The first integers of a stream tell whether it belongs to a session; without them it is reset in time.
#[tokio::test]
async fn streams_whose_beginning_does_not_come_are_reset() {
    let mut limits = Limits::default();
    limits.header_time = Duration::from_millis(200);
    let plain = Server::builder().limits(limits.clone());
    let sessions = Server::builder().limits(limits);
    let sessions = sessions.webtransport(hybriq_http::webtransport::Limits::default());
    for builder in [plain, sessions] {
        let server = run_with(builder, Certificate::shared().config(), Router::new());
        let mut client = Http3::connect(server.address()).await;
        // Without a request, the connection would end as well.
        assert_eq!(client.ask(post("/", "fine")).await.unwrap().body(), "fine");
        // Half an integer, the signal of a session without its id, and half a request.
        for bytes in [&[0x40][..], &[0x40, 0x41], &POST[..4]] {
            let (_send, mut recv) = send(&client, bytes).await;
            let ended = soon(recv.read_to_end(10)).await;
            assert!(ended.is_err(), "{bytes:?} got {ended:?}");
        }
        assert_eq!(client.ask(post("/", "fine")).await.unwrap().body(), "fine");
    }
}

/// Requests that are reset before their fields are whole cost little, but not nothing: they count as
/// cancelled.
#[tokio::test]
async fn a_client_that_resets_requests_before_their_fields_is_disconnected() {
    let server = with_limits(|limits| limits.cancelled = 20);
    let mut other = Http3::connect(server.address()).await;
    let client = Http3::connect(server.address()).await;
    soon(async {
        while client.connection.close_reason().is_none() {
            let Ok((mut send, recv)) = client.connection.open_bidi().await else {
                break;
            };
            let _ = send.write_all(&POST[..4]).await;
            send.reset(0x10c);
            drop(recv);
            tokio::task::yield_now().await;
        }
    })
    .await;
    let reason = soon(client.connection.closed()).await.to_string();
    assert!(reason.contains(&0x107.to_string()), "{reason}");
    assert_eq!(other.ask(post("/", "fine")).await.unwrap().body(), "fine");
}

/// A field section of HTTP/2 that does not end is cut off at the limit (CVE-2024-27316).
#[tokio::test]
async fn endless_continuation_frames_are_cut_off() {
    let server = with_limits(|limits| limits.header_list = 16 << 10);
    let mut stream = over_tcp(&server, "h2").await;
    let start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\0\0\0\0\x01\x82";
    stream.write_all(start).await.unwrap();
    // CONTINUATION with literal fields of 1,000 bytes.
    let mut frame = vec![0, 3, 0xee, 9, 0, 0, 0, 0, 1, 0, 1, b'x', 0x7f, 0xe9, 0x06];
    frame.resize(9 + 0x3ee, b'y');
    let (mut read, mut write) = tokio::io::split(stream);
    let flood = async { while write.write_all(&frame).await.is_ok() {} };
    let ended = async { read.read_to_end(&mut Vec::new()).await };
    soon(async {
        tokio::select! {
            () = flood => {}
            _ = ended => {}
        }
    })
    .await;
    let mut client = Http3::with(server.address(), client_config(&Certificate::shared())).await;
    assert_eq!(client.ask(post("/", "fine")).await.unwrap().body(), "fine");
}

/// Requests that fail before their fields have come, or that are malformed, count as cancelled, however they
/// fail.
#[tokio::test]
async fn a_client_whose_requests_fail_is_disconnected() {
    // Nothing; an unknown frame; a frame that is too long; `:method` twice; a length that is no number; a field of
    // connections; a pseudo-header field in trailers; trailers that are larger than allowed.
    let twice = [1, 9, 0, 0, 0xd1, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a'];
    let length = [&[1, 11], &POST[2..], b"\x54\x01x"].concat();
    let upgrade = [&[1, 19], &POST[2..], b"\x27\x00upgrade\x01x"].concat();
    let trailers = [POST, &[1, 3, 0, 0, 0xd1]].concat();
    // `age: 0` from the static table counts 36 bytes.
    let large = [POST, &[1, 0x47, 0xd2, 0, 0], &[0xc2; 2000]].concat();
    for bytes in [
        &[][..],
        &[0x21, 0],
        &[1, 0x80, 0x10, 0, 0],
        &twice,
        &length,
        &upgrade,
        &trailers,
        &large,
    ] {
        let server = with_limits(|limits| limits.cancelled = 5);
        let client = Http3::connect(server.address()).await;
        // Five are looked at, and five are refused unseen.
        for _ in 0..20 {
            let Ok((mut send, mut recv)) = soon(client.connection.open_bidi()).await else {
                break;
            };
            if send.write_all(bytes).await.is_ok() {
                send.finish();
            }
            let _ = soon(recv.read_to_end(100)).await;
        }
        let reason = soon(client.connection.closed()).await;
        let hybriq::ConnectionError::Application { code, .. } = reason else {
            panic!("{bytes:x?}: {reason}");
        };
        assert_eq!(code, 0x107, "H3_EXCESSIVE_LOAD after {bytes:x?}");
    }
}

/// A map of fields takes 24,576, whatever size is allowed: with more, the answer is 431.
#[tokio::test]
async fn more_fields_than_a_map_takes_are_refused() {
    let server = with_limits(|limits| limits.header_list = u64::MAX);
    let mut client = Http3::connect(server.address()).await;
    // `age: 0` from the static table, 40,000 times; then names that differ.
    let get = [0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a'];
    let indexed = [0xc2].repeat(40_000);
    let mut literal = Vec::new();
    for index in 0..40_000 {
        literal.extend([0x25]);
        literal.extend(format!("{index:05}").bytes());
        literal.push(0);
    }
    for many in [indexed, literal] {
        let len = u32::try_from(get.len() + many.len()).unwrap() | 0x8000_0000;
        let headers = [&[1][..], &len.to_be_bytes(), &get, &many].concat();
        let (mut send, mut recv) = send(&client, &headers).await;
        send.finish();
        let response = soon(recv.read_to_end(10_000)).await.unwrap();
        let is_431 = response.ends_with(b"\x03431");
        assert!(is_431, "{response:x?}");
    }
    assert_eq!(client.ask(post("/", "fine")).await.unwrap().body(), "fine");

    // HTTP/2: literals of another name each, in CONTINUATION frames.
    let mut stream = over_tcp(&server, "h2").await;
    let start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x03\x01\x01\0\0\0\x01\x82\x87\x84";
    let mut bytes = start.to_vec();
    for part in 0..20 {
        let mut fields = Vec::new();
        for index in 0..2_000 {
            fields.extend([0, 5]);
            fields.extend(format!("{:05}", 2_000 * part + index).bytes());
            fields.push(0);
        }
        let flags = if part == 19 { 4 } else { 0 };
        bytes.extend((fields.len() as u32).to_be_bytes().into_iter().skip(1));
        bytes.extend([9, flags, 0, 0, 0, 1]);
        bytes.extend(fields);
    }
    let mut response = Vec::new();
    soon(async {
        stream.write_all(&bytes).await.unwrap();
        // `:status` 431, plain or in Huffman code.
        while !response
            .windows(3)
            .any(|three| three == b"431" || three == [0x69, 0x90, 0xff])
        {
            assert!(
                stream.read_buf(&mut response).await.unwrap() > 0,
                "{response:x?}"
            );
        }
    })
    .await;

    let mut request = support::get("/");
    for index in 0..1_000 {
        let name = http::HeaderName::try_from(format!("x{index}")).unwrap();
        let value = http::HeaderValue::from_static("1");
        request.headers_mut().append(name, value);
    }
    let answer = support::ask_over_tcp(server.address(), "http/1.1", None, request);
    let status = soon(answer).await.unwrap().status();
    assert_eq!(status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    assert_eq!(client.ask(post("/", "fine")).await.unwrap().body(), "fine");
}
