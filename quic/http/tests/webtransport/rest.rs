//! What a server holds for sessions, and that nothing of it stays.

use bytes::Bytes;
use hybriq::{StreamId, stats::Census};
use hybriq_http::webtransport::Limits;

use crate::{
    floods::Slow,
    peer::{Peer, Request},
    support::soon,
};

/// Waits until a table has so many entries.
async fn until(host: &Slow, name: &'static str, entries: usize) {
    let wait = async {
        while host.server.handle.census().entries(name) != entries {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(20), wait).await;
    let census = host.server.handle.census();
    assert!(waited.is_ok(), "{entries} {name}, not {census}");
}

/// Waits until nothing is held but what was held before.
async fn at_rest(host: &Slow, fresh: &Census) {
    let grown = || host.server.handle.census().grown_since(fresh);
    let wait = async {
        while !grown().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(20), wait).await;
    assert!(waited.is_ok(), "left: {}", grown());
}

/// Sends streams of both kinds and datagrams for a session.
async fn send_all(client: &Peer, session: StreamId) {
    for _ in 0..5 {
        client.uni(session, &[7, 7]).await.finish();
        let (mut send, mut recv) = client.bidi(session, &[7, 7]).await;
        send.finish();
        recv.stop(0);
    }
    for _ in 0..10 {
        client.send_datagram(session, b"");
    }
}

#[tokio::test]
async fn sessions_leave_nothing() {
    let mut host = Slow::with(Limits::default());
    let client = Peer::connect(host.server.address()).await;
    client.get().await;
    let fresh = host.server.handle.census();
    for closed_here in [true, false] {
        host.answers.add_permits(1);
        let request = client.session().await;
        let session = soon(host.sessions.recv()).await.unwrap();
        // Streams and datagrams of the session, and of one whose request comes last.
        let later = soon(client.connection.open_bidi()).await.unwrap();
        let waiting = later.0.id();
        send_all(&client, request.id()).await;
        send_all(&client, waiting).await;
        let mut opening = soon(client.connection.open_uni()).await.unwrap();
        opening.write_all(&[0x40]).await.unwrap();
        let (mut send, _recv) = soon(session.open_bidi()).await.unwrap();
        send.write_all(b"x").await.unwrap();
        until(&host, "streams not taken", 10).await;
        until(&host, "streams without session", 10).await;
        until(&host, "datagrams not read", 10).await;
        until(&host, "datagrams without request", 10).await;
        until(&host, "ends of streams of sessions", 2).await;
        assert_eq!(host.server.handle.census().entries("sessions"), 1);

        // Answered without a session.
        let refused = Peer::ask_on(later, "/none", &[]).await;
        until(&host, "streams without session", 0).await;
        if closed_here {
            session.close(0, "");
        }
        drop((request, refused, send, session));
        opening.reset(0);
        at_rest(&host, &fresh).await;
        client.get().await;
        at_rest(&host, &fresh).await;
    }
}

/// What a client sends for a session that reads nothing, and for unknown ones, is bounded by the limits of
/// streams and datagrams.
#[tokio::test]
async fn what_a_session_does_not_take_is_bounded() {
    let limits = Limits::default();
    let mut host = Slow::with(limits);
    host.answers.add_permits(1);
    let client = Peer::connect(host.server.address()).await;
    let request: Request = client.session().await;
    let _session = soon(host.sessions.recv()).await.unwrap();
    for _ in 0..5 {
        for _ in 0..1000 {
            for session in [request.id(), StreamId(396)] {
                client.send_datagram(session, b"");
            }
        }
        for _ in 0..3 {
            client.get().await;
        }
    }
    let census = host.server.handle.census();
    let places = |name| census.entries(name) * size_of::<(u64, Bytes)>();
    let waiting = places("datagrams without request");
    assert!(waiting <= limits.waiting_datagrams, "{census}");
    assert!(places("datagrams not read") <= limits.datagrams, "{census}");
}
