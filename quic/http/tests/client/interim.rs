//! Interim responses (1xx): some are passed over, and endless ones end their request.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use h3::server;
use http::{Response, StatusCode, Version};
use hybriq::Endpoint;
use hybriq_http::{ClientError, Http3};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::{
    common::{bytes, client, get, uri},
    support::{Certificate, soon},
    tcp::{HEADERS, RST_STREAM, frame, http1_head, http2_begin, http2_read, listen, write},
};

/// Interim responses to a request that the client passes over.
const MOST: usize = 16;

const VERSIONS: [Version; 3] = [Version::HTTP_11, Version::HTTP_2, Version::HTTP_3];

/// Interim responses to each request for `/`.
#[derive(Clone, Copy, Debug)]
enum Hints {
    Count(usize),
    /// There is no final response.
    Endless,
}

impl Hints {
    /// Returns true if there is one more after `sent`.
    fn has_more(self, sent: usize) -> bool {
        match self {
            Self::Count(count) => sent < count,
            Self::Endless => true,
        }
    }
}

/// A server that sends interim responses, and then `x`. Counts its requests.
async fn server(version: Version, hints: Hints) -> (SocketAddr, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let address = match version {
        Version::HTTP_11 => {
            let serve = move |stream| http1(stream, hints, count.clone());
            listen("http/1.1", serve).await
        }
        Version::HTTP_2 => {
            let serve = move |stream| http2(stream, hints, count.clone());
            listen("h2", serve).await
        }
        _ => {
            let config = Certificate::shared().config().alpn([hybriq_h3::ALPN]);
            let endpoint = Endpoint::server("127.0.0.1:0", config).unwrap();
            let address = endpoint.local_address();
            tokio::spawn(http3(endpoint, hints, count));
            address
        }
    };
    (address, asked)
}

async fn http1(mut stream: TlsStream<TcpStream>, hints: Hints, asked: Arc<AtomicUsize>) {
    while http1_head(&mut stream).await.is_some() {
        asked.fetch_add(1, Ordering::Relaxed);
        let mut sent = 0;
        while hints.has_more(sent) {
            if !write(
                &mut stream,
                b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n",
            )
            .await
            {
                return;
            }
            sent += 1;
        }
        write(
            &mut stream,
            b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx",
        )
        .await;
    }
}

async fn http2(mut stream: TlsStream<TcpStream>, hints: Hints, asked: Arc<AtomicUsize>) {
    http2_begin(&mut stream).await;
    while let Some(request) = http2_read(&mut stream).await {
        if request.kind != HEADERS {
            continue;
        }
        let id = request.id;
        asked.fetch_add(1, Ordering::Relaxed);
        let mut sent = 0;
        while hints.has_more(sent) {
            // `:status`, without a table.
            let hint = frame(HEADERS, 4, id, b"\x08\x03103");
            if !write(&mut stream, &hint).await {
                return;
            }
            sent += 1;
        }
        if matches!(hints, Hints::Count(_)) {
            write(&mut stream, &answer(id)).await;
        }
    }
}

/// Returns a response of HTTP/2.
fn answer(id: u32) -> Vec<u8> {
    let mut answer = frame(HEADERS, 4, id, b"\x88");
    answer.extend(frame(0, 1, id, b"x"));
    answer
}

async fn http3(endpoint: Endpoint, hints: Hints, asked: Arc<AtomicUsize>) {
    while let Some(incoming) = endpoint.accept().await {
        let transport = hybriq_h3::adapter::Connection::new(incoming.accept().await.unwrap());
        let mut connection = server::Connection::new(transport).await.unwrap();
        let asked = asked.clone();
        tokio::spawn(async move {
            while let Ok(Some(request)) = connection.accept().await {
                let (_, mut stream) = request.resolve_request().await.unwrap();
                asked.fetch_add(1, Ordering::Relaxed);
                let mut sent = 0;
                while hints.has_more(sent) {
                    let hint = Response::builder().status(StatusCode::EARLY_HINTS);
                    if stream.send_response(hint.body(()).unwrap()).await.is_err() {
                        break;
                    }
                    sent += 1;
                }
                if stream.send_response(Response::new(())).await.is_ok() {
                    let _ = stream.send_data(bytes::Bytes::from("x")).await;
                    let _ = stream.finish().await;
                }
            }
        });
    }
}

fn policy(version: Version) -> Http3 {
    if version == Version::HTTP_3 {
        Http3::Only
    } else {
        Http3::Off
    }
}

#[tokio::test]
async fn interim_responses_are_passed_over() {
    for version in VERSIONS {
        let (address, asked) = server(version, Hints::Count(MOST)).await;
        let client = client(policy(version));
        // Each request has its own count.
        for _ in 0..3 {
            let response = get(&client, address).await;
            assert_eq!(response.status(), StatusCode::OK, "{version:?}");
            assert_eq!(response.version(), version);
            assert_eq!(bytes(response).await, "x");
        }
        assert_eq!(asked.load(Ordering::Relaxed), 3, "{version:?}");
    }
}

/// The request ends with the same error over all versions, and is not repeated.
#[tokio::test]
async fn endless_interim_responses_end_the_request() {
    for version in VERSIONS {
        for hints in [Hints::Count(MOST + 1), Hints::Endless] {
            let (address, asked) = server(version, hints).await;
            let client = client(policy(version));
            let ended = soon(client.get(uri(address, "/"))).await.unwrap_err();
            assert!(
                matches!(ended, ClientError::Interim { most: MOST, .. }),
                "{version:?}, {hints:?}: {ended}"
            );
            assert_eq!(asked.load(Ordering::Relaxed), 1, "{version:?}, {hints:?}");
        }
    }
}

/// Over HTTP/2, requests beside it go on, and the server learns that nobody waits.
#[tokio::test]
async fn other_requests_survive_endless_interim_responses() {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    let address = listen("h2", move |mut stream| {
        count.fetch_add(1, Ordering::Relaxed);
        async move {
            http2_begin(&mut stream).await;
            let mut asked = Vec::new();
            while let Some(read) = http2_read(&mut stream).await {
                if read.kind == HEADERS {
                    asked.push(read.id);
                }
                let hint = |id| frame(HEADERS, 4, id, b"\x08\x03103");
                match (read.kind, asked.as_slice()) {
                    (HEADERS, &[first, second]) => {
                        let mut all = hint(first).repeat(100);
                        all.extend(answer(second));
                        write(&mut stream, &all).await;
                    }
                    (HEADERS, &[first, _, _]) => _ = write(&mut stream, &hint(first)).await,
                    (RST_STREAM, &[first, _, third]) if read.id == first => {
                        write(&mut stream, &answer(third)).await;
                    }
                    _ => {}
                }
            }
        }
    })
    .await;
    let client = client(Http3::Off);
    let first = tokio::spawn(client.get(uri(address, "/")));
    let second = tokio::spawn(client.get(uri(address, "/")));
    let mut outcomes = [soon(first).await.unwrap(), soon(second).await.unwrap()];
    outcomes.sort_by_key(Result::is_ok);
    let [Err(ClientError::Interim { .. }), Ok(_)] = outcomes else {
        panic!("{outcomes:?}")
    };
    get(&client, address).await;
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}
