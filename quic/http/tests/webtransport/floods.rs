//! Clients that try to make a server with sessions hold much.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use axum::{Extension, Router, routing::any};
use http::StatusCode;
use hybriq::{ConnectionError, Endpoint, ServerConfig, StreamId, TransportConfig};
use hybriq_http::{
    Code, Server,
    webtransport::{Limits, Session, WebTransport},
};
use tokio::sync::{Semaphore, mpsc};

use crate::{
    peer::{DRAFT02, Peer},
    support::{Certificate, Running, client_config, run_with, soon},
};

/// A server whose service takes its time before it accepts a session.
pub(crate) struct Slow {
    pub(crate) server: Running,
    /// Requests that the service got.
    asked: mpsc::UnboundedReceiver<()>,
    /// Requests whose service was dropped, or has answered.
    over: mpsc::UnboundedReceiver<()>,
    /// Permits to answer.
    pub(crate) answers: Arc<Semaphore>,
    pub(crate) sessions: mpsc::UnboundedReceiver<Session>,
}

/// Tells when it is dropped.
struct Guard(mpsc::UnboundedSender<()>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

impl Slow {
    pub(crate) fn with(limits: Limits) -> Self {
        Self::on(Certificate::shared().config(), limits)
    }

    fn on(config: ServerConfig, limits: Limits) -> Self {
        let (ask, asked) = mpsc::unbounded_channel();
        let (end, over) = mpsc::unbounded_channel();
        let (start, sessions) = mpsc::unbounded_channel();
        let answers = Arc::new(Semaphore::new(0));
        let permits = answers.clone();
        let accept = move |Extension(request): Extension<WebTransport>| {
            let (ask, permits, start) = (ask.clone(), permits.clone(), start.clone());
            let guard = Guard(end.clone());
            async move {
                let _guard = guard;
                ask.send(()).unwrap();
                permits.acquire().await.unwrap().forget();
                request.accept(async move |session| {
                    let _ = start.send(session);
                })
            }
        };
        let router = Router::new().route("/chat", any(accept));
        let builder = Server::builder().webtransport(limits);
        Self {
            server: run_with(builder, config, router),
            asked,
            over,
            answers,
            sessions,
        }
    }
}

/// Requests count from their arrival, however slow the service is, and no longer than they last.
#[tokio::test]
async fn requests_for_sessions_count_before_they_are_answered() {
    let mut limits = Limits::default();
    limits.sessions = 1;
    let mut host = Slow::with(limits);
    let client = Peer::connect(host.server.address()).await;
    let mut first = client.ask().await;
    soon(host.asked.recv()).await.unwrap();
    for _ in 1..10 {
        let mut other = client.ask().await;
        let answer = tokio::select! {
            answer = other.status() => answer,
            _ = host.asked.recv() => panic!("the service got a request beyond the limit"),
        };
        assert_eq!(answer, StatusCode::TOO_MANY_REQUESTS);
    }
    host.answers.add_permits(1);
    let answer = first.status().await;
    assert_eq!(answer, StatusCode::OK);
    let session = soon(host.sessions.recv()).await.unwrap();
    soon(host.over.recv()).await.unwrap();

    // The place of a session that ended is free, and that of a request that was cancelled.
    session.close(0, "");
    drop((first, session));
    let cancelled = loop {
        let mut other = client.ask().await;
        tokio::select! {
            answer = other.status() => assert_eq!(answer, StatusCode::TOO_MANY_REQUESTS),
            _ = host.asked.recv() => break other,
        }
    };
    drop(cancelled);
    soon(host.over.recv()).await.unwrap();
    let mut last = client.ask().await;
    host.answers.add_permits(1);
    let answer = last.status().await;
    assert_eq!(answer, StatusCode::OK);
}

/// The numbers of sessions that are over are counted, and bounded.
#[tokio::test]
async fn the_last_sessions_are_remembered_and_counted() {
    let mut limits = Limits::default();
    limits.sessions = 0;
    let host = Slow::with(limits);
    let client = Peer::connect(host.server.address()).await;
    for number in 1..=70 {
        let mut refused = client.ask().await;
        let answer = refused.status().await;
        assert_eq!(answer, StatusCode::TOO_MANY_REQUESTS);
        let census = host.server.handle.census();
        let remembered = census.entries("numbers of sessions that are over");
        assert_eq!(remembered, number.min(64));
        let grown = census.grown_since(&hybriq::stats::Census::default());
        assert_eq!(grown.entries("numbers of sessions that are over"), 0);
    }
}

/// What the service has finished and a client does not take ends with its session.
#[tokio::test]
async fn finished_streams_end_with_their_session() {
    const SESSIONS: usize = 20;
    let mut host = Slow::with(Limits::default());
    host.answers.add_permits(SESSIONS);
    // A client that takes 256 bytes of each stream, and reads none.
    let transport = TransportConfig::new()
        .initial_stream_receive_window(256)
        .stream_receive_window(256);
    let config = client_config(&Certificate::shared()).transport(transport);
    let endpoint = Endpoint::client(config).unwrap();
    let client = Peer::with(endpoint, host.server.address(), DRAFT02).await;
    for _ in 0..SESSIONS {
        let mut request = client.session().await;
        let session = soon(host.sessions.recv()).await.unwrap();
        let server = session.connection().clone();
        let mut stream = soon(session.open_uni()).await.unwrap();
        soon(stream.write_all(&[7; 10_000])).await.unwrap();
        stream.finish();
        drop(stream);
        soon(async {
            while server.blocked_streams().is_empty() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        request.send.finish();
        soon(session.closed()).await;
        // It was reset.
        soon(async {
            while !server.blocked_streams().is_empty() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        drop(session);
        assert_eq!(request.data().await, Ok(None));
    }
}

/// A session that lives forgets the streams that the client has.
#[tokio::test]
async fn delivered_streams_are_forgotten() {
    let mut host = Slow::with(Limits::default());
    host.answers.add_permits(1);
    let client = Peer::connect(host.server.address()).await;
    let _request = client.session().await;
    let session = soon(host.sessions.recv()).await.unwrap();
    for _ in 0..50 {
        let mut stream = soon(session.open_uni()).await.unwrap();
        stream.reset(1);
        let id = stream.id();
        drop(stream);
        soon(async {
            while !session.connection().is_delivered(id) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    let census = host.server.handle.census();
    assert_eq!(census.entries("ends of streams of sessions"), 0);
}

/// Datagrams cost their place as well, so that empty ones are bounded too.
#[tokio::test]
async fn datagrams_without_payload_are_bounded() {
    let mut limits = Limits::default();
    limits.datagrams = 10 * 100;
    let mut host = Slow::with(limits);
    host.answers.add_permits(1);
    let client = Peer::connect(host.server.address()).await;
    let request = client.session().await;
    let session = soon(host.sessions.recv()).await.unwrap();
    for _ in 0..500 {
        client.send_datagram(request.id(), b"");
    }
    client.send_datagram(request.id(), b"end");
    // The stream is sent after them, so that they have come.
    let _send = client.uni(request.id(), b"").await;
    soon(session.accept_uni()).await.unwrap();
    // What is read while others arrive makes room for them.
    for _ in 0..20 {
        client.get().await;
    }
    let mut count = 1;
    while soon(session.recv_datagram()).await.unwrap().unwrap() != "end" {
        count += 1;
    }
    assert!(count <= 10, "{count}");
}

/// RFC 9297 §2.1: no request can come to which it belongs.
#[tokio::test]
async fn a_datagram_for_a_stream_beyond_the_limit_ends_the_connection() {
    let mut host = Slow::with(Limits::default());
    host.answers.add_permits(1);
    let client = Peer::connect(host.server.address()).await;
    let request = client.session().await;
    let session = soon(host.sessions.recv()).await.unwrap();
    // One that may come.
    client.send_datagram(StreamId(request.id().0 + 4), b"");
    round_trips(&client, &session, request.id()).await;
    client.send_datagram(StreamId((1 << 62) - 4), b"");
    let end = soon(client.connection.closed()).await;
    let code = hybriq_h3::Code::H3_ID_ERROR.0;
    assert!(
        matches!(&end, ConnectionError::Application { code: had, .. } if *had == code),
        "{end}"
    );
}

/// Opens streams with nothing but a header as long as the server allows, and returns their number.
fn flood(client: &mut Peer, bidi: bool, session: u8) -> usize {
    let mut cx = Context::from_waker(Waker::noop());
    let connection = &mut client.connection;
    let mut count = 0;
    loop {
        let header = [0x40, if bidi { 0x41 } else { 0x54 }, session];
        let opened = if bidi {
            connection
                .poll_open_bidi(&mut cx)
                .map_ok(|(send, mut recv)| {
                    recv.stop(0);
                    send
                })
        } else {
            connection.poll_open_uni(&mut cx)
        };
        let Poll::Ready(opened) = opened else {
            return count;
        };
        let mut send = opened.unwrap();
        let Poll::Ready(Ok(3)) = send.poll_write(&mut cx, &header) else {
            panic!("no room for a header");
        };
        send.finish();
        count += 1;
    }
}

/// Sends datagrams back and forth, so that all that came before was read, and its credit has come back.
async fn round_trips(client: &Peer, session: &Session, id: StreamId) {
    for _ in 0..3 {
        client.send_datagram(id, b"ping");
        assert_eq!(
            soon(session.recv_datagram()).await.unwrap().unwrap(),
            "ping"
        );
        session.send_datagram("pong".into()).unwrap();
        assert_eq!(client.recv_datagram().await, "pong");
    }
}

/// Streams give their credit back when the application has taken them, or their session is over.
#[tokio::test]
async fn streams_that_nobody_takes_are_bounded() {
    const MOST: usize = 20;
    for bidi in [true, false] {
        let transport = TransportConfig::new()
            .max_bidi_streams(MOST as u64)
            .max_uni_streams(MOST as u64);
        let config = Certificate::shared().config().transport(transport);
        let mut host = Slow::on(config, Limits::default());
        host.answers.add_permits(1);
        let mut client = Peer::connect(host.server.address()).await;
        let request = client.session().await;
        let session = soon(host.sessions.recv()).await.unwrap();
        let id = request.id();
        let mut opened = 0;
        for _ in 0..5 {
            opened += flood(&mut client, bidi, id.0 as u8);
            round_trips(&client, &session, id).await;
        }
        assert!(opened < MOST, "{opened} streams");

        for _ in 0..opened {
            let mut recv = if bidi {
                soon(session.accept_bidi()).await.unwrap().unwrap().1
            } else {
                soon(session.accept_uni()).await.unwrap().unwrap()
            };
            assert_eq!(soon(recv.read_to_end(0)).await.unwrap(), b"");
        }
        round_trips(&client, &session, id).await;
        let again = flood(&mut client, bidi, id.0 as u8);
        assert!(again > MOST / 2, "{again} streams");

        session.close(0, "");
        if bidi {
            soon(client.connection.open_bidi()).await.unwrap();
        } else {
            soon(client.connection.open_uni()).await.unwrap();
        }
    }
}

/// A client that does not answer the end of a session, and one that does not even take it, have their streams
/// reset in time.
#[tokio::test]
async fn a_session_that_was_closed_ends_although_its_client_does_not_answer() {
    let mut limits = Limits::default();
    limits.header_time = Duration::from_millis(100);
    let mut host = Slow::with(limits);
    host.answers.add_permits(1);
    let client = Peer::connect(host.server.address()).await;
    let request = client.session().await;
    let session = soon(host.sessions.recv()).await.unwrap();
    session.close(7, "enough");
    drop(session);
    // The request is not dropped, and its end is not sent.
    soon(async {
        while host.server.handle.census().entries("requests") > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(client.connection.close_reason(), None);
    drop(request);
}

/// RFC 9297 §2.1.
#[tokio::test]
async fn a_datagram_beyond_the_limit_of_streams_ends_its_connection() {
    let mut host = Slow::with(Limits::default());
    host.answers.add_permits(1);
    let client = Peer::connect(host.server.address()).await;
    let _request = client.session().await;
    let _session = soon(host.sessions.recv()).await.unwrap();
    client.send_datagram(StreamId(4 * 100_000), b"x");
    let reason = soon(client.connection.closed()).await;
    let expected = Code::H3_ID_ERROR.0;
    assert!(
        matches!(reason, ConnectionError::Application { code, .. } if code == expected),
        "{reason}"
    );
}
