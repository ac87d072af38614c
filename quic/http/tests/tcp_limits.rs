//! Bounds on clients over TCP.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    http::StatusCode,
    routing::{any, post as on_post},
};
use http_body_util::BodyExt as _;
use hybriq_http::{Limits, Server};
use support::{Certificate, Http3, Running, ask_over_tcp, connect_tls, get, post, run_with, soon};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::oneshot,
};
use tokio_rustls::rustls;

fn serve(router: Router, change: impl FnOnce(&mut Limits)) -> Running {
    let mut limits = Limits::default();
    change(&mut limits);
    let config = Certificate::shared().config();
    run_with(Server::builder().limits(limits), config, router)
}

#[tokio::test]
async fn connections_over_quic_take_no_place_of_those_over_tcp() {
    let server = serve(Router::new(), |limits| limits.tcp_connections = 1);
    let mut quic = Http3::connect(server.address()).await;
    quic.ask(get("/")).await.unwrap();
    let mut tcp = connect_tls(server.address(), "http/1.1").await.unwrap();
    assert_eq!(server.handle.connections(), 2);
    let asked = ask_over_tcp(server.address(), "h2", None, get("/")).await;
    assert!(asked.is_err(), "there is one place");
    tcp.shutdown().await.unwrap();
    let _ = soon(tcp.read_to_end(&mut Vec::new())).await;
    // The server frees the place a moment after the client's end.
    let again = async {
        while ask_over_tcp(server.address(), "h2", None, get("/"))
            .await
            .is_err()
        {
            tokio::task::yield_now().await;
        }
    };
    soon(again).await;
}

#[tokio::test]
async fn a_body_that_stops_to_come_over_tcp_is_an_error() {
    let whole = async |request: Request| match request.into_body().collect().await {
        Ok(_) => StatusCode::OK,
        Err(error) => {
            let told = error.to_string();
            assert!(told.contains("sent no data of the body"), "{told}");
            StatusCode::REQUEST_TIMEOUT
        }
    };
    let router = Router::new().route("/in", on_post(whole));
    let server = serve(router, |limits| {
        limits.stall_time = Duration::from_millis(200);
    });
    let mut stream = connect_tls(server.address(), "http/1.1").await.unwrap();
    let part = b"POST /in HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nabc";
    stream.write_all(part).await.unwrap();
    stream.flush().await.unwrap();
    let mut head = [0; 12];
    soon(stream.read_exact(&mut head)).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 408");
    let done = ask_over_tcp(server.address(), "h2", None, post("/in", "whole")).await;
    assert_eq!(done.unwrap().status(), 200);
}

/// A body without an end. Tells when it is dropped.
struct Endless(#[expect(dead_code, reason = "dropped with the body")] oneshot::Sender<()>);

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        let data = Bytes::from_static(&[7; 16 << 10]);
        Poll::Ready(Some(Ok(http_body::Frame::data(data))))
    }
}

#[tokio::test]
async fn a_client_that_takes_nothing_over_tcp_is_disconnected() {
    let (dropped, gone) = oneshot::channel();
    let dropped = std::sync::Mutex::new(Some(dropped));
    let dropped = Arc::new(dropped);
    let endless = any(async move || {
        let dropped = dropped.lock().unwrap().take().unwrap();
        Body::new(Endless(dropped))
    });
    let router = Router::new().route("/out", endless);
    let server = serve(router, |limits| {
        limits.stall_time = Duration::from_millis(200);
    });
    let mut stream = connect_tls(server.address(), "http/1.1").await.unwrap();
    let get = b"GET /out HTTP/1.1\r\nhost: a\r\n\r\n";
    stream.write_all(get).await.unwrap();
    stream.flush().await.unwrap();
    assert!(soon(gone).await.is_err());
}

#[tokio::test]
async fn an_idle_connection_of_http2_is_closed() {
    let server = serve(Router::new(), |limits| {
        limits.idle_time = Duration::from_millis(100);
        limits.header_time = Duration::from_millis(500);
    });
    let mut stream = connect_tls(server.address(), "h2").await.unwrap();
    // The preface, empty SETTINGS, and `GET /` for the authority `a`.
    let start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x06\x01\x05\0\0\0\x01\x82\x84\x87\x41\x01a";
    stream.write_all(start).await.unwrap();
    stream.flush().await.unwrap();
    let mut answered = Vec::new();
    let _ = soon(stream.read_to_end(&mut answered)).await;
    let has = |ty: u8| {
        answered
            .windows(5)
            .any(|five| five[3] == ty && five[0] == 0)
    };
    assert!(has(1), "HEADERS of the answer");
    assert!(has(7), "GOAWAY");
}

/// Returns what the system's timer of the server's socket waits for, and how long: `02` is keep-alive.
#[cfg(target_os = "linux")]
fn timer_of_server(client: &tokio::net::TcpStream) -> (String, Duration) {
    let hex = |address: std::net::SocketAddr| match address {
        std::net::SocketAddr::V4(v4) => {
            format!(
                "{:08X}:{:04X}",
                u32::from_le_bytes(v4.ip().octets()),
                v4.port()
            )
        }
        std::net::SocketAddr::V6(_) => unreachable!("the tests use IPv4"),
    };
    // From the side of the server.
    let local = hex(client.peer_addr().unwrap());
    let peer = hex(client.local_addr().unwrap());
    let all = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let mut rows = all
        .lines()
        .map(|row| row.split_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row[1] == local && row[2] == peer).unwrap();
    let (kind, when) = row[5].split_once(':').unwrap();
    // In hundredths of seconds.
    let when = u64::from_str_radix(when, 16).unwrap() * 10;
    (kind.to_owned(), Duration::from_millis(when))
}

/// Clients that are gone while nothing is sent to them are found by the system.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_system_looks_for_clients_that_are_gone() {
    let time = Duration::from_secs(1000);
    let server = serve(Router::new(), |limits| limits.stall_time = time);
    let stream = connect_tls(server.address(), "http/1.1").await.unwrap();
    let tcp = stream.get_ref().0;
    // Other timers end first.
    let mut timer = timer_of_server(tcp);
    soon(async {
        while timer.0 != "02" {
            tokio::task::yield_now().await;
            timer = timer_of_server(tcp);
        }
    })
    .await;
    assert!((time / 2..=time).contains(&timer.1), "{timer:?}");
}

/// Returns what a server would use for a client that says hello.
fn config_for_a_client(server: &hybriq::tls::rustls::TcpServer) -> Arc<rustls::ServerConfig> {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let client = rustls::ClientConfig::builder_with_provider(Arc::new(provider));
    let client = client.with_safe_default_protocol_versions().unwrap();
    let client = client.with_root_certificates(rustls::RootCertStore::empty());
    let client = Arc::new(client.with_no_client_auth());
    let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
    let mut client = rustls::ClientConnection::new(client, name).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    let mut acceptor = rustls::server::Acceptor::default();
    acceptor.read_tls(&mut &hello[..]).unwrap();
    let accepted = acceptor.accept().unwrap().expect("a whole hello");
    server.config(&accepted.client_hello()).unwrap()
}

/// Each ticket costs decryption before anything is known of the client, and a hello has room for hundreds.
#[tokio::test]
async fn few_tickets_of_a_hello_are_looked_at() {
    let server = Certificate::shared().config().tcp(["h2"]).unwrap();
    let config = config_for_a_client(&server);
    let ticket = config.ticketer.encrypt(b"a session").unwrap();
    let looked_at = (0..240).filter(|_| config.ticketer.decrypt(&ticket).is_some());
    assert_eq!(looked_at.count(), 4);
    // Another connection is another client.
    let other = config_for_a_client(&server);
    let session = other.ticketer.decrypt(&ticket);
    assert_eq!(session.as_deref(), Some(&b"a session"[..]));
}
