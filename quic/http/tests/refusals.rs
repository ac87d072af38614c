//! What the log says about connections that are refused.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::{
    fmt::Write as _,
    sync::{Arc, Mutex, Once, PoisonError},
};

use axum::Router;
use hybriq_http::{Limits, Server};
use hybriq_tls::{Backend, ConfigError, KeyExchange, Provider, ServerOptions, Session, Start};
use support::{Certificate, ask_over_tcp, connect_tls, get, run_with};
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

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
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
