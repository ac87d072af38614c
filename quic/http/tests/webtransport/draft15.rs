//! What draft 15 adds: flow control of sessions, and streams that are reset behind their header.

use std::{future::poll_fn, task::Poll, time::Duration};

use axum::{Extension, Router, routing::any};
use hybriq::{Endpoint, StreamId, TransportConfig, WriteError};
use hybriq_h3::{
    Code, Violation,
    webtransport::{Capsule, to_wire},
};
use hybriq_http::{
    Server,
    webtransport::{Limits, Session, SessionError, WebTransport},
};
use tokio::sync::mpsc;

use crate::{
    peer::{self, Peer},
    support::{Certificate, Running, client_config, run_with, soon},
};

/// Settings of a client of draft 15 that allows one unidirectional stream and 10 bytes of each session.
pub(crate) const DRAFT15: &[(u64, u64)] = &[(0x33, 1), (0x2c7c_f000, 1), (0x2b64, 1), (0x2b61, 10)];

pub(crate) struct Host {
    pub(crate) server: Running,
    pub(crate) sessions: mpsc::UnboundedReceiver<Session>,
}

/// A server whose sessions allow 2 streams of each kind and 100 bytes, and which speaks the protocol `b`.
pub(crate) fn host() -> Host {
    host_with(TransportConfig::new())
}

fn host_with(transport: TransportConfig) -> Host {
    let (found, sessions) = mpsc::unbounded_channel();
    let accept = move |Extension(request): Extension<WebTransport>| {
        let found = found.clone();
        async move {
            if request.choose("b") {
                assert_eq!(request.protocols(), ["a", "b"]);
            }
            assert!(!request.choose("c"));
            request.accept(async move |session| {
                let _ = found.send(session);
            })
        }
    };
    let mut limits = Limits::default();
    (limits.bidi_streams, limits.uni_streams, limits.data) = (2, 2, 100);
    limits.header_time = Duration::from_secs(5);
    let router = Router::new().route("/chat", any(accept));
    let builder = Server::builder().webtransport(limits);
    let config = Certificate::shared().config().transport(transport);
    let server = run_with(builder, config, router);
    Host { server, sessions }
}

impl Host {
    pub(crate) async fn raw(&self) -> Peer {
        self.raw_with(DRAFT15).await
    }

    pub(crate) async fn raw_with(&self, settings: &[(u64, u64)]) -> Peer {
        let endpoint = Endpoint::client(client_config(&Certificate::shared())).unwrap();
        Peer::with(endpoint, self.server.address(), settings).await
    }

    pub(crate) async fn session(&mut self) -> Session {
        soon(self.sessions.recv()).await.unwrap()
    }
}

fn bytes(capsule: &Capsule) -> Vec<u8> {
    let mut out = Vec::new();
    capsule.write(&mut out);
    out
}

/// Reads capsules until this one comes.
async fn until(request: &mut peer::Request, expected: &Capsule) {
    while request.capsule().await != *expected {}
}

/// Waits until the session ended by a violation, for which the request's stream was reset.
async fn refused(session: &Session, request: &mut peer::Request, violation: Violation) {
    let end = soon(session.closed()).await;
    assert_eq!(end, SessionError::Violation(violation));
    loop {
        match request.data().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("a clean end"),
            Err(code) => return assert_eq!(code, violation.code()),
        }
    }
}

#[tokio::test]
async fn one_stream_too_many_ends_the_session() {
    for bidi in [true, false] {
        let mut host = host();
        let client = host.raw().await;
        let mut request = client.session().await;
        let session = host.session().await;
        let id = request.id();
        let mut streams = Vec::new();
        for count in 0..3 {
            assert_eq!(client.connection.close_reason(), None, "{count}");
            if bidi {
                streams.push(client.bidi(id, b"x").await.0);
            } else {
                streams.push(client.uni(id, b"x").await);
            }
        }
        refused(&session, &mut request, Violation::SessionStreamLimit).await;
        assert_eq!(client.connection.close_reason(), None);
    }
}

#[tokio::test]
async fn one_byte_too_many_ends_the_session() {
    let mut host = host();
    let client = host.raw().await;
    let mut request = client.session().await;
    let session = host.session().await;
    let id = request.id();
    let mut first = client.uni(id, &[7; 50]).await;
    let _second = client.bidi(id, &[7; 50]).await;
    // All of the data was counted, whoever reads it, but not the headers.
    let _held = (
        soon(session.accept_uni()).await.unwrap().unwrap(),
        soon(session.accept_bidi()).await.unwrap().unwrap(),
    );
    first.write_all(&[7]).await.unwrap();
    refused(&session, &mut request, Violation::SessionDataLimit).await;
}

/// Streams that come before their session count as well.
#[tokio::test]
async fn early_streams_count() {
    let mut host = host();
    let client = host.raw().await;
    let streams = soon(client.connection.open_bidi()).await.unwrap();
    let id = streams.0.id();
    let mut early = Vec::new();
    for _ in 0..3 {
        early.push(client.uni(id, b"").await);
    }
    // An answer, so that the streams have come.
    client.get().await;
    let _request = Peer::ask_on(streams, "/chat", &[]).await;
    let session = host.session().await;
    let end = soon(session.closed()).await;
    assert_eq!(end, SessionError::Violation(Violation::SessionStreamLimit));
}

/// Streams and data that were read, dropped or reset make room for others.
#[tokio::test]
async fn what_is_over_makes_room() {
    let mut host = host();
    let client = host.raw().await;
    let mut request = client.session().await;
    let session = host.session().await;
    let id = request.id();
    for round in 0..20_u64 {
        let mut send = client.uni(id, &[7; 60]).await;
        let mut recv = soon(session.accept_uni()).await.unwrap().unwrap();
        match round % 3 {
            0 => {
                send.finish();
                assert_eq!(soon(recv.read_to_end(100)).await.unwrap().len(), 60);
            }
            1 => {
                recv.stop(1);
                assert!(soon(send.stopped()).await.unwrap().is_some());
            }
            _ => {
                send.reset(0);
                assert!(soon(recv.received_reset()).await.is_err());
            }
        }
        drop((recv, send));
        // Half of each window makes a new limit.
        let sent = 60 * (round + 1);
        until(&mut request, &Capsule::MaxData(100 + sent)).await;
    }
    let end = Capsule::close(0, "");
    request.send_data(&bytes(&end)).await;
    let (code, reason) = (0, String::new());
    assert_eq!(
        soon(session.closed()).await,
        SessionError::Closed { code, reason }
    );
}

/// The server keeps the limits of the client, says where it waits, and goes on with new ones.
#[tokio::test]
async fn the_limits_of_the_peer_are_kept() {
    let mut host = host();
    let client = host.raw().await;
    let mut request = client.session().await;
    let session = host.session().await;
    let mut send = soon(session.open_uni()).await.unwrap();
    let writer = tokio::spawn(async move {
        send.write_all(&[7; 25]).await.unwrap();
        send.finish();
        send
    });
    let mut recv = soon(client.connection.accept_uni()).await.unwrap().unwrap();
    loop {
        // Behind the server's critical streams.
        let mut kind = [0];
        soon(recv.read(&mut kind)).await.unwrap();
        if kind == [0x40] {
            break;
        }
        std::mem::forget(std::mem::replace(
            &mut recv,
            soon(client.connection.accept_uni()).await.unwrap().unwrap(),
        ));
    }
    until(&mut request, &Capsule::DataBlocked(10)).await;
    let mut head = [0; 100];
    assert_eq!(soon(recv.read(&mut head)).await.unwrap(), 2 + 10);
    request.send_data(&bytes(&Capsule::MaxData(30))).await;
    assert_eq!(soon(recv.read_to_end(100)).await.unwrap().len(), 15);
    let _send = soon(writer).await.unwrap();

    let opener = session.clone();
    let opened = tokio::spawn(async move { opener.open_bidi().await.map(drop) });
    let blocked = Capsule::StreamsBlocked(hybriq::Direction::Bidi, 0);
    until(&mut request, &blocked).await;
    assert!(!opened.is_finished());
    let more = Capsule::MaxStreams(hybriq::Direction::Bidi, 1);
    request.send_data(&bytes(&more)).await;
    assert_eq!(soon(opened).await.unwrap(), Ok(()));
}

/// A writer that waits for credit learns that the peer has stopped its stream, and that the session is over.
#[tokio::test]
async fn a_writer_that_waits_goes_on() {
    for closed in [false, true] {
        let mut host = host();
        let client = host
            .raw_with(&[(0x33, 1), (0x2c7c_f000, 1), (0x2b64, 1)])
            .await;
        let mut request = client.session().await;
        let session = host.session().await;
        let mut send = soon(session.open_uni()).await.unwrap();
        let id = send.id();
        let writer = tokio::spawn(async move { send.write_all(b"x").await });
        until(&mut request, &Capsule::DataBlocked(0)).await;
        if closed {
            session.close(7, "");
        } else {
            while !matches!(soon(client.connection.accept_uni()).await, Ok(Some(recv)) if recv.id() == id)
            {
            }
        }
        assert!(soon(writer).await.unwrap().is_err());
    }
}

/// A stream whose header was not sent takes none of the peer's limit, because the peer cannot count it.
#[tokio::test]
async fn a_stream_that_is_not_opened_takes_no_place() {
    let mut host = host_with(TransportConfig::new().send_buffer(1));
    let client = host.raw().await;
    let _request = client.session().await;
    let session = host.session().await;
    let mut open = Box::pin(session.open_uni());
    let polled = poll_fn(|cx| Poll::Ready(open.as_mut().poll(cx))).await;
    if polled.is_ready() {
        // The worker has sent byte after byte meanwhile.
        return;
    }
    drop(open);
    soon(session.open_uni()).await.unwrap();
}

/// A writer that is dropped while it waits for credit leaves nothing.
#[tokio::test]
async fn a_dropped_writer_is_forgotten() {
    let mut host = host();
    let settings = &[(0x33, 1), (0x2c7c_f000, 1), (0x2b64, 1)];
    let client = host.raw_with(settings).await;
    let mut request = client.session().await;
    let session = host.session().await;
    let mut send = soon(session.open_uni()).await.unwrap();
    let writer = tokio::spawn(async move { send.write_all(b"x").await });
    until(&mut request, &Capsule::DataBlocked(0)).await;
    let waiting = || host.server.handle.census().entries("capsules and writers");
    assert_eq!(waiting(), 1);
    writer.abort();
    assert!(soon(writer).await.unwrap_err().is_cancelled());
    assert_eq!(waiting(), 0);
}

/// Limits that shrink, of more streams than there can be, or of one stream end the session with the draft's code.
#[tokio::test]
async fn capsules_that_break_a_rule_end_the_session() {
    let of_stream = [0x99, 0x0b, 0x4d, 0x3e, 2, 0, 7];
    let many = Capsule::MaxStreams(hybriq::Direction::Uni, (1 << 60) + 1);
    for (data, violation) in [
        (
            &bytes(&Capsule::MaxData(9))[..],
            Violation::SessionLimitReduced,
        ),
        (&bytes(&many), Violation::SessionStreamsTooMany),
        (&of_stream, Violation::CapsuleOfStream),
        (&[0x68, 0x43, 0x44, 5], Violation::CapsuleLength),
        (&[0x68, 0x43, 3, 0, 0, 0], Violation::CapsuleLength),
    ] {
        let mut host = host();
        let client = host.raw().await;
        let mut request = client.session().await;
        let session = host.session().await;
        request.send_data(data).await;
        refused(&session, &mut request, violation).await;
    }
}

/// Data behind WT_CLOSE_SESSION has the stream reset.
#[tokio::test]
async fn nothing_follows_the_end_of_a_session() {
    let mut host = host();
    let client = host.raw().await;
    let mut request = client.session().await;
    let session = host.session().await;
    request.send_data(&bytes(&Capsule::close(3, "bye"))).await;
    let (code, reason) = (3, "bye".to_owned());
    assert_eq!(
        soon(session.closed()).await,
        SessionError::Closed { code, reason }
    );
    request.send_data(b"x").await;
    let stopped = soon(request.send.stopped()).await;
    assert_eq!(stopped, Ok(Some(Code::H3_MESSAGE_ERROR.0)));
}

/// A stream that is reset at once still tells to which session it belongs (draft-ietf-webtrans-http3 §4.4), whoever
/// ends it, and by whatever: a reset, a drop, or the end of the session.
#[tokio::test]
async fn the_header_of_a_reset_stream_arrives() {
    for how in 0..3 {
        let mut host = host();
        let client = host
            .raw_with(&[(0x33, 1), (0x2c7c_f000, 1), (0x2b64, 1), (0x2b61, 10)])
            .await;
        let request = client.session().await;
        let session = host.session().await;
        let mut send = soon(session.open_uni()).await.unwrap();
        let id = send.id();
        soon(send.write_all(b"data")).await.unwrap();
        let expected = match how {
            0 => {
                send.reset(5);
                to_wire(5)
            }
            1 => {
                drop(send);
                to_wire(0)
            }
            _ => {
                session.close(0, "");
                Code::WT_SESSION_GONE
            }
        };
        let mut streams = Vec::new();
        let mut recv = loop {
            let recv = soon(client.connection.accept_uni()).await.unwrap().unwrap();
            if recv.id() == id {
                break recv;
            }
            streams.push(recv);
        };
        let mut read = Vec::new();
        let end = loop {
            match soon(recv.read_chunk(usize::MAX)).await {
                Ok(Some(data)) => read.extend(data),
                end => break end,
            }
        };
        assert_eq!(end, Err(hybriq::ReadError::Reset(expected.0)), "{how}");
        let mut header = vec![0x40, 0x54];
        header.extend(peer::integer(request.id().0));
        // Some of the data may have been sent before.
        assert!(read.starts_with(&header), "{how}: {read:?}");
    }
}

/// Early streams are refused in both directions, by their number and by their bytes.
#[tokio::test]
async fn early_streams_are_refused_in_both_directions() {
    let mut limits = Limits::default();
    limits.waiting_stream_bytes = 500;
    let builder = Server::builder().webtransport(limits);
    let server = run_with(builder, Certificate::shared().config(), Router::new());
    let client = Peer::connect(server.address()).await;
    let rejected = Code::WT_BUFFERED_STREAM_REJECTED.0;
    let (mut send, mut recv) = client.bidi(StreamId(400), &[7; 600]).await;
    let mut later = Vec::new();
    for _ in 0..3 {
        later.push(client.uni(StreamId(400), b"x").await);
    }
    assert_eq!(soon(send.stopped()).await, Ok(Some(rejected)));
    let end = soon(recv.read(&mut [0])).await;
    assert_eq!(end, Err(hybriq::ReadError::Reset(rejected)));
    let written = send.write(b"x").await;
    assert_eq!(written, Err(WriteError::Stopped(rejected)));
}
