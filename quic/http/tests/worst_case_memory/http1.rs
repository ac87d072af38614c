//! HTTP/1.1, and the records of TLS that its clients do not take.

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    routing::any,
};
use http_body_util::BodyExt as _;

use crate::{
    Server,
    raw::{RECORD, Raw},
};

const CONNECTIONS: u64 = 4;

/// Length of the parts of a response.
const PART: usize = 4096;

/// Keeps the fields, answers without an end, and drops what it reads of the body.
async fn endless(request: Request) -> Body {
    let (parts, mut body) = request.into_parts();
    tokio::spawn(async move { while let Some(Ok(_)) = body.frame().await {} });
    let pieces = futures_util::stream::repeat_with(move || {
        let _ = &parts;
        Ok::<_, std::io::Error>(Bytes::from(vec![7; PART]))
    });
    Body::from_stream(pieces)
}

/// Returns a head that is as long as it may be, with as many fields as there may be.
fn head(most: usize) -> Vec<u8> {
    let start = "POST /endless HTTP/1.1\r\nhost: a\r\ncontent-length: 10000000\r\n";
    let mut head = start.as_bytes().to_vec();
    for index in 0..97 {
        head.extend(format!("x{index}:\r\n").bytes());
    }
    head.extend(b"x:");
    head.resize(most - 4, b'x');
    head.extend(b"\r\n\r\n");
    head
}

#[tokio::test]
async fn a_connection_over_http1_reaches_its_worst_case() {
    let router = Router::new().route("/endless", any(endless));
    let server = Server::start(router).await;
    let mut all = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut client = Raw::connect(&server, "http/1.1").await;
        // Its fields count 32 bytes more each, and separators less.
        let head = head(62_500);
        // In these parts, the buffer doubles just before it would be large enough.
        let (first, rest) = head.split_at(8192);
        let (second, rest) = rest.split_at(RECORD);
        for part in [first, second, rest] {
            let before = server.quiet().await;
            client.send(part).await;
            server.grows(before).await;
        }
        for _ in 0..4 {
            client.send(&[3; RECORD]).await;
            server.quiet().await;
        }
        client.send_part_of_message().await;
        all.push(client);
    }
    let worst = &server.worst;
    let most = worst.tls + worst.http1 + worst.http1_response;
    server.reaches("http1", CONNECTIONS, most).await;
}
