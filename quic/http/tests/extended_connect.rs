//! Streams of requests that go on as those of another protocol: WebSocket's bytes over HTTP/3 (RFC 9220),
//! HTTP/2 (RFC 8441) and HTTP/1.1.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use axum::{Extension, Router, response::Response, routing::any};
use http::{StatusCode, Version};
use hybriq::{RecvStream, SendStream};
use hybriq_http::{Server, Upgrade};
use support::{Certificate, Http3, Running, agreed, post, run, run_with, soon, upgrade};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Sends everything back, behind the name of the protocol.
async fn echo(version: Version, Extension(upgrade): Extension<Upgrade>) -> Response {
    let protocol = upgrade.protocol().to_owned();
    if protocol == "unknown" {
        let response = Response::builder().status(StatusCode::NOT_IMPLEMENTED);
        return response.body("no such protocol".into()).unwrap();
    }
    tokio::spawn(async move {
        let upgraded = upgrade.upgraded().await.unwrap();
        let (mut reader, mut writer) = tokio::io::split(upgraded);
        writer.write_all(protocol.as_bytes()).await.unwrap();
        writer.flush().await.unwrap();
        tokio::io::copy(&mut reader, &mut writer).await.unwrap();
        writer.shutdown().await.unwrap();
    });
    agreed(version)
}

fn server() -> Running {
    let router = Router::new().route("/echo", any(echo));
    let builder = Server::builder().extended_connect();
    run_with(builder, Certificate::shared().config(), router)
}

/// Encoded fields of a request (RFC 9204 §4.5): indexed ones and literals.
fn connect(protocol: &str, coding: Coding) -> Vec<u8> {
    // CONNECT, `https`; `:authority` and `:path` by the names of the static table.
    let mut section = vec![0, 0, 0xcf, 0xd7, 0x50, 9];
    section.extend(b"localhost");
    section.extend([0x51, 5]);
    section.extend(b"/echo");
    match coding {
        Coding::Plain => {
            section.extend([0x27, 2]);
            section.extend(b":protocol");
        }
        Coding::Huffman => section.extend([0x2f, 0, 0xb9, 0x5d, 0x87, 0x49, 0xc8, 0x7a, 0x3f]),
    }
    section.push(protocol.len() as u8);
    section.extend(protocol.as_bytes());
    let mut frame = vec![1, 0x40, section.len() as u8];
    frame.extend(section);
    frame
}

/// Coding of the name `:protocol`.
#[derive(Clone, Copy, Debug)]
enum Coding {
    Plain,
    Huffman,
}

/// Reads an integer of 1, 2, 4 or 8 bytes (RFC 9000 §16).
async fn integer(recv: &mut RecvStream) -> Option<u64> {
    let mut first = [0];
    recv.read_exact(&mut first).await.ok()?;
    let [first] = first;
    let mut rest = vec![0; (1 << (first >> 6)) - 1];
    recv.read_exact(&mut rest).await.ok()?;
    let join = |number, byte: &u8| number << 8 | u64::from(*byte);
    Some(rest.iter().fold(u64::from(first & 0x3f), join))
}

/// Reads a frame, and returns its type and payload. Servers also send frames of types that nobody knows.
async fn frame(recv: &mut RecvStream) -> Option<(u64, Vec<u8>)> {
    let kind = integer(recv).await?;
    let len = integer(recv).await?;
    let mut payload = vec![0; usize::try_from(len).unwrap()];
    recv.read_exact(&mut payload).await.ok()?;
    Some((kind, payload))
}

async fn begin(client: &Http3, request: &[u8], piece: usize) -> (SendStream, RecvStream) {
    let (mut send, recv) = soon(client.connection.open_bidi()).await.unwrap();
    for piece in request.chunks(piece) {
        send.write_all(piece).await.unwrap();
        // Another packet.
        tokio::task::yield_now().await;
    }
    (send, recv)
}

/// Any protocol passes, however its name is encoded and wherever the packets end.
#[tokio::test]
async fn a_request_goes_on_as_another_protocol_over_http3() {
    let server = server();
    let client = Http3::connect(server.address()).await;
    for coding in [Coding::Plain, Coding::Huffman] {
        for piece in [100, 7, 1] {
            let request = connect("websocket", coding);
            let (mut send, mut recv) = begin(&client, &request, piece).await;
            let (kind, head) = soon(frame(&mut recv)).await.unwrap();
            // `:status` 200.
            assert_eq!(
                (kind, head.get(..3)),
                (1, Some(&[0, 0, 0xd9][..])),
                "{coding:?}"
            );
            send.write_all(&[0, 5]).await.unwrap();
            send.write_all(b" ping").await.unwrap();
            send.finish();
            let mut echoed = Vec::new();
            while let Some((kind, data)) = soon(frame(&mut recv)).await {
                if kind == 0 {
                    echoed.extend(data);
                }
            }
            assert_eq!(echoed, b"websocket ping", "{coding:?}, {piece}");
        }
    }
}

/// The service refuses by another status, whose body comes.
#[tokio::test]
async fn a_service_can_refuse_a_protocol() {
    let server = server();
    let mut client = Http3::connect(server.address()).await;
    let (mut send, mut recv) = begin(&client, &connect("unknown", Coding::Plain), 100).await;
    assert_eq!(soon(frame(&mut recv)).await.unwrap().0, 1);
    let body = soon(frame(&mut recv)).await.unwrap();
    assert_eq!(body, (0, b"no such protocol".to_vec()));
    // A complete answer is no error (RFC 9114 §4.1).
    assert_eq!(soon(send.stopped()).await, Ok(Some(0x100)));
    // A field that looks like the renamed one is only a field.
    let mut request = post("/", "fine");
    request
        .headers_mut()
        .insert("xprotocol", "websocket".parse().unwrap());
    assert_eq!(client.ask(request).await.unwrap().body(), "fine");
}

/// Without the server's leave, `:protocol` makes a request malformed (RFC 8441 §4).
#[tokio::test]
async fn a_server_that_does_not_allow_it_refuses() {
    let server = run(Router::new().route("/echo", any(echo)));
    let mut client = Http3::connect(server.address()).await;
    let (mut send, _recv) = begin(&client, &connect("websocket", Coding::Plain), 100).await;
    assert_eq!(soon(send.stopped()).await, Ok(Some(0x100)));
    assert_eq!(client.ask(post("/", "fine")).await.unwrap().body(), "fine");
}

/// The client's reset reaches the service as an error, and ends nothing else.
#[tokio::test]
async fn a_reset_ends_the_stream_of_the_protocol() {
    let (ended, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |Extension(upgrade): Extension<Upgrade>| {
        let ended = ended.clone();
        async move {
            tokio::spawn(async move {
                let mut upgraded = upgrade.upgraded().await.unwrap();
                let _ = ended.send(upgraded.read(&mut [0]).await.map_err(|error| error.kind()));
            });
            StatusCode::OK
        }
    };
    let router = Router::new().route("/echo", any(handler));
    let builder = Server::builder().extended_connect();
    let server = run_with(builder, Certificate::shared().config(), router);
    let mut client = Http3::connect(server.address()).await;
    let (mut send, mut recv) = begin(&client, &connect("websocket", Coding::Plain), 100).await;
    soon(frame(&mut recv)).await.unwrap();
    send.reset(0x10c);
    let end = soon(ends.recv()).await.unwrap();
    assert_eq!(end, Err(std::io::ErrorKind::ConnectionReset));
    assert_eq!(client.ask(post("/", "fine")).await.unwrap().body(), "fine");
}

#[tokio::test]
async fn a_request_goes_on_as_another_protocol_over_tcp() {
    let server = server();
    for version in [Version::HTTP_2, Version::HTTP_11] {
        let mut upgraded = upgrade(version, server.address(), "/echo").await;
        soon(upgraded.write_all(b" ping")).await.unwrap();
        soon(upgraded.flush()).await.unwrap();
        let mut echoed = [0; 14];
        soon(upgraded.read_exact(&mut echoed)).await.unwrap();
        assert_eq!(&echoed, b"websocket ping", "{version:?}");
    }
}
