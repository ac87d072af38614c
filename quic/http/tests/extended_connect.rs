//! Streams of requests that go on as those of another protocol: WebSocket's bytes over HTTP/3 (RFC 9220),
//! HTTP/2 (RFC 8441) and HTTP/1.1.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Extension, Router,
    body::Body,
    extract::{
        Request,
        ws::{Message, WebSocket, WebSocketUpgrade},
    },
    response::Response,
    routing::any,
};
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, Method, StatusCode, Version};
use http_body_util::{BodyExt as _, Empty};
use hybriq::{RecvStream, SendStream, tls::Side};
use hybriq_h3::{Config, Connection, Received, Receiver, Settings};
use hybriq_http::{Client, Forward, Limits, Server, ServerBuilder, Upgrade, webtransport};
use hyper_util::rt::{TokioExecutor, TokioIo};
use support::{
    Certificate, Http3, Running, agreed, client_config, connect_tls, post, run, run_with, soon,
    upgrade,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{self, protocol::Role},
};

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
    section.extend([0x27, 14]);
    section.extend(b"sec-websocket-version");
    section.extend(b"\x0213");
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
    let (send, mut recv) = begin(&client, &connect("unknown", Coding::Plain), 100).await;
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
    let (send, _recv) = begin(&client, &connect("websocket", Coding::Plain), 100).await;
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

/// A stream of bytes in both directions.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Opens a WebSocket at `/echo`.
async fn websocket(version: Version, server: &Running) -> WebSocketStream<Box<dyn Duplex>> {
    let stream: Box<dyn Duplex> = if version == Version::HTTP_3 {
        let client = Http3::connect(server.address()).await;
        let request = connect("websocket", Coding::Plain);
        let (mut send, mut recv) = begin(&client, &request, 100).await;
        let (_, head) = soon(frame(&mut recv)).await.unwrap();
        assert_eq!(head.get(..3), Some(&[0, 0, 0xd9][..]));
        let (near, far) = tokio::io::duplex(1 << 10);
        let (mut reader, mut writer) = tokio::io::split(far);
        tokio::spawn(async move {
            let mut data = [0; 60];
            loop {
                let len = reader.read(&mut data).await.unwrap_or(0);
                if len == 0 {
                    return send.finish();
                }
                send.write_all(&[0, len as u8]).await.unwrap();
                send.write_all(&data[..len]).await.unwrap();
            }
        });
        tokio::spawn(async move {
            // It lives as long as the stream.
            let _client = client;
            while let Some((kind, data)) = frame(&mut recv).await {
                if kind == 0 && writer.write_all(&data).await.is_err() {
                    return;
                }
            }
            // An end that is none would leave the client waiting.
            assert!(recv.is_finished());
            let _ = writer.shutdown().await;
        });
        Box::new(near)
    } else {
        Box::new(upgrade(version, server.address(), "/echo").await)
    };
    WebSocketStream::from_raw_socket(stream, Role::Client, None).await
}

/// Number and length of the messages of a flood.
const FLOOD: (usize, usize) = (1000, 64 << 10);

/// A server with a handler of axum, which counts the messages that it has sent.
fn chat(stall_time: Duration) -> (Running, Arc<AtomicUsize>) {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    let talk = async move |mut socket: WebSocket| {
        while let Some(Ok(message)) = socket.recv().await {
            let Message::Text(text) = message else {
                continue;
            };
            if text == "flood" {
                for _ in 0..FLOOD.0 {
                    let message = Message::Binary(vec![7; FLOOD.1].into());
                    if socket.send(message).await.is_err() {
                        return;
                    }
                    counted.fetch_add(1, Ordering::SeqCst);
                }
                // Without a Close frame: the handler is through.
                return;
            }
            socket.send(Message::Text(text)).await.unwrap();
        }
    };
    let handler = async move |upgrade: WebSocketUpgrade| upgrade.on_upgrade(talk);
    let router = Router::new().route("/echo", any(handler));
    let router = router.route("/read", any(async |body: Body| drop(body.collect().await)));
    let mut limits = Limits::default();
    limits.stall_time = stall_time;
    let builder = Server::builder().extended_connect().limits(limits);
    let server = run_with(builder, Certificate::shared().config(), router);
    (server, sent)
}

const VERSIONS: [Version; 3] = [Version::HTTP_11, Version::HTTP_2, Version::HTTP_3];

/// A proxy that passes everything on to a server.
fn proxy(upstream: &Running) -> Running {
    let builder = Client::builder().http3(hybriq_http::Http3::Off);
    let builder = builder.resolve("localhost", [upstream.address()]);
    let client = builder.build(client_config(&Certificate::shared()));
    let (client, port) = (client.unwrap(), upstream.address().port());
    let pass_on = async move |request: Request| -> Result<_, StatusCode> {
        let mut forward = Forward::of(request)?;
        let uri = forward.request_mut().uri_mut();
        *uri = format!("https://localhost:{port}{}", uri.path())
            .parse()
            .unwrap();
        let answer = forward.send(&client).await;
        answer.map_err(|_| StatusCode::BAD_GATEWAY)
    };
    let router = Router::new().route("/echo", any(pass_on.clone()));
    let router = router.route("/", any(pass_on));
    let builder = Server::builder().extended_connect();
    run_with(builder, Certificate::shared().config(), router)
}

#[tokio::test]
async fn handlers_of_axum_serve_websockets_over_all_versions() {
    let (server, _) = chat(Duration::from_secs(60));
    let proxy = proxy(&server);
    for (server, version) in [&server, &proxy]
        .into_iter()
        .flat_map(|server| VERSIONS.map(|version| (server, version)))
    {
        let mut socket = websocket(version, server).await;
        for text in ["one", "another"] {
            soon(socket.send(text.into())).await.unwrap();
            let message = soon(socket.next()).await.unwrap().unwrap();
            assert_eq!(message, tungstenite::Message::from(text), "{version:?}");
        }
        soon(socket.close(None)).await.unwrap();
        let message = soon(socket.next()).await.unwrap().unwrap();
        assert!(message.is_close(), "{version:?}: {message}");
        let end = soon(socket.next()).await;
        // axum leaves out the end of TLS.
        assert!(end.is_none() || version == Version::HTTP_11, "{version:?}");
    }
}

/// The handler waits for the client, and what it has sent arrives although it drops the stream.
#[tokio::test]
async fn a_websocket_has_the_pace_of_its_client_and_loses_nothing() {
    let (server, sent) = chat(Duration::from_secs(60));
    for version in VERSIONS {
        sent.store(0, Ordering::SeqCst);
        let mut socket = websocket(version, &server).await;
        soon(socket.send("flood".into())).await.unwrap();
        for number in 0..FLOOD.0 {
            let message = soon(socket.next()).await.unwrap().unwrap();
            assert_eq!(message.len(), FLOOD.1, "{version:?}");
            let ahead = sent.load(Ordering::SeqCst) - number.min(sent.load(Ordering::SeqCst));
            assert!(ahead * FLOOD.1 < 32 << 20, "{version:?}: {ahead}");
        }
        let end = soon(socket.next()).await;
        assert!(matches!(end, None | Some(Err(_))), "{version:?}: {end:?}");
    }
}

/// Nobody has to say anything, however long.
#[tokio::test]
async fn a_websocket_may_be_idle() {
    let (server, _) = chat(Duration::from_millis(400));
    let mut sockets = Vec::new();
    for version in VERSIONS {
        sockets.push((version, websocket(version, &server).await));
    }
    for _ in 0..3 {
        // It is answered when the stall time is over.
        let mut client = connect_tls(server.address(), "http/1.1").await.unwrap();
        let head = b"POST /read HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n\r\n";
        client.write_all(head).await.unwrap();
        let mut answer = [0; 12];
        soon(client.read_exact(&mut answer)).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
    for (version, mut socket) in sockets {
        soon(socket.send("there".into())).await.unwrap();
        let message = soon(socket.next()).await.unwrap().unwrap();
        assert_eq!(message, tungstenite::Message::from("there"), "{version:?}");
    }
}

/// Returns the status of the response to a request for a protocol.
async fn status(version: Version, server: &Running, protocol: &'static str) -> StatusCode {
    if version == Version::HTTP_2 {
        let io = TokioIo::new(connect_tls(server.address(), "h2").await.unwrap());
        let shake = hyper::client::conn::http2::handshake(TokioExecutor::new(), io);
        let (mut send, connection) = soon(shake).await.unwrap();
        tokio::spawn(connection);
        soon(send.ready()).await.unwrap();
        let protocol = hyper::ext::Protocol::from_static(protocol);
        let request = http::Request::connect("https://localhost/echo").extension(protocol);
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        return soon(send.send_request(request)).await.unwrap().status();
    }
    let client = Http3::connect(server.address()).await;
    let (send, mut recv) = begin(&client, &connect(protocol, Coding::Plain), 100).await;
    let mut core = Connection::new(Side::Client, Config::new(Settings::new()));
    let mut receiver = Receiver::response(send.id(), &Method::CONNECT);
    loop {
        match receiver.poll(&mut core).unwrap() {
            Received::Head(head) => return head.status(),
            Received::NeedData => {
                let data = soon(recv.read_chunk(usize::MAX)).await.unwrap().unwrap();
                receiver.on_data(data);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A service that answers as if nothing were asked, and a server that has sessions alone (RFC 9220 §3).
#[tokio::test]
async fn a_protocol_that_nobody_serves_gets_501() {
    let serve = |builder: ServerBuilder| {
        let router = Router::new().route("/echo", any(async || "hello"));
        run_with(builder, Certificate::shared().config(), router)
    };
    let server = serve(Server::builder().extended_connect());
    // The server behind the proxy agrees with 200, not with 101.
    let proxy = proxy(&server);
    for server in [&server, &proxy] {
        for version in [Version::HTTP_2, Version::HTTP_3] {
            let status = status(version, server, "websocket").await;
            assert_eq!(status, StatusCode::NOT_IMPLEMENTED, "{version:?}");
        }
    }
    let server = serve(Server::builder().webtransport(webtransport::Limits::default()));
    let status = status(Version::HTTP_3, &server, "websocket").await;
    assert_eq!(status, StatusCode::NOT_IMPLEMENTED);
}

/// Everything but WebSocket stays at the proxy: other protocols, and requests that have come far enough (RFC 9110
/// §7.6.2).
#[tokio::test]
async fn a_proxy_passes_on_no_other_protocol_and_counts() {
    let tell = async |method: Method, fields: HeaderMap| {
        let left = fields.get("max-forwards").cloned();
        let kept = ["upgrade", "connection", "x-hop", "te"].map(|name| fields.contains_key(name));
        format!("{method} {left:?} {kept:?}")
    };
    let server = run(Router::new().route("/", any(tell)));
    let proxy = proxy(&server);
    let mut client = Http3::connect(proxy.address()).await;
    for version in [Version::HTTP_2, Version::HTTP_3] {
        let status = status(version, &proxy, "connect-udp").await;
        assert_eq!(status, StatusCode::NOT_IMPLEMENTED, "{version:?}");
    }
    for (method, left, status, passed) in [
        (Method::OPTIONS, "0", 200, None),
        (Method::TRACE, "0", 501, None),
        (Method::OPTIONS, "7", 200, Some("6")),
        (Method::OPTIONS, "x", 200, Some("x")),
        (Method::GET, "0", 200, Some("0")),
    ] {
        let mut request = post("/", "");
        *request.method_mut() = method.clone();
        let fields = request.headers_mut();
        fields.insert("max-forwards", left.parse().unwrap());
        let answer = client.ask(request).await.unwrap();
        assert_eq!(answer.status(), status, "{method} {left}");
        let tell = |left| format!("{method} Some({left:?}) [false, false, false, false]");
        let expected = passed.map(tell).unwrap_or_default();
        assert_eq!(answer.body(), expected.as_bytes(), "{method} {left}");
    }
    // HTTP/2 in clear text would be out of the proxy's sight.
    let mut stream = connect_tls(proxy.address(), "http/1.1").await.unwrap();
    let head = "GET / HTTP/1.1\r\nhost: localhost\r\nupgrade: h2c\r\nx-hop: 1\r\n\
        connection: upgrade, x-hop, host\r\n\r\n";
    soon(stream.write_all(head.as_bytes())).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"GET None [false, false, false, false]") {
        answer.push(soon(stream.read_u8()).await.unwrap());
    }
}
