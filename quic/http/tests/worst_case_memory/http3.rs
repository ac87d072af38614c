//! HTTP/3.

use std::net::SocketAddr;

use axum::{Router, extract::Request, routing::any};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::BodyExt as _;
use hybriq::{Connection, Endpoint, SendStream};

use crate::{
    Server, fields,
    support::{Certificate, Http3, client_config, soon},
};

/// Requests at once, of which a client may have as many.
const REQUESTS: u64 = 100;

/// Bytes of fields that a request may have.
const FIELDS: usize = 64 << 10;

const CONNECTIONS: u64 = 32;

/// Reads the body, keeps the fields and answers nothing.
async fn silent(request: Request) {
    let (parts, body) = request.into_parts();
    let _ = body.collect().await;
    std::future::pending::<()>().await;
    drop(parts);
}

/// Returns the frame with the fields of a request.
pub(crate) fn headers(path: &str, names: &[String]) -> Vec<u8> {
    let mut section = vec![0, 0, 0xd4, 0xd7, 0x50, 1, b'a', 0x51, path.len() as u8];
    section.extend(path.bytes());
    for name in names {
        // A literal name (RFC 9204 §4.5.6).
        section.push(0x20 | name.len() as u8);
        section.extend(name.bytes());
        section.push(0);
    }
    let mut frame = vec![1];
    frame.extend((section.len() as u32 | 0x8000_0000).to_be_bytes());
    frame.extend(section);
    frame
}

/// Entries of a table that has doubled, and is full.
const ENTRIES: usize = 65;

/// Bytes of the transport's part for a connection that these clients do not reach: other tests do.
const UNREACHED: u64 = 8 << 10;

/// Answers with fields that fill a table.
async fn large() -> HeaderMap {
    let field = |index| {
        let name = HeaderName::try_from(format!("x{index:02}")).unwrap();
        (
            name,
            HeaderValue::from_static("1234567890123456789012345678"),
        )
    };
    (0..ENTRIES).map(field).collect()
}

/// Connects a client that says nothing of HTTP/3.
async fn connect(server: SocketAddr) -> (Endpoint, Connection) {
    let endpoint = Endpoint::client(client_config(&Certificate::shared())).unwrap();
    let connection = soon(endpoint.connect(server, "localhost")).await.unwrap();
    (endpoint, connection)
}

/// Opens a unidirectional stream that begins with these bytes.
async fn open((_, connection): &(Endpoint, Connection), bytes: &[u8]) -> SendStream {
    let mut stream = soon(connection.open_uni()).await.unwrap();
    soon(stream.write_all(bytes)).await.unwrap();
    stream
}

#[tokio::test]
async fn the_state_of_http3_reaches_its_worst_case() {
    let router = Router::new().route("/", any(large));
    let server = Server::start(router).await;
    let (mut clients, mut all) = (Vec::new(), Vec::new());
    for _ in 0..CONNECTIONS {
        let client = connect(server.address()).await;
        // SETTINGS with a table of 4096 bytes, for which any number of streams may wait.
        all.push(open(&client, &[0, 4, 6, 1, 0x50, 0, 7, 0x50, 0]).await);
        let mut entries = vec![2, 0x3f, 0xe1, 0x1f];
        for _ in 0..ENTRIES {
            entries.extend([&[0x41, b'x', 30][..], &[b'x'; 30]].concat());
        }
        // A name in Huffman code, which does not end.
        entries.extend([0x7f, 0xe0, 0x76]);
        all.push(open(&client, &entries).await);
        for _ in 0..130 {
            let (mut send, mut recv) = soon(client.1.open_bidi()).await.unwrap();
            soon(send.write_all(&headers("/", &[]))).await.unwrap();
            send.finish();
            soon(recv.read_to_end(10_000)).await.unwrap();
        }
        clients.push(client);
    }
    // Each part fills a buffer that has doubled, but for the last.
    for part in [947, 950, 1900, 3800, 7600, 20] {
        server.quiet().await;
        for entries in all.iter_mut().skip(1).step_by(2) {
            soon(entries.write_all(&vec![0; part])).await.unwrap();
        }
    }
    let most = server.worst.transport.connection + server.worst.http3 - UNREACHED;
    server.reaches("state of http3", CONNECTIONS, most).await;
}

#[tokio::test]
async fn requests_over_http3_reach_their_worst_case() {
    let router = Router::new().route("/silent", any(silent));
    let mut server = Server::start(router).await;
    let client = Http3::connect(server.address()).await;
    server.begin().await;
    let head = headers("/silent", &fields::names(FIELDS - 200));
    // The frame of trailers but for its last bytes.
    let mut trailers = vec![1, 0x80, 1, 0, 0];
    trailers.resize(FIELDS, 0);
    let mut all = Vec::new();
    for _ in 0..REQUESTS {
        let (mut send, recv) = soon(client.connection.open_bidi()).await.unwrap();
        soon(send.write_all(&head)).await.unwrap();
        all.push((send, recv));
    }
    // Each part fills a buffer that has doubled.
    let mut sent = 0;
    while sent < trailers.len() {
        server.quiet().await;
        let end = (2 * sent).clamp(1000, trailers.len());
        for (send, _) in &mut all {
            soon(send.write_all(&trailers[sent..end])).await.unwrap();
        }
        sent = end;
    }
    // The transport keeps a chunk of each stream, which is a part of what it has for data.
    let most = server.worst.http3_requests + REQUESTS * (32 << 10);
    server.reaches("requests of http3", 1, most).await;
}
