//! Very many requests on one connection of each kind, with everything mixed in that may end one early: what is
//! allocated at rest does not grow with their number, and no table keeps an entry. A program of its own, because
//! it counts every byte that is allocated.
//!
//! CI makes [`REQUESTS`] requests, a twentieth of what is made by hand:
//! ```sh
//! HYBRIQ_SOAK=2000000 cargo test --release -p hybriq-http --test soak -- --nocapture
//! ```
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(
    clippy::disallowed_methods,
    reason = "waits until nothing changes any more, and tells how long all took"
)]

mod http3;
mod pages;
mod raw;
#[path = "../support/mod.rs"]
mod support;
mod webtransport;

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use axum::{Router, body::Body, http::StatusCode, routing::any};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use hybriq::{ClientConfig, ServerConfig, TransportConfig, stats::Census};
use hybriq_http::{Limits, Server};
use hybriq_sim::heap;

use self::{
    http3::Http3,
    pages::{Pages, Version},
    raw::Raw,
    support::{Certificate, Running, run_with, soon},
    webtransport::Chat,
};

#[global_allocator]
static ALLOCATOR: heap::Counting = heap::Counting;

/// Requests in CI.
const REQUESTS: u64 = 100_000;

/// Parts after each of which everything comes to rest and is counted.
const PARTS: u64 = 10;

/// Time for which a connection may be idle: longer than the others take for their share of a part, however slow
/// the machine.
const IDLE: Duration = Duration::from_secs(3600);

/// Requests under way at once on a connection.
const AT_ONCE: usize = 16;

/// The same before anything is counted, so that every queue and table has had its largest size.
const AT_ONCE_BEFORE: usize = 64;

/// Requests before anything is counted.
const BEFORE: u64 = 2000;

/// Time for which what is allocated stays the same at rest.
const REST: Duration = Duration::from_millis(500);

/// Bytes of a page that is not read to its end.
const LONG: usize = 20_000;

static LONG_BODY: [u8; LONG] = [7; LONG];

fn transport() -> TransportConfig {
    TransportConfig::new().idle_timeout(Some(IDLE))
}

fn server_config() -> ServerConfig {
    Certificate::shared().config().transport(transport())
}

/// Returns the configuration of a client of HTTP/3.
fn client_config() -> ClientConfig {
    support::client_config(&Certificate::shared()).transport(transport())
}

/// Returns a body that begins, and then has neither data nor an end.
fn silent() -> Body {
    let begin = stream::iter([Ok::<_, std::io::Error>("begin")]);
    Body::from_stream(begin.chain(stream::pending()))
}

/// The connections, all with both ends in this process.
struct Soak {
    server: Running,
    raw: Raw,
    http3: Http3,
    over_quic: Pages,
    over_tcp: Pages,
    chat: Chat,
}

impl Soak {
    async fn start() -> Self {
        let mut limits = Limits::default();
        limits.requests = u64::MAX;
        limits.cancelled = u32::MAX;
        limits.idle_time = IDLE;
        let long = || async { Body::from(Bytes::from_static(&LONG_BODY)) };
        let router = Router::new()
            .route("/long", any(long))
            .route("/silent", any(async || silent()))
            .route("/done", any(async || StatusCode::NO_CONTENT))
            .route("/deaf", any(std::future::pending::<StatusCode>))
            .route("/chat", any(webtransport::accept));
        let builder = Server::builder().limits(limits);
        let builder = builder.webtransport(hybriq_http::webtransport::Limits::default());
        let server = run_with(builder, server_config(), router);
        let address = server.address();
        Self {
            raw: Raw::connect().await,
            http3: Http3::connect(address).await,
            over_quic: Pages::new(address, Version::Http3),
            over_tcp: Pages::new(address, Version::Http2),
            chat: Chat::connect(address).await,
            server,
        }
    }

    /// Makes requests, each connection its share.
    async fn run(&self, requests: &Range<u64>, at_once: usize) {
        let share = |percent: u64| requests.start * percent / 100..requests.end * percent / 100;
        tokio::join!(
            self.raw.run(share(25), at_once),
            self.http3.run(share(25), at_once),
            self.over_quic.run(share(20), at_once),
            self.over_tcp.run(share(15), at_once),
            self.chat.run(share(15), at_once),
        );
    }

    /// Counts what every end holds, and the tasks of the server.
    fn census(&self) -> (Vec<Census>, usize) {
        let mut all = Vec::from(self.raw.census());
        all.push(self.server.handle.census());
        all.extend([self.http3.census(), self.chat.census()]);
        all.extend([self.over_quic.census(), self.over_tcp.census()]);
        (all, self.server.tasks())
    }

    /// Checks that no connection was replaced.
    fn check(&self) {
        self.raw.check();
        self.http3.check();
        self.over_quic.check();
        self.over_tcp.check();
        self.chat.check();
        assert_eq!(self.server.handle.connections(), 4);
    }

    /// Checks that nothing is held that was not held before. The server's watch looks only every few seconds.
    async fn holds_no_more_than(&self, (before, tasks): &(Vec<Census>, usize)) {
        let left = || {
            let (now, tasks_now) = self.census();
            let grown = now.iter().zip(before);
            let mut grown = grown.map(|(now, before)| now.grown_since(before));
            let grown = grown.find(|grown| !grown.is_empty());
            grown.or((tasks_now > *tasks).then(|| Census::default().with("tasks", tasks_now, 0)))
        };
        for _ in 0..1000 {
            if left().is_none() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(left(), None);
    }
}

/// Makes numbered requests, some at a time.
async fn each<F: Future<Output = ()>>(
    requests: Range<u64>,
    at_once: usize,
    request: impl Fn(u64) -> F,
) {
    let requests = stream::iter(requests);
    requests.for_each_concurrent(at_once, request).await;
}

/// Sends numbered datagrams one after another, one for each `every` numbers, and makes requests of the rest.
async fn beside_datagrams<D: Future<Output = ()>, R: Future<Output = ()>>(
    numbers: Range<u64>,
    every: u64,
    at_once: usize,
    datagram: impl Fn(u64) -> D,
    request: impl Fn(u64) -> R,
) {
    let datagrams = numbers.start / every..numbers.end / every;
    let requests = numbers.start - datagrams.start..numbers.end - datagrams.end;
    tokio::join!(
        each(datagrams, 1, datagram),
        each(requests, at_once, request)
    );
}

/// Returns the bytes that are allocated once they stay the same.
async fn at_rest() -> usize {
    let settled = async {
        let (mut bytes, mut since) = (0, Instant::now());
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let now = heap::allocated();
            if now != bytes {
                (bytes, since) = (now, Instant::now());
            } else if since.elapsed() >= REST {
                return bytes;
            }
        }
    };
    soon(settled).await
}

#[tokio::test]
async fn what_is_allocated_does_not_grow_with_the_number_of_requests() {
    let requests = std::env::var("HYBRIQ_SOAK").map_or(REQUESTS, |most| most.parse().unwrap());
    let soak = Soak::start().await;
    soak.run(&(0..BEFORE), AT_ONCE_BEFORE).await;
    at_rest().await;
    let before = soak.census();
    let begun = Instant::now();
    let mut seen = Vec::new();
    for part in 0..PARTS {
        let numbers = requests * part / PARTS..requests * (part + 1) / PARTS;
        soak.run(&numbers, AT_ONCE).await;
        let bytes = at_rest().await;
        println!(
            "{:>9} requests: {bytes} B, {:?}",
            numbers.end,
            begun.elapsed()
        );
        soak.check();
        seen.push(bytes);
    }
    soak.holds_no_more_than(&before).await;
    let (least, most) = (seen.iter().min().unwrap(), seen.iter().max().unwrap());
    assert!(most - least <= least / 100, "not flat within 1 %: {seen:?}");
}
