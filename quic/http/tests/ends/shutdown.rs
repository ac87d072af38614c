//! A shutdown ends in time, whoever holds what.

use std::{
    net::{SocketAddr, TcpListener, UdpSocket},
    time::Duration,
};

use axum::{Extension, Router, body::Body, routing::any};
use bytes::Bytes;
use http::{Method, StatusCode, Version};
use http_body_util::{BodyExt as _, StreamBody};
use hybriq::Endpoint;
use hybriq_http::{
    EarlyMethods, Limits, Server, Upgrade, Upgraded,
    webtransport::{self, Session, WebTransport},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::mpsc,
};

use crate::{
    common::{Asker, Guards, Silent, VERSIONS, connect, headers},
    early::{OneWay, begin, returning, until},
    support::{Certificate, Http3, Running, agreed, client_config, run_with, soon, upgrade},
};

/// Time from a shutdown to its deadline.
const DEADLINE: Duration = Duration::from_millis(300);

/// What a service has taken and keeps.
enum Kept {
    Upgraded(Upgraded),
    Session(Session),
}

/// A server that waits for everything for ever.
struct Host {
    server: Running,
    kept: mpsc::UnboundedReceiver<Kept>,
}

impl Host {
    fn new() -> Self {
        let guards = Guards::new();
        let (keep, kept) = mpsc::unbounded_channel();
        let (silent, deaf) = (guards.make(), guards.make());
        let sessions = keep.clone();
        let deaf = async move || {
            let _guard = deaf();
            std::future::pending::<StatusCode>().await
        };
        let upgrade = async move |version: Version, Extension(upgrade): Extension<Upgrade>| {
            tokio::spawn(async move {
                let upgraded = upgrade.upgraded().await.unwrap();
                let _ = keep.send(Kept::Upgraded(upgraded));
            });
            agreed(version)
        };
        let session = async move |Extension(request): Extension<WebTransport>| {
            request.accept(async move |session| {
                let _ = sessions.send(Kept::Session(session));
            })
        };
        let router = Router::new()
            .route("/deaf", any(deaf))
            .route("/silent", any(async move || Silent::body(b"x", silent())))
            .route("/endless", any(async || endless()))
            .route(
                "/drain",
                any(async |body: Body| body.collect().await.is_ok().to_string()),
            )
            .route("/upgrade", any(upgrade))
            .route("/session", any(session));
        let hours = Duration::from_secs(10_000);
        let mut limits = Limits::default();
        (limits.header_time, limits.stall_time, limits.idle_time) = (hours, hours, hours);
        limits.early_methods = EarlyMethods::All;
        let builder = Server::builder().limits(limits).extended_connect();
        let builder = builder.webtransport(webtransport::Limits::default());
        let config = Certificate::shared().config().accept_early_data();
        Self {
            server: run_with(builder, config, router),
            kept,
        }
    }

    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    async fn until_requests(&self, count: usize) {
        let requests = || self.server.handle.census().entries("requests");
        until("requests", || requests() == count).await;
    }

    /// Shuts the server down. Nothing of it is left.
    async fn end(self, what: &str) {
        let address = self.address();
        let ended = async {
            self.server.handle.shutdown(DEADLINE).await;
            self.server.serving.await.unwrap();
        };
        let ended = tokio::time::timeout(Duration::from_secs(20), ended).await;
        assert!(ended.is_ok(), "{what}: the shutdown does not end");
        assert!(TcpListener::bind(address).is_ok(), "{what}: TCP");
        assert!(UdpSocket::bind(address).is_ok(), "{what}: UDP");
        let handle = self.server.handle;
        let left = || {
            let census = handle.census();
            let holdings = census.holdings().iter();
            let left: Vec<_> = holdings.filter(|held| held.entries > 0).collect();
            left.is_empty()
        };
        until(&format!("{what}: {}", handle.census()), left).await;
    }

    /// Opens the stream of another protocol. Returns the client, and the end that the service has.
    async fn upgraded(&mut self, version: Version) -> (Box<dyn std::any::Any>, Upgraded) {
        let client: Box<dyn std::any::Any> = if version == Version::HTTP_3 {
            let client = Http3::connect(self.address()).await;
            let (mut send, recv) = soon(client.connection.open_bidi()).await.unwrap();
            soon(send.write_all(&connect())).await.unwrap();
            Box::new((client, send, recv))
        } else {
            Box::new(upgrade(version, self.address(), "/upgrade").await)
        };
        match soon(self.kept.recv()).await {
            Some(Kept::Upgraded(held)) => (client, held),
            _ => panic!("an upgrade"),
        }
    }
}

/// A body of more than anybody takes.
fn endless() -> Body {
    let data = std::iter::repeat_with(|| {
        Ok::<_, std::convert::Infallible>(http_body::Frame::data(Bytes::from_static(
            &[7; 16 << 10],
        )))
    });
    Body::new(StreamBody::new(futures_util::stream::iter(data)))
}

#[tokio::test]
async fn a_shutdown_ends_in_time_with_nothing_to_do() {
    Host::new().end("nothing").await;
}

#[tokio::test]
async fn a_shutdown_ends_although_services_do_not() {
    for version in VERSIONS {
        for (path, body) in [("/deaf", &b""[..]), ("/drain", b"a part"), ("/silent", b"")] {
            let host = Host::new();
            let mut client = Asker::new(version, host.address()).await;
            let asked = client.ask(Method::POST, path, body).await;
            host.until_requests(1).await;
            host.end(&format!("{path} over {version:?}")).await;
            drop((asked, client));
        }
    }
}

#[tokio::test]
async fn a_shutdown_ends_although_a_client_takes_nothing() {
    for version in VERSIONS {
        let host = Host::new();
        let mut client = Asker::new(version, host.address()).await;
        let begun = client.begin("/endless").await;
        host.end(&format!("{version:?}")).await;
        drop((begun, client));
    }
}

/// The service has the stream of another protocol, and does not use it. It fails after the end.
#[tokio::test]
async fn a_shutdown_ends_although_streams_of_other_protocols_are_held() {
    for version in VERSIONS {
        let mut host = Host::new();
        let (client, mut held) = host.upgraded(version).await;
        // One is read from meanwhile, and the read fails.
        let (mut read, mut write) = tokio::io::split(&mut held);
        let reading = async {
            let read = read.read(&mut [0]).await;
            assert!(!matches!(read, Ok(1..)), "{version:?}: {read:?}");
        };
        let what = format!("{version:?}");
        tokio::join!(reading, host.end(&what));
        let (mut written, much) = (Ok(()), vec![7; 1 << 16]);
        for _ in 0..100 {
            written = soon(write.write_all(&much)).await;
            if written.is_err() {
                break;
            }
        }
        assert!(written.is_err(), "{version:?}");
        drop(client);
    }
}

/// The same, and nobody ever polls it.
#[tokio::test]
async fn a_shutdown_ends_although_nobody_polls_what_is_held() {
    for version in VERSIONS {
        let mut host = Host::new();
        let (client, mut held) = host.upgraded(version).await;
        host.end(&format!("{version:?}")).await;
        let read = soon(held.read(&mut [0])).await;
        assert!(!matches!(read, Ok(1..)), "{version:?}: {read:?}");
        drop(client);
    }
}

#[tokio::test]
async fn a_shutdown_ends_although_sessions_are_held() {
    let mut host = Host::new();
    let endpoint = Endpoint::client(client_config(&Certificate::shared())).unwrap();
    let uri = format!("https://localhost:{}/session", host.address().port());
    let request = http::Request::get(uri).body(()).unwrap();
    let client = soon(webtransport::connect(&endpoint, request)).await;
    let Some(Kept::Session(held)) = soon(host.kept.recv()).await else {
        panic!("a session");
    };
    let streams = soon(held.open_bidi()).await.unwrap();
    host.end("a session").await;
    soon(held.closed()).await;
    assert!(held.send_datagram("x".into()).is_err());
    drop((streams, client));
}

/// Clients that are in the middle of a handshake, or have not begun it.
#[tokio::test]
async fn a_shutdown_ends_although_handshakes_do_not() {
    for bytes in [&b""[..], &[22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3]] {
        let host = Host::new();
        let mut client = tokio::net::TcpStream::connect(host.address())
            .await
            .unwrap();
        client.write_all(bytes).await.unwrap();
        let handle = host.server.handle.clone();
        until("it came", || handle.census().entries("handshakes") == 1).await;
        host.end(&format!("TCP, {} bytes", bytes.len())).await;
    }
    // Nothing is lost for a client that has said nothing, so that nobody waits for it.
    let host = Host::new();
    let _client = tokio::net::TcpStream::connect(host.address())
        .await
        .unwrap();
    let handle = host.server.handle.clone();
    until("it came", || handle.census().entries("handshakes") == 1).await;
    soon(handle.shutdown(Duration::from_secs(600))).await;
}

/// A request came in 0-RTT packets, and nothing more.
#[tokio::test]
async fn a_shutdown_ends_although_a_request_is_early() {
    let host = Host::new();
    let way = OneWay::to(host.address()).await;
    let client = returning(&way).await;
    until("no connection", || host.server.handle.connections() == 0).await;
    let begun = begin(&client, &way, &headers(&Method::GET, "/deaf")).await;
    host.until_requests(1).await;
    host.end("early").await;
    drop(begun);
}

/// The server has ended a connection, and its client has not.
#[tokio::test]
async fn a_shutdown_ends_although_a_client_lingers() {
    let host = Host::new();
    let mut client = crate::support::connect_tls(host.address(), "http/1.1")
        .await
        .unwrap();
    let request = b"GET /none HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    client.write_all(request).await.unwrap();
    client.flush().await.unwrap();
    let handle = host.server.handle.clone();
    until("it lingers", || {
        handle.census().entries("lingering connections") == 1
    })
    .await;
    // Well before the time for which a client may linger.
    handle.shutdown(Duration::ZERO).await;
    assert_eq!(handle.connections(), 0, "lingers beyond the shutdown");
    host.end("a lingering client").await;
    drop(client);
}
