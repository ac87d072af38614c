//! Interim responses (1xx): some are passed over, and endless ones end their request.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use h3::server;
use http::{Method, Request, Response, StatusCode, Version};
use http_body::{Body, Frame};
use http_body_util::StreamBody;
use hybriq::Endpoint;
use hybriq_http::{Client, ClientError, Http3, OnInterim};
use tokio::{io::AsyncReadExt as _, net::TcpStream, sync::oneshot};
use tokio_rustls::server::TlsStream;

use crate::{
    common::{bytes, client, client_with, config, get, request, uri},
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

/// Over HTTP/2, hyper tells nobody.
#[tokio::test]
async fn the_caller_is_told_of_interim_responses() {
    for version in VERSIONS {
        let (address, _) = server(version, Hints::Count(2)).await;
        let told = Arc::new(Mutex::new(Vec::new()));
        let notes = told.clone();
        let hear = OnInterim::new(move |interim| notes.lock().unwrap().push(interim.status()));
        let mut request = request(Method::GET, &uri(address, "/"), "");
        request.extensions_mut().insert(hear);
        let client = client(policy(version));
        let response = soon(client.request(request)).await.unwrap();
        // They come before the response.
        let expected = if version == Version::HTTP_2 { 0 } else { 2 };
        let told = std::mem::take(&mut *told.lock().unwrap());
        assert_eq!(told, vec![StatusCode::EARLY_HINTS; expected], "{version:?}");
        assert_eq!(bytes(response).await, "x");
    }
}

/// What a server does with a request that expects 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// It says 100.
    Continue,
    /// It says nothing, and waits for the body.
    Silence,
    /// It answers without the body.
    Final,
}

/// A body that notes when it is read.
fn noted(read: &Arc<AtomicBool>) -> impl Body<Data = Bytes, Error = Infallible> + Send + 'static {
    let read = read.clone();
    let data = async move {
        read.store(true, Ordering::Relaxed);
        Ok(Frame::data(Bytes::from("body")))
    };
    StreamBody::new(futures_util::stream::once(data))
}

/// Answers one request, with the content that it had. Tells if its body was read before the server asked for it, and
/// how its stream ended.
async fn expecting(
    version: Version,
    does: Expected,
    read: Arc<AtomicBool>,
) -> (SocketAddr, oneshot::Receiver<String>) {
    let (tell, told) = oneshot::channel();
    let tell = Arc::new(Mutex::new(Some(tell)));
    if version == Version::HTTP_11 {
        let serve = move |mut stream: TlsStream<TcpStream>| {
            let (read, tell) = (read.clone(), tell.clone());
            async move {
                http1_head(&mut stream).await.unwrap();
                let early = read.load(Ordering::Relaxed);
                match does {
                    Expected::Continue => {
                        write(&mut stream, b"HTTP/1.1 100 Continue\r\n\r\n").await;
                    }
                    Expected::Silence => {}
                    Expected::Final => {
                        write(
                            &mut stream,
                            b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx",
                        )
                        .await;
                    }
                }
                // One chunk, and the end.
                let mut body = [0; 14];
                stream.read_exact(&mut body).await.unwrap();
                assert_eq!(body, *b"4\r\nbody\r\n0\r\n\r\n");
                if does != Expected::Final {
                    write(
                        &mut stream,
                        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx",
                    )
                    .await;
                }
                let tell = tell.lock().unwrap().take().unwrap();
                tell.send(format!("{early}, finished")).unwrap();
                std::future::pending::<()>().await;
            }
        };
        return (listen("http/1.1", serve).await, told);
    }
    let config = Certificate::shared().config().alpn([hybriq_h3::ALPN]);
    let endpoint = Endpoint::server("127.0.0.1:0", config).unwrap();
    let address = endpoint.local_address();
    tokio::spawn(async move {
        let transport = endpoint.accept().await.unwrap().accept().await.unwrap();
        let transport = hybriq_h3::adapter::Connection::new(transport);
        let mut connection: server::Connection<_, Bytes> =
            server::Connection::new(transport).await.unwrap();
        let request = connection.accept().await.unwrap().unwrap();
        let (_, mut stream) = request.resolve_request().await.unwrap();
        let early = read.load(Ordering::Relaxed);
        let status = |status| Response::builder().status(status).body(()).unwrap();
        if does == Expected::Continue {
            stream.send_response(status(100)).await.unwrap();
        }
        if does == Expected::Final {
            stream.send_response(status(200)).await.unwrap();
            stream.send_data(Bytes::from("x")).await.unwrap();
            stream.finish().await.unwrap();
        }
        let mut content = Vec::new();
        let end = loop {
            match stream.recv_data().await {
                Ok(Some(mut data)) => {
                    content.extend_from_slice(&data.copy_to_bytes(data.remaining()));
                }
                Ok(None) => {
                    assert_eq!(content, b"body");
                    stream.send_response(status(200)).await.unwrap();
                    stream.send_data(Bytes::from("x")).await.unwrap();
                    stream.finish().await.unwrap();
                    break "finished".to_owned();
                }
                Err(error) => break error.to_string(),
            }
        };
        let tell = tell.lock().unwrap().take().unwrap();
        tell.send(format!("{early}, {end}")).unwrap();
        // Until the client has closed it.
        while let Ok(Some(_)) = connection.accept().await {}
    });
    (address, told)
}

/// A body is not read before the server asks for it, or answers, or has had its time.
#[tokio::test]
async fn a_body_waits_for_100() {
    for version in [Version::HTTP_11, Version::HTTP_3] {
        for does in [Expected::Continue, Expected::Silence, Expected::Final] {
            let read = Arc::new(AtomicBool::new(false));
            let (address, told) = expecting(version, does, read.clone()).await;
            let most = if does == Expected::Silence {
                10
            } else {
                3_600_000
            };
            let builder = Client::builder().http3(policy(version));
            let builder = builder.continue_timeout(Duration::from_millis(most));
            let client = client_with(builder, config());
            let request = Request::post(uri(address, "/")).header("expect", "100-continue");
            let request = request.body(noted(&read)).unwrap();
            let response = soon(client.request(request)).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(bytes(response).await, "x");
            let told = soon(told).await.unwrap();
            match (does, version) {
                // The server may be slow, too.
                (Expected::Silence, _) => {
                    assert!(told.ends_with("finished"), "{version:?}: {told}");
                }
                (Expected::Final, Version::HTTP_3) => {
                    assert!(
                        told.starts_with("false, ") && told.contains("H3_REQUEST_CANCELLED"),
                        "{told}"
                    );
                    assert!(!read.load(Ordering::Relaxed));
                }
                _ => assert_eq!(told, "false, finished", "{version:?}, {does:?}"),
            }
        }
    }
}
