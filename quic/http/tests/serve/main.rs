//! A router of axum over HTTP/1.1, HTTP/2 and HTTP/3.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod front;
mod interim;
mod messages;
mod misdirected;
mod priorities;
mod reload;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod sockets;
#[path = "../support/mod.rs"]
mod support;
mod times;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Bytes, routing::get as on_get};
use http::{HeaderValue, Request, StatusCode};
use hybriq::{EndpointError, Identity, KeyExchange, ServerConfig, fleet::Tickets, tls::EarlyData};
use hybriq_http::{BindError, EarlyMethods, Limits, Server};
use support::{
    Certificate, Http3, Running, ask, ask_over_tcp, client_config, get, post, run, run_with, soon,
};
use tokio::sync::Notify;
use tokio_rustls::rustls::NamedGroup;

#[tokio::test]
async fn one_port_speaks_three_versions() {
    let server = run(Router::new());
    let port = server.address().port();
    let mut client = Http3::connect(server.address()).await;
    let response = client.ask(post("/x", "hello")).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.body(), "hello");
    assert_eq!(response.headers()["x-version"], "HTTP/3.0");
    assert_eq!(response.headers()["x-group"], "X25519MLKEM768");
    assert_eq!(response.headers()["x-name"], "localhost");
    assert_eq!(response.headers()["x-early"], "false");
    assert_eq!(response.headers()["content-length"], "5");
    assert!(response.headers().contains_key("date"));
    assert!(!response.headers().contains_key("alt-svc"));
    for (alpn, version) in [("h2", "HTTP/2.0"), ("http/1.1", "HTTP/1.1")] {
        let asked = ask_over_tcp(server.address(), alpn, None, post("/x", "hello")).await;
        let response = asked.unwrap();
        assert_eq!(response.body(), "hello");
        assert_eq!(response.headers()["x-version"], version);
        // The policy wants it, although this client sends a share of another group first.
        assert_eq!(response.headers()["x-group"], "X25519MLKEM768, retried");
        assert_eq!(response.headers()["x-name"], "localhost");
        let expected = format!("h3=\":{port}\"; ma=86400");
        assert_eq!(response.headers()["alt-svc"], expected);
    }
}

/// The policy of key exchange holds over TCP, too.
#[tokio::test]
async fn a_classical_client_is_refused_where_post_quantum_is_required() {
    let config = Certificate::shared().config();
    let config = config.key_exchange(KeyExchange::RequirePostQuantum);
    let server = run_with(Server::builder(), config, Router::new());
    let classical = [NamedGroup::X25519, NamedGroup::secp256r1];
    for alpn in ["h2", "http/1.1"] {
        let asked = ask_over_tcp(server.address(), alpn, Some(&classical), get("/")).await;
        assert!(asked.is_err(), "{alpn}");
        assert!(
            ask_over_tcp(server.address(), alpn, None, get("/"))
                .await
                .is_ok()
        );
    }
    let config = client_config(&Certificate::shared()).key_exchange(KeyExchange::OnlyClassical);
    let client = hybriq::Endpoint::client(config).unwrap();
    assert!(
        soon(client.connect(server.address(), "localhost"))
            .await
            .is_err()
    );
}

/// A client that prefers another group gets the one of the server's policy, over TCP as over QUIC.
#[tokio::test]
async fn a_client_without_ml_kem_is_served_by_default() {
    let server = run(Router::new());
    let classical = [NamedGroup::X25519];
    let asked = ask_over_tcp(server.address(), "h2", Some(&classical), get("/")).await;
    assert_eq!(asked.unwrap().headers()["x-group"], "X25519");
}

#[tokio::test]
async fn bodies_of_all_sizes_pass() {
    let limit = axum::extract::DefaultBodyLimit::disable();
    let server = run(Router::new().layer(limit));
    let mut client = Http3::connect(server.address()).await;
    for len in [0, 1, 1_000, 100_000, 1_900_000] {
        let body = Bytes::from(vec![len as u8; len]);
        let response = client.ask(post("/", body.clone())).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert!(*response.body() == body, "{len} bytes");
    }
}

/// The length that a message announces must be true (RFC 9114 §4.1.2).
#[tokio::test]
async fn a_body_of_another_length_than_announced_is_an_error() {
    let server = run(Router::new());
    let mut client = Http3::connect(server.address()).await;
    for length in ["4", "6"] {
        let mut request = post("/", "hello");
        let value = HeaderValue::from_static(length);
        request.headers_mut().insert("content-length", value);
        match client.ask(request).await {
            Ok(response) => assert_eq!(response.status(), StatusCode::BAD_REQUEST),
            Err(error) => assert!(error.to_string().contains("H3_MESSAGE_ERROR"), "{error}"),
        }
    }
    assert_eq!(client.ask(post("/", "fine")).await.unwrap().body(), "fine");
}

/// A server with a handler that waits until the test lets it go on.
struct Held {
    server: Running,
    begun: Arc<Notify>,
    go_on: Arc<Notify>,
    dropped: Arc<AtomicUsize>,
}

/// Counts its drops.
struct Counts(Arc<AtomicUsize>);

impl Drop for Counts {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Held {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let dropped = Arc::new(AtomicUsize::new(0));
        let handler = {
            let (begun, go_on, dropped) = (begun.clone(), go_on.clone(), dropped.clone());
            async move || {
                let _counts = Counts(dropped);
                begun.notify_one();
                go_on.notified().await;
                "done"
            }
        };
        let builder = Server::builder().limits(limits);
        let router = Router::new().route("/held", on_get(handler));
        let server = run_with(builder, Certificate::shared().config(), router);
        Self {
            server,
            begun,
            go_on,
            dropped,
        }
    }
}

/// A client that gives a request up has its handler dropped.
#[tokio::test]
async fn a_cancelled_request_is_dropped() {
    let held = Held::new();
    let mut client = Http3::connect(held.server.address()).await;
    let request = get("/held").map(drop);
    let mut stream = soon(client.requests.send_request(request)).await.unwrap();
    soon(stream.finish()).await.unwrap();
    soon(held.begun.notified()).await;
    assert_eq!(held.dropped.load(Ordering::SeqCst), 0);
    stream.stop_sending(h3::error::Code::H3_REQUEST_CANCELLED);
    drop(stream);
    soon(async {
        while held.dropped.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(client.ask(post("/", "fine")).await.unwrap().body(), "fine");
}

/// A client that cancels request after request is disconnected (CVE-2023-44487); others go on.
#[tokio::test]
async fn a_client_that_cancels_too_much_is_disconnected() {
    let mut limits = Limits::default();
    limits.cancelled = 20;
    let held = Held::with(limits);
    let mut other = Http3::connect(held.server.address()).await;
    let mut client = Http3::connect(held.server.address()).await;
    soon(async {
        while client.connection.close_reason().is_none() {
            let request = get("/held").map(drop);
            let Ok(mut stream) = client.requests.send_request(request).await else {
                break;
            };
            let _ = stream.finish().await;
            stream.stop_sending(h3::error::Code::H3_REQUEST_CANCELLED);
            drop(stream);
            tokio::task::yield_now().await;
        }
    })
    .await;
    let reason = soon(client.connection.closed()).await.to_string();
    assert!(reason.contains(&0x107.to_string()), "{reason}");
    assert_eq!(other.ask(post("/", "fine")).await.unwrap().body(), "fine");
}

/// Requests that are under way when the server shuts down are answered; then it ends.
#[tokio::test]
async fn a_shutdown_answers_what_is_under_way() {
    let held = Held::new();
    let address = held.server.address();
    let mut client = Http3::connect(address).await;
    let mut requests = client.requests.clone();
    let waiting = tokio::spawn(async move { ask(&mut requests, get("/held")).await });
    let over_tcp = tokio::spawn(ask_over_tcp(address, "h2", None, get("/held")));
    soon(held.begun.notified()).await;
    soon(held.begun.notified()).await;
    let handle = held.server.handle.clone();
    let shutdown = tokio::spawn(async move { handle.shutdown(Duration::from_secs(60)).await });
    // The client learns that it must connect elsewhere.
    soon(async { while client.ask(get("/")).await.is_ok() {} }).await;
    assert!(!shutdown.is_finished());
    held.go_on.notify_one();
    held.go_on.notify_one();
    assert_eq!(soon(waiting).await.unwrap().unwrap().body(), "done");
    assert_eq!(soon(over_tcp).await.unwrap().unwrap().body(), "done");
    soon(shutdown).await.unwrap();
    soon(held.server.serving).await.unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

/// Requests that are not done when the time is over are cut off.
#[tokio::test]
async fn a_shutdown_ends_at_its_deadline() {
    let held = Held::new();
    let mut client = Http3::connect(held.server.address()).await;
    let waiting = tokio::spawn(async move { client.ask(get("/held")).await });
    soon(held.begun.notified()).await;
    soon(held.server.handle.shutdown(Duration::ZERO)).await;
    assert!(soon(waiting).await.unwrap().is_err());
    soon(held.server.serving).await.unwrap();
}

/// New connections get the new certificate, over TCP and QUIC; a configuration with a fault changes
/// nothing.
#[tokio::test]
async fn the_certificate_is_reloaded_while_clients_ask() {
    let server = run(Router::new());
    let mut old = Http3::connect(server.address()).await;
    // The key of another certificate.
    let (one, other) = (Certificate::new(), Certificate::new());
    let wrong = ServerConfig::new(Identity::from_der(vec![one.der()], other.key()));
    let refused = server.handle.reload(wrong);
    assert!(matches!(refused, Err(EndpointError::Tls(_))), "{refused:?}");
    assert_eq!(old.ask(post("/", "1")).await.unwrap().body(), "1");
    let mut same = Http3::connect(server.address()).await;
    assert_eq!(same.ask(post("/", "2")).await.unwrap().body(), "2");

    let fresh = Certificate::new();
    server.handle.reload(fresh.config()).unwrap();
    let mut new = Http3::with(server.address(), client_config(&fresh)).await;
    assert_eq!(new.ask(post("/", "3")).await.unwrap().body(), "3");
    assert_eq!(old.ask(post("/", "4")).await.unwrap().body(), "4");
    // The shared certificate is not trusted any more over TCP, because the server has another.
    let asked = ask_over_tcp(server.address(), "h2", None, get("/")).await;
    assert!(asked.is_err());
}

#[tokio::test]
async fn a_port_that_is_taken_for_tcp_only_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let refused = Server::bind(address, Certificate::shared().config()).map(drop);
    let Err(error @ BindError::Tcp { .. }) = refused else {
        panic!("{refused:?}");
    };
    let text = error.to_string();
    assert!(text.contains(&address.to_string()), "{text}");
    assert!(text.contains("without_tcp"), "{text}");
    let alone = Server::builder().without_tcp();
    assert!(alone.bind(address, Certificate::shared().config()).is_ok());
}

/// An address that this machine does not have, and a system without IPv6.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_address_that_cannot_be_used_is_named_with_a_remedy() {
    let refused = Server::bind("[2001:db8::1]:0", Certificate::shared().config()).map(drop);
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("TCP [2001:db8::1]:0"), "{text}");
    assert!(text.contains("use an address of this machine"), "{text}");
    // EAFNOSUPPORT of Linux.
    let without_ipv6 = BindError::Tcp {
        address: "[::]:443".parse().unwrap(),
        cause: std::io::Error::from_raw_os_error(97),
    };
    let text = without_ipv6.to_string();
    assert!(text.contains("0.0.0.0 if the system has no IPv6"), "{text}");
}

/// Asks on a connection with 0-RTT, and returns the status and whether the service saw a replayable
/// request.
async fn ask_early(
    config: ServerConfig,
    limits: Limits,
    request: Request<Bytes>,
) -> (StatusCode, Option<String>) {
    let config = config.accept_early_data();
    let server = run_with(Server::builder().limits(limits), config, Router::new());
    let config = client_config(&Certificate::shared()).offer_early_data();
    let mut first = Http3::with(server.address(), config).await;
    assert_eq!(
        first.ask(post("/", "ticket")).await.unwrap().body(),
        "ticket"
    );
    let connecting = first.endpoint.connect(server.address(), "localhost");
    let Ok(early) = soon(connecting.early()).await else {
        panic!("there is a ticket");
    };
    let transport = hybriq_h3::adapter::Connection::new(early.clone());
    let mut builder = h3::client::builder();
    let (_driver, mut requests) = soon(builder.build(transport)).await.unwrap();
    let response = ask(&mut requests, request).await.unwrap();
    let seen = response.headers().get("x-early");
    let seen = seen.map(|seen| seen.to_str().unwrap().to_owned());
    (response.status(), seen)
}

/// Clients remember the settings of HTTP/3 for 0-RTT data (RFC 9114 §7.2.4.2, RFC 9204 §3.2.3). A server with others
/// accepts none, also where the sessions of tickets are the same.
#[tokio::test]
async fn other_settings_than_those_of_the_ticket_refuse_0_rtt() {
    let config = Certificate::shared().config().accept_early_data();
    let config = config.tickets(Tickets::new());
    let offering = client_config(&Certificate::shared()).offer_early_data();
    let mut tables = Limits::default();
    tables.field_table = 0;
    let mut lists = Limits::default();
    lists.header_list /= 2;
    for (limits, expected) in [
        (Limits::default(), EarlyData::Accepted),
        (tables, EarlyData::Rejected),
        (lists, EarlyData::Rejected),
    ] {
        let first = run_with(Server::builder(), config.clone(), Router::new());
        let mut client = Http3::with(first.address(), offering.clone()).await;
        client.ask(get("/")).await.unwrap();
        let builder = Server::builder().limits(limits.clone());
        let second = run_with(builder, config.clone(), Router::new());
        let connecting = client.endpoint.connect(second.address(), "localhost");
        let Ok(early) = soon(connecting.early()).await else {
            panic!("there is a ticket");
        };
        let (_connection, became) = soon(early.established()).await.unwrap();
        assert_eq!(became, expected, "{limits:?}");
    }
}

/// A request that may be a replay is answered if its method is safe (RFC 8470 §5.2).
#[tokio::test]
async fn unsafe_methods_in_0_rtt_packets_get_425() {
    let config = || Certificate::shared().config();
    let asked = ask_early(config(), Limits::default(), get("/")).await;
    assert_eq!(asked, (StatusCode::OK, Some("true".to_owned())));
    let asked = ask_early(config(), Limits::default(), post("/", "x")).await;
    assert_eq!(asked, (StatusCode::TOO_EARLY, None));
    let mut limits = Limits::default();
    limits.early_methods = EarlyMethods::All;
    let asked = ask_early(config(), limits, post("/", "x")).await;
    assert_eq!(asked, (StatusCode::OK, Some("true".to_owned())));
}

#[tokio::test]
async fn fields_beyond_the_limit_are_refused() {
    let mut limits = Limits::default();
    limits.header_list = 4_096;
    let config = Certificate::shared().config();
    let server = run_with(Server::builder().limits(limits), config, Router::new());
    let mut client = Http3::connect(server.address()).await;
    assert!(client.ask(get("/")).await.is_ok());
    let mut request = get("/");
    let long = HeaderValue::from_str(&"x".repeat(5_000)).unwrap();
    request.headers_mut().insert("x-long", long);
    // The client knows the limit from the server's SETTINGS, and refuses by itself.
    let refused = client.ask(request).await.unwrap_err().to_string();
    assert!(!refused.is_empty());
    assert!(client.ask(get("/")).await.is_ok());
}

/// A request of which nothing comes does not hold its stream for ever.
#[tokio::test]
async fn a_request_that_does_not_come_is_given_up() {
    let mut limits = Limits::default();
    limits.header_time = Duration::from_millis(100);
    let config = Certificate::shared().config();
    let server = run_with(Server::builder().limits(limits), config, Router::new());
    let mut client = Http3::connect(server.address()).await;
    let (mut send, _recv) = client.connection.open_bidi().await.unwrap();
    // The start of a HEADERS frame.
    send.write_all(&[1, 100, 0]).await.unwrap();
    assert_eq!(soon(send.stopped()).await, Ok(Some(0x10c)));
    assert_eq!(client.ask(post("/", "fine")).await.unwrap().body(), "fine");
}
