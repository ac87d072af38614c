//! Servers that take nothing: what they cause is bounded, and their connections end once nobody needs them.

use std::{
    collections::VecDeque,
    convert::Infallible,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use h3::server;
use http::{Request, Response, StatusCode, Version};
use http_body::Frame;
use hybriq::Endpoint;
use hybriq_http::{Client, Http3};
use tokio::{io::AsyncWriteExt as _, net::TcpStream, sync::mpsc, task::yield_now};
use tokio_rustls::server::TlsStream;

use crate::{
    common::{client, client_with, config, get, uri},
    support::{Certificate, soon},
    tcp::{
        HEADERS, PING, PRIORITY, SETTINGS, WINDOW_UPDATE, frame, http1_head, http2_begin,
        http2_read, listen, write,
    },
};

/// A body without an end. Tells when it is dropped.
struct Endless(#[expect(dead_code, reason = "dropped")] mpsc::UnboundedSender<()>);

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(vec![7; 16 << 10].into()))))
    }
}

/// A server that answers at once, without a body, and takes nothing of the request's body.
async fn answering(version: Version) -> SocketAddr {
    match version {
        Version::HTTP_11 => {
            let serve = async |mut stream| {
                http1_head(&mut stream).await;
                write(&mut stream, b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
                std::future::pending::<()>().await;
            };
            listen("http/1.1", serve).await
        }
        Version::HTTP_2 => {
            let serve = async |mut stream| {
                http2_begin(&mut stream).await;
                // It gives no credit.
                while let Some(read) = http2_read(&mut stream).await {
                    if read.kind == HEADERS {
                        write(&mut stream, &frame(HEADERS, 5, read.id, b"\x88")).await;
                    }
                }
            };
            listen("h2", serve).await
        }
        _ => {
            let config = Certificate::shared().config().alpn([hybriq_h3::ALPN]);
            let endpoint = Endpoint::server("127.0.0.1:0", config).unwrap();
            let address = endpoint.local_address();
            tokio::spawn(async move {
                let transport = endpoint.accept().await.unwrap().accept().await.unwrap();
                let transport = hybriq_h3::adapter::Connection::new(transport);
                let mut connection: server::Connection<_, Bytes> =
                    server::Connection::new(transport).await.unwrap();
                let mut held = Vec::new();
                while let Ok(Some(request)) = connection.accept().await {
                    let (_, mut stream) = request.resolve_request().await.unwrap();
                    stream.send_response(Response::new(())).await.unwrap();
                    stream.finish().await.unwrap();
                    held.push(stream);
                }
            });
            address
        }
    }
}

fn leaving(http3: Http3, idle: Duration) -> Client {
    let builder = Client::builder().http3(http3);
    client_with(builder.idle_timeout(idle), config())
}

/// The rest of a body that nobody takes, and for whose request there is a whole response, ends with its
/// connection.
#[tokio::test]
async fn a_body_that_no_server_takes_ends_after_its_response() {
    for version in [Version::HTTP_11, Version::HTTP_2, Version::HTTP_3] {
        let address = answering(version).await;
        let http3 = if version == Version::HTTP_3 {
            Http3::Only
        } else {
            Http3::Off
        };
        let client = leaving(http3, Duration::from_millis(300));
        let (tell, mut dropped) = mpsc::unbounded_channel();
        let request = Request::post(uri(address, "/")).body(Endless(tell));
        let response = soon(client.request(request.unwrap())).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let all = soon(response.into_body().bytes(1)).await.unwrap();
        assert!(all.is_empty());
        let ended = tokio::time::timeout(Duration::from_secs(10), dropped.recv()).await;
        assert_eq!(ended, Ok(None), "{version:?}: the body is kept");
    }
}

/// A server of HTTP/2 that reads nothing, and so not the end of an idle connection either.
#[tokio::test]
async fn an_idle_connection_closes_although_its_server_reads_nothing() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let serve = move |mut stream| {
        let tell = tell.clone();
        async move {
            http2_begin(&mut stream).await;
            while let Some(read) = http2_read(&mut stream).await {
                if read.kind == HEADERS {
                    write(&mut stream, &frame(HEADERS, 5, read.id, b"\x88")).await;
                    break;
                }
            }
            // The client answers these until nothing has room for more.
            let pings = frame(PING, 0, 0, &[1; 8]).repeat(1000);
            let room = Duration::from_secs(1);
            while tokio::time::timeout(room, write(&mut stream, &pings))
                .await
                .is_ok()
            {}
            tell.send(()).unwrap();
            while write(&mut stream, &pings).await {}
            tell.send(()).unwrap();
        }
    };
    let address = listen("h2", serve).await;
    let client = client(Http3::Off);
    assert_eq!(get(&client, address).await.status(), StatusCode::OK);
    soon(told.recv()).await.unwrap();
    client.close_idle();
    let ended = tokio::time::timeout(Duration::from_secs(10), told.recv()).await;
    assert_eq!(ended, Ok(Some(())), "the connection is kept");
}

/// Lets a client of HTTP/2 send a body until nothing more leaves it, and makes it reset streams then. Returns the number
/// of bytes that it takes, 2 MiB at most.
async fn flood(mut stream: TlsStream<TcpStream>) -> usize {
    let socket = stream.get_ref().0;
    socket.set_nodelay(true).unwrap();
    let socket = socket2::SockRef::from(socket);
    socket.set_send_buffer_size(1 << 14).unwrap();
    http2_begin(&mut stream).await;
    let window = u32::to_be_bytes(1 << 30);
    let settings = [&[0, 4][..], &window].concat();
    write(&mut stream, &frame(SETTINGS, 0, 0, &settings)).await;
    write(&mut stream, &frame(WINDOW_UPDATE, 0, 0, &window)).await;
    while http2_read(&mut stream).await.unwrap().kind != HEADERS {}
    // The client is not far: it runs on this thread.
    for _ in 0..10_000 {
        yield_now().await;
    }
    let mut unsent = VecDeque::new();
    let (mut taken, mut waits, mut id) = (0, 0, 0_u32);
    while waits < 10_000 && taken < 2 << 20 {
        while unsent.len() < 1 << 14 {
            id += 2;
            // A stream that depends on itself (RFC 7540 §5.3.1).
            let itself = [&id.to_be_bytes()[..], &[15]].concat();
            unsent.extend(frame(PRIORITY, 0, id, &itself));
        }
        tokio::select! {
            biased;
            written = stream.write_buf(&mut unsent) => {
                taken += written.unwrap();
                waits = 0;
            }
            () = yield_now() => waits += 1,
        }
        yield_now().await;
    }
    taken
}

#[tokio::test]
async fn resets_that_no_server_takes_are_bounded() {
    let (tell, mut taken) = mpsc::unbounded_channel();
    let address = listen("h2", move |stream| {
        let tell = tell.clone();
        async move { tell.send(flood(stream).await).unwrap() }
    })
    .await;
    let (dropped, _gone) = mpsc::unbounded_channel();
    let request = Request::post(uri(address, "/")).body(Endless(dropped));
    let request = tokio::spawn(client(Http3::Off).request(request.unwrap()));
    let taken = soon(taken.recv()).await.unwrap();
    // The buffers of the system have room for some.
    assert!(taken < 1 << 20, "{taken}");
    assert!(soon(request).await.unwrap().is_err());
}

/// Returns the rows of the system's table of sockets that are those of clients of a server.
#[cfg(target_os = "linux")]
fn sockets_of_clients(server: SocketAddr) -> Vec<Vec<String>> {
    let server = format!("0100007F:{:04X}", server.port());
    let all = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let row = |row: &str| {
        row.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let rows = all.lines().map(row);
    rows.filter(|row| row[2] == server).collect()
}

/// Returns how long the system's keep-alive of an open socket waits, unless another timer is first.
#[cfg(target_os = "linux")]
fn keep_alive(sockets: &[Vec<String>]) -> Option<Duration> {
    // One that is closed may have had the same port before.
    let open = sockets.iter().find(|row| row[3] == "01")?;
    let (_, when) = open[5].split_once(':').filter(|(kind, _)| *kind == "02")?;
    // In hundredths of seconds.
    let when = u64::from_str_radix(when, 16).unwrap() * 10;
    Some(Duration::from_millis(when))
}

/// Over HTTP/1.1 there is no PING. The system finds servers that are gone without a word.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_system_looks_for_servers_that_are_gone() {
    for alpn in ["http/1.1", "h2"] {
        let silent = async |stream| {
            let _stream: tokio_rustls::server::TlsStream<tokio::net::TcpStream> = stream;
            std::future::pending::<()>().await;
        };
        let address = listen(alpn, silent).await;
        let time = Duration::from_secs(1000);
        let builder = Client::builder().http3(Http3::Off).keep_alive(time);
        let client = client_with(builder, config());
        let request = tokio::spawn(client.get(uri(address, "/")));
        let began = tokio::time::Instant::now();
        // Other timers end first.
        let timer = loop {
            let sockets = sockets_of_clients(address);
            if let Some(timer) = keep_alive(&sockets) {
                break timer;
            }
            let is_late = began.elapsed() > Duration::from_secs(60);
            assert!(!is_late && !request.is_finished(), "{alpn}: {sockets:?}");
            tokio::task::yield_now().await;
        };
        assert!((time / 2..=time).contains(&timer), "{alpn}: {timer:?}");
    }
}
