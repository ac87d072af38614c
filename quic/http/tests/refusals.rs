//! What the log says about connections and requests that are refused, or should be.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::{
    fmt::Write as _,
    sync::{Arc, Mutex, Once, PoisonError},
};

use axum::{Router, routing::any};
use hybriq_http::{Limits, PostQuantum, Server};
use hybriq_tls::{Backend, ConfigError, KeyExchange, Provider, ServerOptions, Session, Start};
use support::{Certificate, Http3, ask_over_tcp, connect_tls, get, run, run_with};
use tokio_rustls::rustls::NamedGroup;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// Keeps warnings and what a server tells of itself.
struct Log;

fn listen() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| tracing::subscriber::set_global_default(Log).unwrap());
}

static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn warnings(of: &str) -> Vec<String> {
    let all = WARNINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let some = all.iter().filter(|warning| warning.contains(of));
    some.cloned().collect()
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut message = Message(String::new());
        attributes.record(&mut message);
        WARNINGS.lock().unwrap().push(message.0);
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        WARNINGS.lock().unwrap().push(message.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

/// The log says why, and what to do.
#[tokio::test]
async fn connections_over_tcp_that_are_refused_are_logged() {
    listen();
    let full = |limits: &mut Limits| limits.tcp_connections = 1;
    let short = |limits: &mut Limits| limits.memory = 1;
    for (change, remedy) in [
        (
            &full as &dyn Fn(&mut Limits),
            "raise Limits::tcp_connections",
        ),
        (&short, "raise Limits::memory"),
    ] {
        let mut limits = Limits::default();
        change(&mut limits);
        let config = Certificate::shared().config();
        let server = run_with(Server::builder().limits(limits), config, Router::new());
        let _first = connect_tls(server.address(), "h2").await;
        for _ in 0..3 {
            let asked = ask_over_tcp(server.address(), "h2", None, get("/")).await;
            // One that takes the place of another is told so by its status.
            let refused = asked.map_or(true, |answer| answer.status() == 503);
            assert!(refused, "{remedy}");
        }
        assert!(!warnings(remedy).is_empty(), "{remedy}");
    }
}

/// A TLS library of another name.
struct Other(Arc<dyn Provider>);

impl Provider for Other {
    fn name(&self) -> &'static str {
        "another library"
    }

    fn supports_early_data(&self) -> bool {
        self.0.supports_early_data()
    }

    fn key_exchange(&self) -> &KeyExchange {
        self.0.key_exchange()
    }

    fn session(&self, start: Start<'_>) -> Result<Box<dyn Session>, ConfigError> {
        self.0.session(start)
    }
}

/// The TLS library of QUIC is not that of TCP.
#[tokio::test]
async fn a_server_with_two_libraries_says_so_once() {
    listen();
    let config = |named: bool| {
        let config = Certificate::shared().config();
        let options = ServerOptions::new(Certificate::shared().identity());
        let provider = Backend::Rustls.server(&options.alpn(["h3"])).unwrap();
        if named {
            config.provider(Arc::new(Other(provider)))
        } else {
            config
        }
    };
    let told = || warnings("HTTP/2 over TCP use rustls").len();
    let _rustls = run_with(Server::builder(), config(false), Router::new());
    assert_eq!(told(), 0);
    let server = run_with(Server::builder(), config(true), Router::new());
    server.handle.reload(config(true)).unwrap();
    assert_eq!(told(), 1);
    assert_eq!(warnings("QUIC uses another library for TLS").len(), 1);
}

#[tokio::test]
async fn requests_over_classical_connections_are_warned_of() {
    listen();
    let router = Router::new().route("/", any(async || "served"));
    let server = run(router.layer(PostQuantum::warn()));
    let told = || warnings("requests without post-quantum key exchange");
    let ask = async |groups| ask_over_tcp(server.address(), "h2", groups, get("/")).await;
    ask(None).await.unwrap();
    assert_eq!(told(), [""; 0]);
    let classical = Some(&[NamedGroup::X25519][..]);
    assert_eq!(ask(classical).await.unwrap().body(), "served");
    let [told] = <[String; 1]>::try_from(told()).unwrap();
    assert!(
        told.contains("requests=1 ") && told.contains("tls=X25519"),
        "{told}"
    );
}

#[tokio::test]
async fn the_name_of_a_server_is_in_its_traces() {
    listen();
    let builder = Server::builder().name("of-this-test");
    let server = run_with(builder, Certificate::shared().config(), Router::new());
    let _client = Http3::connect(server.address()).await;
    assert!(!warnings("endpoint=\"of-this-test\"").is_empty());
}
