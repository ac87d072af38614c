//! Responses that a client asks for and does not take.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    routing::get,
};
use futures_util::StreamExt as _;
use http_body::Frame;
use hybriq_http::StallTime;
use tokio::sync::Notify;

use crate::{
    client::{Client, Manners, Outcome, VERSIONS, Version, connections},
    serve,
    support::{Running, soon},
};

/// A body of parts of this size, up to a length. Counts those that exist.
struct Parts {
    part: usize,
    left: usize,
    alive: Arc<AtomicUsize>,
}

impl Parts {
    fn body(part: usize, left: usize, alive: &Arc<AtomicUsize>) -> Body {
        alive.fetch_add(1, Ordering::SeqCst);
        Body::new(Self {
            part,
            left,
            alive: alive.clone(),
        })
    }
}

impl http_body::Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.part.min(self.left);
        self.left -= part;
        let data = (part > 0).then(|| Ok(Frame::data(vec![7; part].into())));
        Poll::Ready(data)
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A server of bodies in parts of this size, and of a request that waits until it may go on.
struct Served {
    server: Running,
    alive: Arc<AtomicUsize>,
    go_on: Arc<Notify>,
}

impl Served {
    fn new(part: usize, length: usize) -> Self {
        let alive = Arc::new(AtomicUsize::new(0));
        let go_on = Arc::new(Notify::new());
        let (bodies, held) = (alive.clone(), go_on.clone());
        let parts = async move || Parts::body(part, length, &bodies);
        let poll = async move || {
            held.notified().await;
        };
        let router = Router::new().route("/parts", get(parts));
        let server = serve(router.route("/poll", get(poll)), |limits| {
            limits.stall_time = Duration::from_millis(300);
            limits.header_time = Duration::from_millis(500);
        });
        Self {
            server,
            alive,
            go_on,
        }
    }

    async fn bodies(&self, count: usize) {
        alive(&self.alive, count).await;
    }
}

/// What is asked for and not taken is dropped; a request that has nothing to send yet is left alone, on the
/// same connection and on others.
async fn is_dropped_and_a_long_poll_lives(
    version: Version,
    part: usize,
    length: usize,
    window: u32,
) {
    let what = format!("{version:?}, {length} bytes in parts of {part}, window {window}");
    let served = Served::new(part, length);
    let address = served.server.address();
    let manners = Manners {
        window: Some(window),
        is_silent: false,
    };
    let mut client = Client::with(version, address, manners).await;
    let poll = match version {
        // There is one request at a time.
        Version::Http1 => None,
        _ => client.send("/poll").await,
    };
    let mut other = Client::connect(version, address).await;
    let other_poll = other.send("/poll").await.unwrap();
    let stuck = client.send("/parts").await.unwrap();
    served.bodies(1).await;
    // The clients read, and answer PINGs, like any other.
    let mut polls = vec![tokio::spawn(async move { other.take(other_poll).await })];
    if let Some(poll) = poll {
        polls.push(tokio::spawn(async move { client.take(poll).await }));
        served.bodies(0).await;
    } else {
        served.bodies(0).await;
    }
    drop(stuck);
    for poll in &polls {
        assert!(!poll.is_finished(), "{what}");
    }
    served.go_on.notify_waiters();
    for poll in polls {
        let ended = soon(poll).await.unwrap();
        assert_eq!(ended, Outcome::Answered(200), "{what}");
    }
}

/// Of two bodies that nobody takes, that of the patient route lives, and of three that of the hasty one ends first.
#[tokio::test]
async fn routes_have_stall_times_of_their_own() {
    let serve = |layer: StallTime, stall_time| {
        let counts = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let [usual, special] = counts.clone();
        let usual = async move || Parts::body(16 << 10, ENDLESS, &usual);
        let special = async move || Parts::body(16 << 10, ENDLESS, &special);
        let router = Router::new().route("/special", get(special)).layer(layer);
        let server = serve(router.route("/usual", get(usual)), |limits| {
            limits.stall_time = stall_time;
            limits.header_time = Duration::from_millis(200);
        });
        (server, counts)
    };
    let ask = async |version, server: &Running, path, count: &AtomicUsize| {
        let manners = Manners {
            window: Some(64),
            is_silent: false,
        };
        let mut client = Client::with(version, server.address(), manners).await;
        let asked = client.send(path).await.unwrap();
        alive(count, 1).await;
        (client, asked)
    };
    let hasty = StallTime::new(Duration::from_millis(50));
    for version in VERSIONS {
        let (server, [usual, special]) = serve(StallTime::none(), Duration::from_millis(300));
        let (mut client, asked) = ask(version, &server, "/special", &special).await;
        let kept = tokio::spawn(async move {
            if version == Version::Http2 {
                // It answers PINGs.
                client.take(asked).await;
            }
            std::future::pending::<()>().await;
            drop(client);
        });
        for _ in 0..2 {
            let _dropped = ask(version, &server, "/usual", &usual).await;
            alive(&usual, 0).await;
        }
        assert_eq!(special.load(Ordering::SeqCst), 1, "{version:?}");
        kept.abort();
        let (server, [usual, special]) = serve(hasty, Duration::from_secs(600));
        let _kept = ask(version, &server, "/usual", &usual).await;
        let _dropped = ask(version, &server, "/special", &special).await;
        alive(&special, 0).await;
        assert_eq!(usual.load(Ordering::SeqCst), 1, "{version:?}");
    }
}

/// Waits until there are so many bodies.
async fn alive(bodies: &AtomicUsize, count: usize) {
    soon(async {
        while bodies.load(Ordering::SeqCst) != count {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Length of a body that nothing between server and client has room for.
const ENDLESS: usize = 1 << 40;

#[tokio::test]
async fn over_http1_a_response_that_is_not_taken_ends_its_connection() {
    is_dropped_and_a_long_poll_lives(Version::Http1, 16 << 10, ENDLESS, 0).await;
}

#[tokio::test]
async fn over_http2_a_response_that_is_not_taken_ends_alone() {
    for window in [0, 65_535] {
        for part in [1 << 10, 100 << 10] {
            is_dropped_and_a_long_poll_lives(Version::Http2, part, ENDLESS, window).await;
        }
    }
    // A body whose last part is under way.
    is_dropped_and_a_long_poll_lives(Version::Http2, 100 << 10, 100 << 10, 65_535).await;
}

#[tokio::test]
async fn over_http3_a_response_that_is_not_taken_ends_alone() {
    for part in [1 << 10, 100 << 10] {
        is_dropped_and_a_long_poll_lives(Version::Http3, part, ENDLESS, 64).await;
    }
}

/// A response that the transport has taken as a whole, and the client has not, is not kept for ever either.
#[tokio::test]
async fn over_http3_a_response_that_was_sent_and_not_taken_is_reset() {
    let served = Served::new(1000, 1000);
    let manners = Manners {
        window: Some(64),
        is_silent: false,
    };
    let mut client = Client::with(Version::Http3, served.server.address(), manners).await;
    let stuck = client.send("/parts").await.unwrap();
    let (Client::Http3(http3), Some(mut recv)) = (&client, stuck.receiver()) else {
        panic!("another version")
    };
    // The client learns of the reset without reading.
    let reset = soon(recv.received_reset()).await;
    assert_eq!(reset, Ok(Some(0x10c)), "H3_REQUEST_CANCELLED");
    assert_eq!(http3.connection.close_reason(), None);
}

/// A client that takes a long part little by little is served, however long it takes.
#[tokio::test]
async fn over_http3_a_response_that_is_taken_slowly_is_sent_to_its_end() {
    let served = Served::new(512 << 10, 512 << 10);
    let manners = Manners {
        window: Some(64),
        is_silent: false,
    };
    let mut client = Client::with(Version::Http3, served.server.address(), manners).await;
    assert_eq!(client.ask("/parts").await, Outcome::Answered(200));
}

/// A client that asks with a window of nothing and falls silent leaves nothing behind.
#[tokio::test]
async fn a_client_that_asks_and_falls_silent_leaves_nothing() {
    for version in VERSIONS {
        let served = Served::new(1 << 10, ENDLESS);
        let manners = Manners {
            window: Some(0),
            is_silent: true,
        };
        let mut client = Client::with(version, served.server.address(), manners).await;
        let mut asked = Vec::new();
        for _ in 0..3 {
            asked.push(client.send("/parts").await.unwrap());
        }
        served
            .bodies(if version == Version::Http1 { 1 } else { 3 })
            .await;
        served.bodies(0).await;
        if version != Version::Http3 {
            connections(&served.server.handle, 0).await;
        }
    }
}

/// The same for a client that vanished while nothing was under way to it: over HTTP/2, PINGs find it.
#[tokio::test]
async fn over_http2_a_long_poll_of_a_client_that_is_gone_ends() {
    let served = Served::new(1, 1);
    let manners = Manners {
        window: None,
        is_silent: true,
    };
    let mut client = Client::with(Version::Http2, served.server.address(), manners).await;
    client.send("/poll").await.unwrap();
    connections(&served.server.handle, 1).await;
    connections(&served.server.handle, 0).await;
}

/// A response that pauses after its first part, over as long as the watch looks several times, and goes on when it
/// may.
fn pausing(go_on: &Arc<Notify>, alive: &Arc<AtomicUsize>) -> Body {
    let go_on = go_on.clone();
    let rest = Parts::body(16 << 10, ENDLESS, alive).into_data_stream();
    let first = futures_util::stream::iter([Ok(Bytes::from_static(b"first"))]);
    let pause = futures_util::stream::once(async move {
        go_on.notified().await;
        Ok(Bytes::from_static(b"second"))
    });
    Body::from_stream(first.chain(pause).chain(rest))
}

/// Streams of other protocols may wait for their client where those are allowed, but responses may not.
#[tokio::test]
async fn over_http3_a_response_that_stalls_after_a_pause_is_reset_beside_other_protocols() {
    let (alive, go_on) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (bodies, held) = (alive.clone(), go_on.clone());
    let router = Router::new().route("/", get(async move || pausing(&held, &bodies)));
    let mut limits = hybriq_http::Limits::default();
    limits.stall_time = Duration::from_millis(300);
    let builder = hybriq_http::Server::builder().limits(limits);
    let config = crate::support::Certificate::shared().config();
    let server = crate::support::run_with(builder.extended_connect(), config, router);
    let manners = Manners {
        window: Some(512),
        is_silent: false,
    };
    let mut client = Client::with(Version::Http3, server.address(), manners).await;
    let stuck = client.send("/").await.unwrap();
    let Some(mut recv) = stuck.receiver() else {
        panic!("another version")
    };
    // The watch looks every 75 ms, while the client has all there is.
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(alive.load(Ordering::SeqCst), 1);
    go_on.notify_one();
    let reset = tokio::time::timeout(Duration::from_secs(5), recv.received_reset()).await;
    assert_eq!(reset, Ok(Ok(Some(0x10c))), "H3_REQUEST_CANCELLED");
}

/// A status of the server itself is a response like others, beside other protocols too.
#[tokio::test]
async fn over_http3_a_refusal_that_is_not_taken_is_reset() {
    let mut limits = hybriq_http::Limits::default();
    limits.stall_time = Duration::from_millis(300);
    limits.header_list = 2048;
    let builder = hybriq_http::Server::builder().limits(limits);
    let config = crate::support::Certificate::shared().config();
    // The server answers with 500 instead.
    let router = Router::new().route("/", get(async || axum::http::StatusCode::PROCESSING));
    let server = crate::support::run_with(builder.extended_connect(), config, router);
    let manners = Manners {
        window: Some(2),
        is_silent: false,
    };
    let mut client = Client::with(Version::Http3, server.address(), manners).await;
    for fields in [0, 60] {
        let stuck = client.send_with("/", fields).await.unwrap();
        let Some(mut recv) = stuck.receiver() else {
            panic!("another version")
        };
        let reset = tokio::time::timeout(Duration::from_secs(5), recv.received_reset()).await;
        assert_eq!(reset, Ok(Ok(Some(0x10c))), "{fields} fields more");
    }
}
