//! Services and layers over each version of HTTP.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::{
    cell::Cell,
    marker::PhantomData,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::ConnectInfo,
    routing::{any, get as on_get},
};
use http::{Request, Response, StatusCode, Version};
use hybriq::KeyExchange;
use hybriq_http::{
    AccessEntry, AccessLog, Body, EndEntry, EndLog, Outcome, Peer, PostQuantum, Refusal, Server,
};
use support::{Certificate, Http3, ask_over_tcp, client_config, get, post, run, soon};
use tokio::sync::{Notify, mpsc};
use tokio_rustls::rustls::NamedGroup;
use tower_service::Service;

/// Returns a router whose requests are told, and where they are told.
fn logged(router: Router) -> (Router, mpsc::UnboundedReceiver<AccessEntry>) {
    let (told, entries) = mpsc::unbounded_channel();
    let log = AccessLog::new(move |entry: &AccessEntry| drop(told.send(entry.clone())));
    (router.layer(log), entries)
}

fn peer(entry: &AccessEntry) -> &Peer {
    entry.peer.as_ref().unwrap()
}

#[tokio::test]
async fn a_line_names_all_facts_of_the_connection() {
    let (router, mut entries) = logged(Router::new().route("/hello", any(async || "hello")));
    let server = run(router);
    let mut client = Http3::connect(server.address()).await;
    client.ask(get("/hello?secret")).await.unwrap();
    let entry = soon(entries.recv()).await.unwrap();
    let address = client.endpoint.local_address();
    assert_eq!(peer(&entry).address.port(), address.port());
    let line = entry.to_string();
    let (_, line) = line.split_once(' ').unwrap();
    let micros = entry.time.as_micros();
    assert_eq!(
        line,
        format!(
            "version=HTTP/3.0 method=GET path=\"/hello\" status=200 micros={micros} \
             group=X25519MLKEM768 hrr=false lineage=post-quantum resumed=false early=false \
             suite={} sni=\"localhost\" alpn=\"h3\"",
            peer(&entry).tls.suite.unwrap()
        )
    );
}

#[tokio::test]
async fn requests_over_tcp_are_told_too() {
    let (router, mut entries) = logged(Router::new().route("/in", any(async || "hello")));
    let server = run(router);
    for (alpn, version) in [("h2", "HTTP/2.0"), ("http/1.1", "HTTP/1.1")] {
        let asked = ask_over_tcp(server.address(), alpn, None, post("/in", "x"));
        asked.await.unwrap();
        let entry = soon(entries.recv()).await.unwrap();
        assert_eq!(entry.status.unwrap(), 200);
        assert!(entry.time > Duration::ZERO);
        let line = entry.to_string();
        let begin = format!("version={version} method=POST path=\"/in\" status=200 ");
        assert!(line.contains(&begin), "{line}");
        assert!(
            line.ends_with(&format!("sni=\"localhost\" alpn=\"{alpn}\"")),
            "{line}"
        );
        assert!(line.contains(" group=X25519"), "{line}");
    }
}

#[tokio::test]
async fn a_request_that_the_client_gives_up_is_told_without_a_status() {
    let never = any(async || std::future::pending::<()>().await);
    let (router, mut entries) = logged(Router::new().route("/never", never));
    let server = run(router);
    let mut client = Http3::connect(server.address()).await;
    let request = http::Request::get("https://localhost/never")
        .body(())
        .unwrap();
    let mut stream = soon(client.requests.send_request(request)).await.unwrap();
    soon(stream.finish()).await.unwrap();
    stream.stop_sending(h3::error::Code::H3_REQUEST_CANCELLED);
    let entry = soon(entries.recv()).await.unwrap();
    assert_eq!(entry.status, None);
    assert!(
        entry.to_string().contains("path=\"/never\" status=- "),
        "{entry}"
    );
}

/// A body that goes on for ever after its first part, or fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Nothing,
    Error,
}

fn part_and(after: After, begun: &Arc<Notify>) -> axum::body::Body {
    let begun = begun.clone();
    let part = Ok(Bytes::from_static(b"part"));
    let rest = futures_util::stream::once(async move {
        if after == After::Nothing {
            begun.notify_one();
            std::future::pending::<()>().await;
        }
        Err("the body failed")
    });
    let parts = futures_util::stream::once(async { part });
    axum::body::Body::from_stream(futures_util::StreamExt::chain(parts, rest))
}

/// Whoever accounts for requests learns what became of each, over all versions.
#[tokio::test]
async fn the_end_of_a_response_is_told() {
    let (told, mut ends) = mpsc::unbounded_channel();
    let log = EndLog::new(move |end: &EndEntry| drop(told.send(end.clone())));
    let begun = Arc::new(Notify::new());
    let (fails, waits) = (begun.clone(), begun.clone());
    let router = Router::new()
        .route("/whole", on_get(async || "hello"))
        .route(
            "/fails",
            on_get(async move || part_and(After::Error, &fails)),
        )
        .route(
            "/waits",
            on_get(async move || part_and(After::Nothing, &waits)),
        )
        .layer(log);
    let server = run(router);
    let mut next = async || {
        let end = soon(ends.recv()).await.unwrap();
        assert_eq!(end.access.status, Some(StatusCode::OK));
        assert!(end.time >= end.access.time);
        (end.access.version, end.outcome, end.bytes)
    };
    let versions = [Version::HTTP_3, Version::HTTP_2, Version::HTTP_11];
    for (method, bytes) in [("GET", 5), ("HEAD", 0)] {
        let ask = || {
            let mut request = get("/whole");
            *request.method_mut() = method.parse().unwrap();
            request
        };
        ask_all(server.address(), Keys::PostQuantum, ask).await;
        for version in versions {
            assert_eq!(
                next().await,
                (version, Outcome::Complete, bytes),
                "{method}"
            );
        }
    }
    let mut client = Http3::connect(server.address()).await;
    assert!(client.ask(get("/fails")).await.is_err());
    assert_eq!(next().await, (Version::HTTP_3, Outcome::Failed, 4));
    let request = get("/waits").map(drop);
    let mut stream = soon(client.requests.send_request(request)).await.unwrap();
    soon(stream.finish()).await.unwrap();
    soon(stream.recv_response()).await.unwrap();
    soon(begun.notified()).await;
    stream.stop_sending(h3::error::Code::H3_REQUEST_CANCELLED);
    assert_eq!(next().await, (Version::HTTP_3, Outcome::Cancelled, 4));
    for (alpn, version) in [("h2", Version::HTTP_2), ("http/1.1", Version::HTTP_11)] {
        let failed = ask_over_tcp(server.address(), alpn, None, get("/fails")).await;
        assert!(failed.is_err(), "{alpn}");
        assert_eq!(next().await, (version, Outcome::Failed, 4));
        // It goes away while it reads.
        let asked = ask_over_tcp(server.address(), alpn, None, get("/waits"));
        let asked = tokio::spawn(asked);
        soon(begun.notified()).await;
        asked.abort();
        assert_eq!(next().await, (version, Outcome::Cancelled, 4));
    }
}

#[tokio::test]
async fn a_panic_is_a_failure_and_not_the_clients_doing() {
    let (told, mut ends) = mpsc::unbounded_channel();
    let log = EndLog::new(move |end: &EndEntry| {
        let _ = told.send(end.outcome);
    });
    let panics = async || -> &'static str { panic!("as this test wants") };
    let server = run(Router::new().route("/", on_get(panics)).layer(log));
    let mut client = Http3::connect(server.address()).await;
    assert!(client.ask(get("/")).await.is_err());
    assert_eq!(soon(ends.recv()).await, Some(Outcome::Failed));
}

/// Key exchange of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    PostQuantum,
    Classical,
}

/// Sends a request over HTTP/3, HTTP/2 and HTTP/1.1. Returns the responses in this order.
async fn ask_all(
    server: SocketAddr,
    keys: Keys,
    request: impl Fn() -> Request<Bytes>,
) -> [Response<Bytes>; 3] {
    let config = client_config(&Certificate::shared());
    let (config, groups) = match keys {
        Keys::PostQuantum => (config, None),
        Keys::Classical => (
            config.key_exchange(KeyExchange::OnlyClassical),
            Some(&[NamedGroup::X25519][..]),
        ),
    };
    let mut client = Http3::with(server, config).await;
    [
        client.ask(request()).await.unwrap(),
        ask_over_tcp(server, "h2", groups, request()).await.unwrap(),
        ask_over_tcp(server, "http/1.1", groups, request())
            .await
            .unwrap(),
    ]
}

/// What axum's own server gives handlers: the extension, and the extractor.
#[tokio::test]
async fn handlers_of_axum_get_the_address_of_the_client() {
    let page = async |ConnectInfo(client): ConnectInfo<SocketAddr>, peer: Peer| {
        format!("{:?} {}", peer.version, client == peer.address)
    };
    let router = Router::new().route("/", on_get(page));
    let server = Server::bind("127.0.0.1:0", Certificate::shared().config()).unwrap();
    let address = server.local_address();
    let make = router.into_make_service_with_connect_info::<SocketAddr>();
    let serving = tokio::spawn(server.serve_make(make));
    let responses = ask_all(address, Keys::PostQuantum, || get("/")).await;
    let bodies = responses.map(Response::into_body);
    assert_eq!(bodies, ["HTTP/3.0 true", "HTTP/2.0 true", "HTTP/1.1 true"]);
    serving.abort();
}

/// A service that only one thread may use at a time.
#[derive(Clone)]
struct NotSync(Router, PhantomData<Cell<()>>);

impl Service<Request<Body>> for NotSync {
    type Response = <Router as Service<Request<Body>>>::Response;
    type Error = <Router as Service<Request<Body>>>::Error;
    type Future = <Router as Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::<Request<Body>>::poll_ready(&mut self.0, cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.0.call(request)
    }
}

#[tokio::test]
async fn a_server_answers_what_is_in_progress_after_its_signal() {
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tells, waits) = (begun.clone(), go_on.clone());
    let slow = async move || {
        tells.notify_one();
        waits.notified().await;
        "done"
    };
    let app = NotSync(
        Router::new()
            .route("/slow", on_get(slow))
            .route("/", on_get(async || "quick")),
        PhantomData,
    );
    let server = Server::bind("127.0.0.1:0", Certificate::shared().config()).unwrap();
    let (handle, address) = (server.handle(), server.local_address());
    for shown in [format!("{server:?}"), format!("{handle:?}")] {
        assert!(shown.contains(&address.to_string()), "{shown}");
    }
    let signal = Arc::new(Notify::new());
    let stop = signal.clone();
    let until = async move { stop.notified().await };
    let serving = tokio::spawn(server.serve_until(app, until, Duration::from_secs(30)));
    for response in ask_all(address, Keys::PostQuantum, || get("/")).await {
        assert_eq!(response.body(), "quick");
    }
    let asked = tokio::spawn(ask_over_tcp(address, "h2", None, get("/slow")));
    soon(begun.notified()).await;
    let idle = Http3::connect(address).await;
    signal.notify_one();
    // It is told to go, and this takes longer than no time at all.
    soon(idle.connection.closed()).await;
    // New connections are refused from now on.
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    go_on.notify_one();
    assert_eq!(soon(asked).await.unwrap().unwrap().body(), "done");
    soon(serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn routes_may_demand_post_quantum_connections() {
    let observed = Arc::new(AtomicUsize::new(0));
    let counted = observed.clone();
    let observe = PostQuantum::observe(move |peer| {
        assert!(!peer.tls.is_post_quantum());
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let route = |path: &str, layer: PostQuantum| {
        let router = Router::new().route(path, any(async || "served"));
        router.layer(layer)
    };
    let require = PostQuantum::require;
    let router = route("/421", require())
        .merge(route("/426", require().refusal(Refusal::UpgradeRequired)))
        .merge(route("/403", require().refusal(Refusal::Forbidden)))
        .merge(route("/observed", observe))
        .merge(route("/warned", PostQuantum::warn()));
    let server = run(router);
    for path in ["/421", "/426", "/403", "/observed", "/warned"] {
        for response in ask_all(server.address(), Keys::PostQuantum, || get(path)).await {
            assert_eq!(response.body(), "served", "{path}");
        }
    }
    assert_eq!(observed.load(Ordering::SeqCst), 0);
    for (path, status) in [
        ("/421", 421),
        ("/426", 426),
        ("/403", 403),
        ("/observed", 200),
        ("/warned", 200),
    ] {
        let responses = ask_all(server.address(), Keys::Classical, || get(path)).await;
        for response in &responses {
            assert_eq!(response.status(), status, "{path}");
            assert_eq!(response.body() == "served", status == 200, "{path}");
        }
        let upgrades = responses.map(|response| response.headers().contains_key("upgrade"));
        assert_eq!(upgrades, [false, false, status == 426], "{path}");
    }
    assert_eq!(observed.load(Ordering::SeqCst), 3);
    let call = || {
        let mut call = post("/421", "");
        let kind = "application/grpc+proto".parse().unwrap();
        call.headers_mut().insert("content-type", kind);
        call
    };
    for response in ask_all(server.address(), Keys::Classical, call).await {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["grpc-status"], "9");
        assert_eq!(response.headers()["content-type"], "application/grpc+proto");
    }
}

#[tokio::test]
async fn a_handshake_is_a_record() {
    let record = async |peer: Peer| serde_json::to_string(&*peer.tls).unwrap();
    let server = run(Router::new().route("/", on_get(record)));
    for (keys, group) in [
        (Keys::PostQuantum, "X25519MLKEM768"),
        (Keys::Classical, "X25519"),
    ] {
        let is_post_quantum = keys == Keys::PostQuantum;
        let lineage = if is_post_quantum {
            "post_quantum"
        } else {
            "classical"
        };
        for response in ask_all(server.address(), keys, || get("/")).await {
            let record: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
            assert_eq!(record["post_quantum"], is_post_quantum, "{record}");
            assert_eq!(record["group"], group, "{record}");
            assert_eq!(record["lineage"], lineage, "{record}");
            assert_eq!(record["resumed"], false, "{record}");
            assert_eq!(record["server_name"], "localhost", "{record}");
            assert!(record["alpn"].is_string(), "{record}");
        }
    }
}
