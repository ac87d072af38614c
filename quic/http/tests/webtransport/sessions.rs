//! Sessions between a server and a client of this crate.

use std::{sync::Arc, time::Duration};

use crate::support::{Certificate, Http3, Running, client_config, post, run, run_with, soon};
use axum::{
    Extension, Router,
    routing::{any, get as on_get},
};
use http::{Request, StatusCode};
use hybriq::{
    Endpoint,
    generic::{self, RecvStream as _, SendStream as _},
    transport::Priority,
};
use hybriq_http::{
    Peer, Server,
    webtransport::{self, ConnectError, Limits, Session, SessionError, StreamError, WebTransport},
};
use tokio::sync::mpsc;

/// A server whose sessions come out of a channel.
struct Host {
    server: Running,
    sessions: mpsc::UnboundedReceiver<Session>,
    endpoint: Endpoint,
}

impl Host {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        let (found, sessions) = mpsc::unbounded_channel();
        let accept = move |Extension(request): Extension<WebTransport>| {
            let found = found.clone();
            async move {
                request.accept(async move |session| {
                    let _ = found.send(session);
                })
            }
        };
        let router = Router::new()
            .route("/chat", any(accept))
            .route("/refused", any(async || StatusCode::FORBIDDEN));
        let builder = Server::builder().webtransport(limits);
        let server = run_with(builder, Certificate::shared().config(), router);
        let endpoint = Endpoint::client(client_config(&Certificate::shared())).unwrap();
        Self {
            server,
            sessions,
            endpoint,
        }
    }

    async fn connect(&self, path: &str) -> Result<Session, ConnectError> {
        connect(&self.endpoint, &self.server, path).await
    }

    /// Returns both ends of a session, the server's first.
    async fn session(&mut self) -> (Session, Session) {
        let client = self.connect("/chat").await.unwrap();
        (soon(self.sessions.recv()).await.unwrap(), client)
    }
}

async fn connect(
    endpoint: &Endpoint,
    server: &Running,
    path: &str,
) -> Result<Session, ConnectError> {
    let port = server.address().port();
    let request = Request::get(format!("https://localhost:{port}{path}"));
    soon(webtransport::connect(endpoint, request.body(()).unwrap())).await
}

fn closed(code: u32, reason: &str) -> SessionError {
    SessionError::Closed {
        code,
        reason: reason.to_owned(),
    }
}

#[tokio::test]
async fn streams_and_datagrams_pass_in_both_directions() {
    let mut host = Host::new();
    let (server, client) = host.session().await;
    for (one, other) in [(&server, &client), (&client, &server)] {
        let (mut send, mut recv) = soon(one.open_bidi()).await.unwrap();
        send.write_all(b"question").await.unwrap();
        send.finish();
        let (mut answer, mut asked) = soon(other.accept_bidi()).await.unwrap().unwrap();
        assert_eq!(soon(asked.read_to_end(100)).await.unwrap(), b"question");
        let body = vec![7; 300_000];
        let upload = async {
            answer.write_all(&body).await.unwrap();
            answer.finish();
        };
        let (read, ()) = soon(async { tokio::join!(recv.read_to_end(1 << 20), upload) }).await;
        assert!(read.unwrap() == body);

        let mut send = soon(one.open_uni()).await.unwrap();
        send.write_all(b"news").await.unwrap();
        send.finish();
        let mut recv = soon(other.accept_uni()).await.unwrap().unwrap();
        assert_eq!(soon(recv.read_to_end(100)).await.unwrap(), b"news");

        assert!(one.max_datagram_size().unwrap() > 1_000);
        one.send_datagram("ping".into()).unwrap();
        assert_eq!(soon(other.recv_datagram()).await.unwrap().unwrap(), "ping");
    }
}

/// The code and the reason reach the other end, and every stream of the session ends.
#[tokio::test]
async fn closing_a_session_ends_its_streams() {
    let mut host = Host::new();
    for by_server in [true, false] {
        let (server, client) = host.session().await;
        let (one, other) = if by_server {
            (server, client)
        } else {
            (client, server)
        };
        let (mut send, mut recv) = soon(one.open_bidi()).await.unwrap();
        send.write_all(b"x").await.unwrap();
        let (mut other_send, mut other_recv) = soon(other.accept_bidi()).await.unwrap().unwrap();
        let mut byte = [0];
        assert_eq!(soon(other_recv.read(&mut byte)).await.unwrap(), 1);
        let blocked = tokio::spawn(async move { recv.read(&mut [0]).await });
        let accepting = other.clone();
        let accepting = tokio::spawn(async move { accepting.accept_uni().await.map(drop) });
        one.close(7, "enough");
        let end = closed(7, "enough");
        assert_eq!(soon(one.closed()).await, end);
        assert_eq!(soon(other.closed()).await, end);
        assert_eq!(
            soon(blocked).await.unwrap(),
            Err(StreamError::Session(end.clone()))
        );
        assert_eq!(soon(accepting).await.unwrap(), Err(end.clone()));
        let ended = Err(StreamError::Session(end.clone()));
        assert_eq!(soon(send.write_all(b"y")).await, ended);
        assert_eq!(soon(other_send.write_all(b"y")).await, ended);
        assert_eq!(
            soon(other_recv.read(&mut byte)).await,
            Err(StreamError::Session(end.clone()))
        );
        assert_eq!(one.send_datagram("late".into()), Err(end.clone()));
        assert_eq!(soon(other.open_uni()).await.map(drop), Err(end));
    }
}

/// The last handle of a session closes it, and a client's connection with it.
#[tokio::test]
async fn a_dropped_session_is_closed() {
    let mut host = Host::new();
    let (server, client) = host.session().await;
    let connection = server.connection().clone();
    drop(client);
    assert_eq!(soon(server.closed()).await, closed(0, ""));
    let reason = soon(connection.closed()).await;
    assert!(hybriq_h3::adapter::is_clean(&reason), "{reason}");
}

/// Codes of applications pass as they are, and the header of a stream that is reset at once arrives.
#[tokio::test]
async fn an_abandoned_stream_reaches_its_session() {
    let mut host = Host::new();
    let (server, client) = host.session().await;
    let mut send = soon(client.open_uni()).await.unwrap();
    send.write_all(&vec![1; 100_000]).await.unwrap();
    send.reset(u32::MAX);
    let mut recv = soon(server.accept_uni()).await.unwrap().unwrap();
    let mut read = vec![0; 1 << 20];
    let error = soon(async {
        loop {
            if let Err(error) = recv.read(&mut read).await {
                break error;
            }
        }
    });
    assert_eq!(error.await, StreamError::Reset(Some(u32::MAX)));
    let (send, _recv) = soon(client.open_bidi()).await.unwrap();
    let (_send, mut recv) = soon(server.accept_bidi()).await.unwrap().unwrap();
    recv.stop(30);
    assert_eq!(soon(send.stopped()).await, Ok(Some(30)));
}

#[tokio::test]
async fn a_session_can_be_refused() {
    let host = Host::new();
    let refused = host.connect("/refused").await.unwrap_err();
    assert!(
        matches!(refused, ConnectError::Refused(StatusCode::FORBIDDEN)),
        "{refused}"
    );
    let plain = run(Router::new());
    let refused = connect(&host.endpoint, &plain, "/").await.unwrap_err();
    assert!(matches!(refused, ConnectError::Unsupported), "{refused}");
    let request = Request::get("http://localhost/").body(()).unwrap();
    let refused = webtransport::connect(&host.endpoint, request)
        .await
        .unwrap_err();
    assert!(matches!(refused, ConnectError::Address(_)), "{refused}");
}

/// A server that shuts down asks for the end of its sessions, and waits for it.
#[tokio::test]
async fn sessions_are_drained() {
    let mut host = Host::new();
    let (server, client) = host.session().await;
    let handle = host.server.handle.clone();
    let shutdown = tokio::spawn(async move { handle.shutdown(Duration::from_secs(60)).await });
    soon(client.draining()).await;
    client.send_datagram("still here".into()).unwrap();
    assert_eq!(
        soon(server.recv_datagram()).await.unwrap().unwrap(),
        "still here"
    );
    assert!(!shutdown.is_finished());
    client.close(1, "going");
    assert_eq!(soon(server.closed()).await, closed(1, "going"));
    soon(shutdown).await.unwrap();
}

/// Requests go on beside sessions, and know the connection.
#[tokio::test]
async fn other_requests_pass_beside_sessions() {
    let group = async |Extension(peer): Extension<Peer>| peer.tls.to_string();
    let router = Router::new().route("/group", on_get(group));
    let builder = Server::builder().webtransport(Limits::default());
    let server = run_with(builder, Certificate::shared().config(), router);
    let mut client = Http3::connect(server.address()).await;
    assert_eq!(
        client.ask(post("/", "hello")).await.unwrap().body(),
        "hello"
    );
    let answer = client.ask(crate::support::get("/group")).await.unwrap();
    assert_eq!(answer.body(), "X25519MLKEM768");
    // Fields that come in many packets.
    let mut long = crate::support::get("/group");
    let value = "x".repeat(20_000).parse().unwrap();
    long.headers_mut().insert("x-long", value);
    assert_eq!(client.ask(long).await.unwrap().status(), StatusCode::OK);
}

/// Streams whose session does not come are refused beyond a limit.
#[tokio::test]
async fn streams_that_wait_for_a_session_are_bounded() {
    let mut limits = Limits::default();
    limits.waiting_streams = 3;
    let host = Host::with(limits);
    let mut client = Http3::connect(host.server.address()).await;
    let (refused, mut refusals) = mpsc::unbounded_channel();
    for index in 0..5_u8 {
        let mut send = soon(client.connection.open_uni()).await.unwrap();
        // Sessions 400 and later, in two bytes.
        let header = [0x40, 0x54, 0x41, 0x90 + 4 * index];
        send.write_all(&header).await.unwrap();
        let refused = refused.clone();
        tokio::spawn(async move {
            let _ = refused.send(send.stopped().await);
        });
    }
    for _ in 0..2 {
        let stopped = soon(refusals.recv()).await.unwrap();
        assert_eq!(stopped, Ok(Some(0x3994_bd84)));
    }
    assert_eq!(client.ask(post("/", "fine")).await.unwrap().body(), "fine");
    assert!(refusals.try_recv().is_err());
}

/// A session must be named by the stream of a request (draft-ietf-webtrans-http3 §4.2).
#[tokio::test]
async fn a_session_of_another_stream_is_an_error() {
    for bidi in [true, false] {
        let host = Host::new();
        let client = Http3::connect(host.server.address()).await;
        if bidi {
            let (mut send, _recv) = soon(client.connection.open_bidi()).await.unwrap();
            send.write_all(&[0x40, 0x41, 3]).await.unwrap();
            let reason = soon(client.connection.closed()).await.to_string();
            assert!(reason.contains(&0x108.to_string()), "{reason}");
        } else {
            let mut send = soon(client.connection.open_uni()).await.unwrap();
            send.write_all(&[0x40, 0x54, 3]).await.unwrap();
            let reason = soon(client.connection.closed()).await.to_string();
            assert!(reason.contains(&0x108.to_string()), "{reason}");
        }
    }
}

/// Streams of a session that is over are refused as such.
#[tokio::test]
async fn a_stream_after_the_end_of_its_session_is_refused() {
    let mut host = Host::new();
    let (server, client) = host.session().await;
    let connection = client.connection().clone();
    server.close(0, "");
    soon(client.closed()).await;
    // The client closes its connection now.
    if let Ok(mut send) = soon(connection.open_uni()).await {
        let _ = send.write_all(&[0x40, 0x54, 0]).await;
        let stopped = soon(send.stopped()).await;
        let is_gone = matches!(stopped, Ok(Some(0x170d_7b68)) | Err(_));
        assert!(is_gone, "{stopped:?}");
    }
}

/// Datagrams that nobody reads are dropped, the oldest first.
#[tokio::test]
async fn unread_datagrams_are_bounded() {
    let mut limits = Limits::default();
    limits.datagrams = 1_000;
    let mut host = Host::with(limits);
    let (server, client) = host.session().await;
    for index in 0..20_u8 {
        client.send_datagram(vec![index; 100].into()).unwrap();
    }
    // The streams are sent after them, so that they have come. What is read while others arrive makes room.
    for _ in 0..20 {
        let mut send = soon(client.open_uni()).await.unwrap();
        send.write_all(b"end").await.unwrap();
        send.finish();
        let mut recv = soon(server.accept_uni()).await.unwrap().unwrap();
        soon(recv.read_to_end(10)).await.unwrap();
    }
    let mut last = 0;
    let mut count = 0;
    while let Ok(datagram) =
        tokio::time::timeout(Duration::from_millis(50), server.recv_datagram()).await
    {
        last = datagram.unwrap().unwrap()[0];
        count += 1;
    }
    assert_eq!(last, 19);
    assert!(count <= 10, "{count}");
}

/// A protocol of both ends that is written once: streams of both kinds, codes, and datagrams.
async fn converse<C>(one: &C, other: &C)
where
    C: generic::Connection,
{
    let question = async {
        let (mut send, mut recv) = one.open_bidi().await.unwrap();
        assert_eq!(send.id(), recv.id());
        send.set_priority(Priority::new(1));
        send.write_chunk("ques".into()).await.unwrap();
        send.write_all(b"tion").await.unwrap();
        send.acknowledged().await.unwrap();
        let answer = recv.read_to_end(100).await.unwrap();
        let mut given_up = one.open_uni().await.unwrap();
        assert_eq!(given_up.write(b"x").await.unwrap(), 1);
        assert_eq!(given_up.stopped().await.unwrap(), Some(7));
        (answer, recv.read_chunk(1).await.unwrap())
    };
    let answer = async {
        let (mut send, mut recv) = other.accept_bidi().await.unwrap().unwrap();
        let mut first = [0; 4];
        tokio::io::AsyncReadExt::read_exact(&mut recv, &mut first)
            .await
            .unwrap();
        send.write_all(&first).await.unwrap();
        tokio::io::copy(&mut recv, &mut send).await.unwrap();
        assert_eq!(recv.received_reset().await.unwrap(), None);
        send.finish();
        assert_eq!(send.stopped().await.unwrap(), None);
        let mut unwanted = other.accept_uni().await.unwrap().unwrap();
        assert_eq!(unwanted.read(&mut first).await.unwrap(), 1);
        unwanted.stop(7);
    };
    let ((answer, rest), ()) = soon(async { tokio::join!(question, answer) }).await;
    assert_eq!((&answer[..], rest), (&b"question"[..], None));

    let mut reset = soon(one.open_uni()).await.unwrap();
    soon(reset.write_all(b"x")).await.unwrap();
    let mut broken = soon(other.accept_uni()).await.unwrap().unwrap();
    reset.reset(30);
    assert_eq!(soon(broken.received_reset()).await.unwrap(), Some(30));

    assert!(one.max_datagram_size().unwrap() > 1_000);
    one.send_datagram_for("too old".into(), Duration::ZERO)
        .unwrap();
    one.send_datagram("news".into()).unwrap();
    let datagram = soon(other.recv_datagram()).await.unwrap();
    assert_eq!(datagram.as_deref(), Some(&b"news"[..]));

    one.close(0, "done");
    let _ = soon(other.closed()).await;
    assert!(soon(other.accept_bidi()).await.unwrap().is_none());
    assert!(soon(other.accept_uni()).await.unwrap().is_none());
    assert!(soon(other.recv_datagram()).await.unwrap().is_none());
    assert!(one.send_datagram("late".into()).is_err());
}

#[tokio::test]
async fn one_function_serves_connections_and_sessions() {
    let mut host = Host::new();
    let (server, client) = host.session().await;
    converse(&client, &server).await;
    let (server, client) = host.session().await;
    converse(&server, &client).await;

    let config = Certificate::shared().config().alpn(["h3"]);
    let server = Endpoint::server("127.0.0.1:0", config).unwrap();
    let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
    let connect = host.endpoint.connect(server.local_address(), "localhost");
    let (server, client) = soon(async { tokio::join!(accept, connect) }).await;
    converse(&client.unwrap(), &server).await;
}

/// Datagrams that wait longer than the age of the session are dropped, until it has none.
#[tokio::test]
async fn datagrams_of_a_session_have_an_age() {
    let mut host = Host::new();
    let (server, client) = host.session().await;
    client.set_outgoing_max_age(Some(Duration::ZERO));
    client.send_datagram("old".into()).unwrap();
    client.set_outgoing_max_age(None);
    client.send_datagram("new".into()).unwrap();
    let got = soon(server.recv_datagram()).await.unwrap();
    assert_eq!(got.as_deref(), Some(&b"new"[..]));
    let stats = client.connection().stats().datagram_frames;
    assert_eq!((stats.sent, stats.expired), (1, 1));
}

/// A protocol that is written against `web-transport-trait` runs on a session.
#[tokio::test]
async fn sessions_have_the_traits_of_web_transport_trait() {
    use web_transport_trait::{RecvStream as _, SendStream as _, Session as Transport};

    async fn ask<S: Transport>(session: &S) -> bytes::Bytes {
        let (mut send, mut recv) = session.open_bi().await.unwrap();
        send.write_chunk("question".into()).await.unwrap();
        send.finish().unwrap();
        recv.read_all().await.unwrap()
    }

    async fn answer<S: Transport>(session: &S) {
        let (mut send, mut recv) = session.accept_bi().await.unwrap();
        let asked = recv.read_all().await.unwrap();
        send.write_chunk(asked).await.unwrap();
        send.finish().unwrap();
        send.closed().await.unwrap();
    }

    let mut host = Host::new();
    let (server, client) = host.session().await;
    let both = async { tokio::join!(ask(&client), answer(&server)) };
    assert_eq!(soon(both).await.0, "question");
    let _: Arc<Session> = Arc::new(client);
}
