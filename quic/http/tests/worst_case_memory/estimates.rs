//! What is counted for the budget of memory, against what is allocated.

use std::fmt::Write as _;

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    routing::any,
};
use http_body_util::BodyExt as _;

use crate::{
    Server, fields,
    http2::{self, END_HEADERS, END_STREAM, HEADERS},
    http3,
    peer::Peer,
    raw::Raw,
    sessions::{self, flood},
    support::{Http3, get, soon},
};

const CONNECTIONS: u64 = 16;

/// Bytes that an idle connection of HTTP/3 holds with its transport, at most.
const IDLE_HTTP3: u64 = 22 << 10;

/// Requests at once on a connection of HTTP/2 or HTTP/3.
const REQUESTS: u64 = 8;

/// Keeps the request, and answers nothing.
async fn silent(request: Request) {
    std::future::pending::<()>().await;
    drop(request);
}

/// Answers without an end, and does not read the request.
async fn lasting() -> Body {
    Body::from_stream(futures_util::stream::pending::<Result<Bytes, axum::Error>>())
}

/// Reads the request with its trailers, and answers nothing.
async fn reading(request: Request) {
    let mut body = request.into_body();
    while let Some(Ok(_)) = body.frame().await {}
    std::future::pending::<()>().await;
}

fn router() -> Router {
    let router = Router::new().route("/silent", any(silent));
    let router = router.route("/lasting", any(lasting));
    router.route("/reading", any(reading))
}

/// Returns the names of fields of an ordinary request.
fn names() -> Vec<String> {
    let names = ["agent", "accept", "lang", "coding", "cookie"];
    names.map(str::to_owned).to_vec()
}

/// Returns the names of fields of a request that are many, or take the most memory.
fn many() -> [Vec<String>; 2] {
    let different = (0..200).map(|index| format!("x-{index}")).collect();
    [different, fields::names(32 << 10)]
}

/// Waits until so many requests are under way.
async fn under_way(server: &Server, requests: u64) {
    let entries = || server.running.handle.census().entries("requests") as u64;
    soon(async {
        while entries() != requests {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Waits until so many bytes are counted.
async fn counted(server: &Server, bytes: u64) {
    soon(async {
        while server.running.handle.memory() != bytes {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Asserts that what is counted is what is held, within a fifth.
async fn check(server: &Server, what: &str) {
    let held = server.held(1).await;
    let counted = server.running.handle.memory();
    assert!(5 * counted >= 4 * held, "{what}: {counted} of {held} bytes");
    assert!(5 * counted <= 6 * held, "{what}: {counted} of {held} bytes");
}

#[tokio::test]
async fn connections_and_requests_over_http1_count_for_what_they_hold() {
    let server = Server::start(router()).await;
    let mut clients = Vec::new();
    for _ in 0..2 * CONNECTIONS {
        let mut client = Raw::connect(&server, "http/1.1").await;
        client.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        clients.push(client);
    }
    check(&server, "idle connections of HTTP/1.1").await;
    let mut head = "GET /silent HTTP/1.1\r\nhost: a\r\n".to_owned();
    for name in names() {
        head.push_str(&name);
        head.push_str(": x\r\n");
    }
    head.push_str("\r\n");
    let (some, others) = clients.split_at_mut(CONNECTIONS as usize);
    for client in some {
        client.send(head.as_bytes()).await;
    }
    under_way(&server, CONNECTIONS).await;
    check(&server, "requests of HTTP/1.1").await;
    // It takes no more than 100.
    let mut head = "GET /silent HTTP/1.1\r\nhost: a\r\n".to_owned();
    for index in 0..90 {
        let _ = write!(head, "x-{index}: ");
        head.push_str(&"x".repeat(200));
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    for client in others {
        client.send(head.as_bytes()).await;
    }
    under_way(&server, 2 * CONNECTIONS).await;
    check(&server, "large requests of HTTP/1.1").await;
}

#[tokio::test]
async fn connections_and_requests_over_http2_count_for_what_they_hold() {
    let server = Server::start(router()).await;
    let flags = END_HEADERS | END_STREAM;
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut client = http2::connect(&server, 1 << 16).await;
        let head = http2::request("/", &[]);
        client.send(&http2::frame(HEADERS, flags, 1, &head)).await;
        clients.push(client);
    }
    check(&server, "idle connections of HTTP/2").await;
    for client in &mut clients {
        for index in 1..=REQUESTS as u32 {
            let head = http2::request("/silent", &names());
            let frame = http2::frame(HEADERS, flags, 2 * index + 1, &head);
            client.send(&frame).await;
        }
    }
    under_way(&server, CONNECTIONS * REQUESTS).await;
    check(&server, "requests of HTTP/2").await;
    let mut requests = CONNECTIONS * REQUESTS;
    for (index, names) in (REQUESTS as u32 + 1..).zip(many()) {
        for client in &mut clients {
            let head = http2::request("/silent", &names);
            let frame = http2::frame(HEADERS, flags, 2 * index + 1, &head);
            client.send(&frame).await;
        }
        requests += CONNECTIONS;
        under_way(&server, requests).await;
        check(&server, "large requests of HTTP/2").await;
    }
}

/// Both parts that keep their buffers, and parts that fill them.
#[tokio::test]
async fn bodies_over_http2_count_for_what_they_hold() {
    for (count, len, rest) in [(2000, 256, 7900), (60, 16 << 10, 0)] {
        let server = Server::start(router()).await;
        let mut client = http2::connect(&server, 0).await;
        let head = http2::request("/silent", &[]);
        client
            .send(&http2::frame(HEADERS, END_HEADERS, 1, &head))
            .await;
        let data = http2::frame(http2::DATA, 0, 1, &vec![0; len]);
        let rest = http2::frame(http2::UNKNOWN, 0, 0, &vec![0; rest]);
        for _ in 0..count {
            client.send(&[&data[..], &rest].concat()).await;
        }
        check(&server, "bodies of HTTP/2").await;
    }
}

/// The service has dropped the body of a request whose response lasts.
#[tokio::test]
async fn data_for_no_reader_does_not_count() {
    let server = Server::start(router()).await;
    let mut client = http2::connect(&server, 1 << 16).await;
    let head = http2::request("/lasting", &[]);
    let head = http2::frame(HEADERS, END_HEADERS, 1, &head);
    client.send(&head).await;
    under_way(&server, 1).await;
    server.quiet().await;
    let before = server.running.handle.memory();
    for _ in 0..1000 {
        let data = http2::frame(http2::DATA, 0, 1, &[0; 256]);
        client.send(&data).await;
    }
    server.quiet().await;
    assert_eq!(server.running.handle.memory(), before);
}

/// Those that the service does not read, also if it has dropped the body before they came.
#[tokio::test]
async fn trailers_over_http2_count_for_what_they_hold() {
    let server = Server::start(router()).await;
    let mut client = http2::connect(&server, 1 << 16).await;
    let trailers = http2::section(&fields::names(64 << 10));
    let mut id = 1;
    for path in ["/silent", "/lasting", "/reading"] {
        let before = server.running.handle.memory();
        let first = id;
        for _ in 0..REQUESTS {
            let head = http2::request(path, &[]);
            let head = http2::frame(HEADERS, END_HEADERS, id, &head);
            client.send(&head).await;
            id += 2;
        }
        under_way(&server, REQUESTS).await;
        server.quiet().await;
        let without = server.running.handle.memory();
        let flags = END_HEADERS | END_STREAM;
        for id in (first..id).step_by(2) {
            let frame = http2::frame(HEADERS, flags, id, &trailers);
            client.send(&frame).await;
        }
        if path == "/reading" {
            counted(&server, without).await;
        } else {
            check(&server, "trailers of HTTP/2").await;
        }
        for id in (first..id).step_by(2) {
            let code = 8_u32.to_be_bytes();
            client
                .send(&http2::frame(http2::RST_STREAM, 0, id, &code))
                .await;
        }
        counted(&server, before).await;
    }
}

#[tokio::test]
async fn heads_that_are_not_whole_count_for_what_they_hold() {
    for alpn in ["http/1.1", "h2"] {
        let server = Server::start(router()).await;
        let (start, end) = if alpn == "h2" {
            let head = http2::request("/", &fields::names(60 << 10));
            let flags = END_HEADERS;
            let start = http2::frame(HEADERS, END_STREAM, 1, &head);
            (start, http2::frame(http2::CONTINUATION, flags, 1, &[]))
        } else {
            let start = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}", "x".repeat(60_000));
            (start.into_bytes(), b"\r\n\r\n".to_vec())
        };
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            let client = if alpn == "h2" {
                http2::connect(&server, 1 << 16).await
            } else {
                Raw::connect(&server, alpn).await
            };
            clients.push(client);
        }
        server.quiet().await;
        let before = server.running.handle.memory();
        for client in &mut clients {
            client.send(&start).await;
        }
        check(&server, alpn).await;
        let unread = || server.running.handle.census().entries("unread input") as u64;
        soon(async {
            while unread() != CONNECTIONS {
                tokio::task::yield_now().await;
            }
        })
        .await;
        for client in &mut clients {
            client.send(&end).await;
        }
        counted(&server, before).await;
        assert_eq!(unread(), 0, "{alpn}");
    }
}

#[tokio::test]
async fn connections_and_requests_over_http3_count_for_what_they_hold() {
    let server = Server::start(router()).await;
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut client = Http3::connect(server.address()).await;
        client.ask(get("/")).await.unwrap();
        clients.push(client);
    }
    check(&server, "idle connections of HTTP/3").await;
    let held = server.held(CONNECTIONS).await;
    assert!(held <= IDLE_HTTP3, "an idle connection holds {held} bytes");
    let head = http3::headers("/silent", &names());
    let mut streams = Vec::new();
    for client in &clients {
        for _ in 0..REQUESTS {
            let (mut send, recv) = soon(client.connection.open_bidi()).await.unwrap();
            soon(send.write_all(&head)).await.unwrap();
            send.finish();
            streams.push((send, recv));
        }
    }
    under_way(&server, CONNECTIONS * REQUESTS).await;
    check(&server, "requests of HTTP/3").await;
    for (index, names) in many().into_iter().enumerate() {
        let head = http3::headers("/silent", &names);
        for client in &clients {
            let (mut send, recv) = soon(client.connection.open_bidi()).await.unwrap();
            soon(send.write_all(&head)).await.unwrap();
            send.finish();
            streams.push((send, recv));
        }
        under_way(&server, CONNECTIONS * (REQUESTS + 1 + index as u64)).await;
        check(&server, "large requests of HTTP/3").await;
    }
    let head = http3::headers("/silent", &vec!["a".repeat(30); 2000]);
    for client in &clients {
        let (mut send, recv) = soon(client.connection.open_bidi()).await.unwrap();
        soon(send.write_all(&head[..60_000])).await.unwrap();
        streams.push((send, recv));
    }
    under_way(&server, CONNECTIONS * (REQUESTS + 3)).await;
    check(&server, "incomplete requests of HTTP/3").await;
}

#[tokio::test]
async fn datagrams_of_sessions_count_for_what_they_hold() {
    let server = sessions::start().await;
    let client = Peer::connect(server.address()).await;
    let session = client.session().await;
    flood(&server, &client, session.id(), 256 << 10).await;
    check(&server, "datagrams of sessions").await;
}
