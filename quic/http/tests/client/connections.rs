//! Connections that are kept, and bounds on them.

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    routing::any,
};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http_body_util::{BodyExt as _, Full, channel::Channel};
use hybriq::TransportConfig;
use hybriq_http::{Client, Http3, Server};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, sync::Barrier};
use tokio_rustls::{TlsAcceptor, rustls};

use crate::{
    common::{bytes, client, client_with, config, get, post, uri},
    support::{Certificate, Running, run, run_with, soon},
};

/// Counts of a server of HTTP/1.1.
#[derive(Default)]
pub(crate) struct Counts {
    now: AtomicUsize,
    most: AtomicUsize,
    all: AtomicUsize,
}

/// TLS of a server that chooses no protocol.
pub(crate) fn http1_acceptor() -> TlsAcceptor {
    let certificate = Certificate::shared();
    let tls = rustls::ServerConfig::builder_with_provider(
        rustls::crypto::aws_lc_rs::default_provider().into(),
    );
    let tls = tls.with_safe_default_protocol_versions().unwrap();
    let tls = tls.with_no_client_auth();
    let tls = tls.with_single_cert(vec![certificate.der()], certificate.key());
    TlsAcceptor::from(Arc::new(tls.unwrap()))
}

/// A server that speaks HTTP/1.1 alone.
pub(crate) async fn http1_server() -> (SocketAddr, Arc<Counts>) {
    let tls = http1_acceptor();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let counts = Arc::new(Counts::default());
    let counted = counts.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (tls, counts) = (tls.clone(), counted.clone());
            tokio::spawn(async move {
                let stream = tls.accept(stream).await.unwrap();
                let now = counts.now.fetch_add(1, Ordering::AcqRel) + 1;
                counts.most.fetch_max(now, Ordering::AcqRel);
                counts.all.fetch_add(1, Ordering::AcqRel);
                let answer = async |request: http::Request<hyper::body::Incoming>| {
                    let host = request.headers()["host"].as_bytes().to_vec();
                    assert_eq!(request.uri().to_string(), "/");
                    Ok::<_, std::convert::Infallible>(http::Response::new(Full::new(
                        bytes::Bytes::from(host),
                    )))
                };
                let service = hyper::service::service_fn(answer);
                let served = hyper::server::conn::http1::Builder::new();
                // The client may close it.
                let _ = served.serve_connection(TokioIo::new(stream), service).await;
                counts.now.fetch_sub(1, Ordering::AcqRel);
            });
        }
    });
    (address, counts)
}

#[tokio::test]
async fn connections_of_http1_are_bounded_and_used_again() {
    let (address, counts) = http1_server().await;
    let client = client_with(Client::builder().max_http1(2), config());
    for _ in 0..3 {
        let requests = (0..10).map(|_| async {
            let response = get(&client, address).await;
            assert_eq!(response.version(), http::Version::HTTP_11);
            bytes(response).await
        });
        for body in futures_util::future::join_all(requests).await {
            assert_eq!(body, format!("localhost:{}", address.port()));
        }
    }
    assert_eq!(counts.most.load(Ordering::Acquire), 2);
    assert_eq!(counts.all.load(Ordering::Acquire), 2);
}

/// Without idle connections, each request has its own.
#[tokio::test]
async fn idle_connections_are_bounded() {
    let (address, counts) = http1_server().await;
    let client = client_with(Client::builder().max_idle(0), config());
    for request in 1..=3 {
        bytes(get(&client, address).await).await;
        soon(async {
            while counts.now.load(Ordering::Acquire) > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(counts.all.load(Ordering::Acquire), request);
    }
}

/// Many requests at once make one connection, even more than it takes at a time.
#[tokio::test]
async fn requests_at_once_share_a_connection() {
    let server = run(Router::new());
    for http3 in [Http3::Only, Http3::First, Http3::Off] {
        let client = client_with(Client::builder().http3(http3), config());
        let requests = (0..300).map(|_| post(&client, server.address(), "x"));
        let responses = futures_util::future::join_all(requests).await;
        let peers: HashSet<_> = responses
            .into_iter()
            .map(|response| response.unwrap().headers()["x-peer"].clone())
            .collect();
        assert_eq!(peers.len(), 1, "{http3:?}");
    }
}

/// A request that finds no room opens another connection, if the client may have one.
#[tokio::test]
async fn the_101st_request_opens_another_connection() {
    for http3 in [Http3::Only, Http3::Off] {
        let all = Arc::new(Barrier::new(101));
        let answer = async move || _ = all.wait().await;
        let transport = TransportConfig::new().max_bidi_streams(100);
        let server_config = Certificate::shared().config().transport(transport);
        let router = Router::new().route("/", any(answer));
        let server = run_with(Server::builder(), server_config, router);
        let builder = Client::builder().http3(http3).max_connections(3);
        let client = client_with(builder, config());
        let ask = async |_| drop(bytes(get(&client, server.address()).await).await);
        futures_util::future::join_all((0..101).map(ask)).await;
        assert_eq!(server.handle.connections(), 2, "{http3:?}");
    }
}

/// A client that remembers one server closes the connection to it before it uses another.
#[tokio::test]
async fn servers_are_bounded() {
    let servers = [run(Router::new()), run(Router::new())];
    for http3 in [Http3::Only, Http3::Off] {
        let builder = Client::builder().http3(http3).max_servers(1);
        let client = client_with(builder, config());
        for _ in 0..3 {
            for (server, other) in [(0, 1), (1, 0)] {
                let response = get(&client, servers[server].address()).await;
                drop(bytes(response).await);
                none_left(&servers[other]).await;
            }
        }
    }
}

/// The last client closes its connections.
#[tokio::test]
async fn a_dropped_client_leaves_nothing() {
    let server = run(Router::new());
    for http3 in [Http3::Only, Http3::Off] {
        let client = client_with(Client::builder().http3(http3), config());
        let response = post(&client, server.address(), vec![1; 100_000])
            .await
            .unwrap();
        drop(client);
        // A response outlives the client.
        assert_eq!(bytes(response).await.len(), 100_000);
        none_left(&server).await;
    }
}

/// Waits until the server has no connections.
async fn none_left(server: &Running) {
    soon(async {
        while server.handle.connections() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// A connection without requests is closed after a while; one with a request is not.
#[tokio::test]
async fn idle_connections_are_closed_in_time() {
    let server = run(Router::new());
    for http3 in [Http3::Only, Http3::Off] {
        let builder = Client::builder().http3(http3);
        let builder = builder.idle_timeout(Duration::from_millis(50));
        let client = client_with(builder, config());
        let (mut body, request) = open_request(server.address());
        let response = tokio::spawn(client.request(request));
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            soon(body.send_data("x".into())).await.unwrap();
        }
        drop(body);
        let response = soon(response).await.unwrap().unwrap();
        assert_eq!(bytes(response).await, "xxxxxxxxxx");
        none_left(&server).await;
    }
}

/// A request whose body is sent piece by piece.
fn open_request(
    server: SocketAddr,
) -> (
    http_body_util::channel::Sender<bytes::Bytes>,
    http::Request<Channel<bytes::Bytes>>,
) {
    let (body, channel) = Channel::new(1);
    let request = http::Request::post(crate::common::uri(server, "/"));
    (body, request.body(channel).unwrap())
}

/// A client outlives the runtime that it was used in first.
#[test]
fn runtimes_come_and_go() {
    let servers = tokio::runtime::Runtime::new().unwrap();
    let server = servers.block_on(async { run(Router::new()) });
    for http3 in [Http3::Only, Http3::First, Http3::Off] {
        let client = client_with(Client::builder().http3(http3), config());
        for _ in 0..3 {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().unwrap();
            let response = runtime.block_on(post(&client, server.address(), "x"));
            assert_eq!(response.unwrap().status(), http::StatusCode::OK);
        }
    }
}

/// Data of responses that were given up still arrives after their streams were forgotten.
#[tokio::test]
async fn a_client_that_gives_up_many_responses_over_http2_keeps_its_connection() {
    static PAGE: [u8; 200_000] = [7; 200_000];
    let held = async || {
        let begin = stream::iter([Ok::<_, std::io::Error>("begin")]);
        Body::from_stream(begin.chain(stream::pending()))
    };
    let router = Router::new()
        .route("/page", any(async || Bytes::from_static(&PAGE)))
        .route("/held", any(held));
    let server = run(router);
    let client = client(Http3::Off);
    let ask = async |path| {
        let response = soon(client.get(uri(server.address(), path))).await;
        response.unwrap().into_body()
    };
    let mut download = ask("/held").await;
    soon(download.frame()).await.unwrap().unwrap();
    for _ in 0..3000 {
        drop(ask("/page").await);
    }
    let rest = download.frame().now_or_never();
    assert!(rest.is_none(), "the download ended: {rest:?}");
    assert_eq!(server.handle.connections(), 1);
}
