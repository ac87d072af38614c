//! HTTP/2.

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    routing::any,
};

use hybriq_http::Limits;

use crate::{Server, fields, raw::Raw};

const REQUESTS: u64 = 100;

/// Bytes of fields that a request may have.
const FIELDS: usize = 64 << 10;

/// Types of frames (RFC 9113 §6).
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const UNKNOWN: u8 = 0x21;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// Largest window.
const WINDOW: u32 = 0x7fff_ffff;

/// Keeps the request, and answers nothing.
async fn silent(request: Request) {
    std::future::pending::<()>().await;
    drop(request);
}

/// Answers without an end.
async fn endless() -> Body {
    let part = || Ok::<_, std::io::Error>(Bytes::from(vec![7; 4096]));
    Body::from_stream(futures_util::stream::repeat_with(part))
}

fn router() -> Router {
    let router = Router::new().route("/silent", any(silent));
    router.route("/endless", any(endless))
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut out = vec![len[1], len[2], len[3], kind, flags];
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// Returns fields, each with a literal name (RFC 7541 §6.2.2) and an empty value.
pub(crate) fn section(names: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    for name in names {
        out.extend([0, name.len() as u8]);
        out.extend(name.bytes());
        out.push(0);
    }
    out
}

pub(crate) fn request(path: &str, names: &[String]) -> Vec<u8> {
    let mut out = vec![0x83, 0x87, 0x01, 1, b'a', 4, path.len() as u8];
    out.extend(path.bytes());
    out.extend(section(names));
    out
}

/// Connects a client that reads nothing.
pub(crate) async fn connect(server: &Server, window: u32) -> Raw {
    let mut client = Raw::connect(server, "h2").await;
    let settings = [&[0, 4][..], &window.to_be_bytes()].concat();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &settings));
    bytes.extend(frame(SETTINGS, 1, 0, &[]));
    client.send(&bytes).await;
    server.quiet().await;
    client
}

#[tokio::test]
async fn the_state_of_http2_reaches_its_worst_case() {
    let server = Server::start(router()).await;
    let mut all = Vec::new();
    for _ in 0..16 {
        all.push(connect(&server, 0).await);
    }
    for client in &mut all {
        client.send_part_of_message().await;
    }
    let most = server.worst.handshake + server.worst.http2;
    server.reaches("state of http2", 16, most).await;
}

#[tokio::test]
async fn requests_over_http2_reach_their_worst_case() {
    let mut server = Server::start(router()).await;
    let mut client = connect(&server, 0).await;
    server.begin().await;
    for index in 0..REQUESTS as u32 {
        let head = request("/silent", &fields::names(FIELDS - 200));
        client
            .send(&frame(HEADERS, END_HEADERS, 2 * index + 1, &head))
            .await;
    }
    for index in 0..REQUESTS as u32 {
        let trailers = section(&fields::names(FIELDS));
        let flags = END_HEADERS | END_STREAM;
        client
            .send(&frame(HEADERS, flags, 2 * index + 1, &trailers))
            .await;
    }
    let most = server.worst.http2_requests;
    server.reaches("requests of http2", 1, most).await;
}

#[tokio::test]
async fn bodies_over_http2_reach_their_worst_case() {
    let mut server = Server::start(router()).await;
    let mut client = connect(&server, 0).await;
    let head = request("/silent", &[]);
    client.send(&frame(HEADERS, END_HEADERS, 1, &head)).await;
    server.begin().await;
    // Each frame keeps the buffer in which it came.
    let rest = frame(UNKNOWN, 0, 0, &[0; 7900]);
    let short = (1 << 19) / 255;
    for len in std::iter::repeat_n(1, short).chain(std::iter::repeat_n(256, 4087)) {
        let frames = [frame(DATA, 0, 1, &vec![0; len]), rest.clone()].concat();
        client.send(&frames).await;
    }
    let most = server.worst.http2_bodies;
    server.reaches("bodies of http2", 1, most).await;
}

#[tokio::test]
async fn responses_over_http2_reach_their_worst_case() {
    let mut server = Server::start(router()).await;
    let mut client = connect(&server, WINDOW).await;
    server.begin().await;
    let window = (WINDOW - 65_535).to_be_bytes();
    let mut bytes = frame(WINDOW_UPDATE, 0, 0, &window);
    // Nothing is read any more once the client takes nothing.
    for index in 0..REQUESTS as u32 {
        let flags = END_HEADERS | END_STREAM;
        let head = request("/endless", &[]);
        bytes.extend(frame(HEADERS, flags, 2 * index + 1, &head));
    }
    client.send(&bytes).await;
    let most = server.worst.http2_responses;
    server.reaches("responses of http2", 1, most).await;
}

/// A client that makes h2 reset streams, and takes nothing, is not read any more.
#[tokio::test]
async fn resets_that_are_not_taken_are_bounded() {
    let mut limits = Limits::default();
    // Those that left before nothing more did.
    limits.cancelled = u32::MAX;
    let builder = hybriq_http::Server::builder().limits(limits);
    let mut server = Server::with(builder, router()).await;
    let mut client = connect(&server, WINDOW).await;
    server.begin().await;
    let window = (WINDOW - 65_535).to_be_bytes();
    let head = request("/endless", &[]);
    let flags = END_HEADERS | END_STREAM;
    let endless = frame(HEADERS, flags, 1, &head);
    client
        .send(&[frame(WINDOW_UPDATE, 0, 0, &window), endless].concat())
        .await;
    server.grows(server.before).await;
    server.begin().await;
    // Streams that depend on themselves (RFC 7540 §5.3.1).
    for index in 1..12_000_u32 {
        let id = 2 * index + 1;
        let priority = [&id.to_be_bytes()[..], &[15]].concat();
        client.send(&frame(PRIORITY, 0, id, &priority)).await;
    }
    let held = server.held(1).await;
    assert!(held > 1 << 20, "only {held} bytes");
    assert!(held < 3 << 20, "{held} bytes");
}
