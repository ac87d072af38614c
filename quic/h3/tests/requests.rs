//! Requests and responses through the `h3` crate, with both ends on hybriq.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::large_futures, reason = "those of the h3 crate are large")]

mod support;

use std::{
    collections::VecDeque,
    future::poll_fn,
    task::{Context, Waker},
};

use bytes::{Buf, Bytes, BytesMut};
use h3::{
    error::{Code, ConnectionError, LocalError, StreamError},
    quic::{OpenStreams as _, SendStream as _, SendStreamUnframed as _},
};
use http::{Request, Response, StatusCode};
use hybriq::stage::Stage;
use hybriq::transport::Priority;
use hybriq_h3::adapter::{BidiStream, Connection, OpenStreams, SendStream};
use support::{Pair, soon};

type Server = h3::server::Connection<Connection, Bytes>;
type ServerStream = h3::server::RequestStream<BidiStream<Bytes>, Bytes>;
type Client = h3::client::Connection<Connection, Bytes>;
type Requests = h3::client::SendRequest<OpenStreams, Bytes>;

async fn ends(pair: &Pair) -> (Server, Client, Requests) {
    let server = Server::new(Connection::new(pair.server.clone()));
    let mut builder = h3::client::builder();
    let client = builder.build(Connection::new(pair.client.clone()));
    let (server, client) = soon(async { tokio::join!(server, client) }).await;
    let (client, requests) = client.unwrap();
    (server.unwrap(), client, requests)
}

fn get(path: &str) -> Request<()> {
    let uri = format!("https://localhost{path}");
    Request::get(uri).body(()).unwrap()
}

/// Answers with the body that was received, in pieces as they came.
async fn echo(mut stream: ServerStream) {
    stream.send_response(Response::new(())).await.unwrap();
    while let Some(mut data) = stream.recv_data().await.unwrap() {
        let len = data.remaining();
        let payload = data.copy_to_bytes(len);
        stream.send_data(payload).await.unwrap();
    }
    stream.finish().await.unwrap();
}

/// Serves all requests of a connection, each in a task of its own. Returns its end.
async fn serve_echo<S>(
    mut server: h3::server::Connection<Connection<S>, Bytes>,
) -> Result<(), ConnectionError>
where
    S: Stage + Clone + Send + Sync + 'static,
{
    loop {
        let request = match server.accept().await {
            Ok(Some(request)) => request,
            Err(error) if !error.is_h3_no_error() => return Err(error),
            Ok(None) | Err(_) => return Ok(()),
        };
        tokio::spawn(async move {
            let (_, stream) = request.resolve_request().await.unwrap();
            echo(stream).await;
        });
    }
}

async fn read_body(
    stream: &mut h3::client::RequestStream<BidiStream<Bytes>, Bytes>,
) -> Result<Bytes, StreamError> {
    let mut all = BytesMut::new();
    while let Some(data) = stream.recv_data().await? {
        bytes::BufMut::put(&mut all, data);
    }
    Ok(all.freeze())
}

/// Sends a body and returns the response's.
async fn ask<S: Stage>(
    requests: &mut h3::client::SendRequest<OpenStreams<S>, Bytes>,
    body: Bytes,
) -> Bytes {
    let request = Request::post("https://localhost/echo").body(()).unwrap();
    let stream = requests.send_request(request).await.unwrap();
    let (mut send, mut recv) = stream.split();
    let upload = async move {
        send.send_data(body).await.unwrap();
        send.finish().await.unwrap();
    };
    let download = async {
        let response = recv.recv_response().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let mut all = BytesMut::new();
        while let Some(data) = recv.recv_data().await.unwrap() {
            bytes::BufMut::put(&mut all, data);
        }
        all.freeze()
    };
    soon(async { tokio::join!(upload, download) }).await.1
}

#[tokio::test]
async fn bodies_of_all_sizes_pass_in_both_directions() {
    let pair = Pair::new().await;
    let (server, client, mut requests) = ends(&pair).await;
    let serving = tokio::spawn(serve_echo(server));
    for len in [0, 1, 63, 64, 65, 1_000, 100_000, 10_000_000] {
        let body = Bytes::from((0..len).map(|index| index as u8).collect::<Vec<_>>());
        assert!(
            ask(&mut requests, body.clone()).await == body,
            "{len} bytes"
        );
    }
    drop((requests, client));
    soon(serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_hundred_requests_run_at_once() {
    let pair = Pair::new().await;
    let (server, _client, requests) = ends(&pair).await;
    tokio::spawn(serve_echo(server));
    let mut tasks = Vec::new();
    for index in 0..100_u8 {
        let mut requests = requests.clone();
        tasks.push(tokio::spawn(async move {
            let body = Bytes::from(vec![index; 5_000]);
            assert_eq!(ask(&mut requests, body.clone()).await, body);
        }));
    }
    for task in tasks {
        soon(task).await.unwrap();
    }
}

/// A response of a few bytes leaves as a whole: its head, body and end are in one datagram.
#[tokio::test]
async fn head_body_and_end_share_a_datagram() {
    let pair = Pair::new().await;
    let (mut server, _client, mut requests) = ends(&pair).await;
    let mut stream = soon(requests.send_request(get("/"))).await.unwrap();
    stream.finish().await.unwrap();
    let request = soon(server.accept()).await.unwrap().unwrap();
    let (_, mut answer) = soon(request.resolve_request()).await.unwrap();
    let before = pair.server.stats();
    answer.send_response(Response::new(())).await.unwrap();
    answer.send_data(Bytes::from("hello")).await.unwrap();
    answer.finish().await.unwrap();
    soon(stream.recv_response()).await.unwrap();
    assert_eq!(soon(read_body(&mut stream)).await.unwrap(), "hello");
    let after = pair.server.stats();
    assert_eq!(after.packets_sent - before.packets_sent, 1);
}

/// A server that has answered needs no more of the request (RFC 9114 §4.1).
#[tokio::test]
async fn a_request_that_was_answered_before_its_end_is_finished() {
    let pair = Pair::new().await;
    let (mut server, _client, mut requests) = ends(&pair).await;
    let mut stream = soon(requests.send_request(get("/"))).await.unwrap();
    let request = soon(server.accept()).await.unwrap().unwrap();
    let (_, mut answer) = soon(request.resolve_request()).await.unwrap();
    answer.stop_sending(Code::H3_NO_ERROR);
    answer.send_response(Response::new(())).await.unwrap();
    answer.finish().await.unwrap();
    soon(stream.recv_response()).await.unwrap();
    assert_eq!(soon(read_body(&mut stream)).await.unwrap(), "");
    match soon(stream.send_data(Bytes::from("more"))).await {
        Err(StreamError::RemoteTerminate { code, .. }) => assert_eq!(code, Code::H3_NO_ERROR),
        other => panic!("{other:?}"),
    }
    soon(stream.finish()).await.unwrap();
}

#[tokio::test]
async fn a_response_that_is_dropped_is_reset_as_cancelled() {
    let pair = Pair::new().await;
    let (mut server, _client, mut requests) = ends(&pair).await;
    let mut stream = soon(requests.send_request(get("/"))).await.unwrap();
    let request = soon(server.accept()).await.unwrap().unwrap();
    let (_, mut answer) = soon(request.resolve_request()).await.unwrap();
    answer.send_response(Response::new(())).await.unwrap();
    soon(stream.recv_response()).await.unwrap();
    drop(answer);
    match soon(read_body(&mut stream)).await {
        Err(StreamError::RemoteTerminate { code, .. }) => {
            assert_eq!(code, Code::H3_REQUEST_CANCELLED);
        }
        other => panic!("{other:?}"),
    }
    match soon(stream.send_data(Bytes::from("more"))).await {
        Ok(()) => {
            let stopped = soon(stream.finish()).await;
            assert!(stopped.is_err() || pair.client.close_reason().is_none());
        }
        Err(StreamError::RemoteTerminate { code, .. }) => {
            assert_eq!(code, Code::H3_REQUEST_CANCELLED);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_dropped_receiving_end_stops_the_stream_as_cancelled() {
    let pair = Pair::new().await;
    let (mut send, _) = pair.client.open_bidi().await.unwrap();
    send.write_all(b"x").await.unwrap();
    let mut connection = Connection::new(pair.server.clone());
    let stream = soon(std::future::poll_fn(|cx| {
        h3::quic::Connection::<Bytes>::poll_accept_bidi(&mut connection, cx)
    }))
    .await
    .unwrap();
    drop(stream);
    assert_eq!(soon(send.stopped()).await, Ok(Some(0x10c)));
}

#[tokio::test]
async fn the_end_of_a_client_is_clean_for_the_server() {
    let pair = Pair::new().await;
    let (mut server, client, requests) = ends(&pair).await;
    drop((requests, client));
    let end = soon(server.accept()).await.map(drop).unwrap_err();
    assert!(end.is_h3_no_error(), "{end}");
    let reason = pair.server.close_reason().unwrap();
    assert!(hybriq_h3::adapter::is_clean(&reason), "{reason}");
    assert!(!reason.is_clean(), "HTTP/3 has a code of its own: {reason}");
}

/// A server sends GOAWAY, answers what was asked before, and takes no further requests.
#[tokio::test]
async fn a_server_shuts_down_after_its_requests() {
    let pair = Pair::new().await;
    let (mut server, mut client, mut requests) = ends(&pair).await;
    let driver = tokio::spawn(async move { client.wait_idle().await });
    let mut stream = soon(requests.send_request(get("/"))).await.unwrap();
    stream.finish().await.unwrap();
    let request = soon(server.accept()).await.unwrap().unwrap();
    let (_, mut answer) = soon(request.resolve_request()).await.unwrap();
    soon(server.shutdown(0)).await.unwrap();
    answer.send_response(Response::new(())).await.unwrap();
    answer.finish().await.unwrap();
    soon(stream.recv_response()).await.unwrap();
    assert!(soon(requests.send_request(get("/late"))).await.is_err());
    drop((answer, server));
    let end = soon(driver).await.unwrap();
    assert!(end.is_h3_no_error(), "{end}");
}

#[tokio::test]
async fn a_wrong_frame_closes_the_connection_with_the_code_of_rfc_9114() {
    let pair = Pair::new().await;
    let (mut server, _client, _requests) = ends(&pair).await;
    // DATA without HEADERS on a request stream (RFC 9114 §4.1).
    let (mut send, _recv) = pair.client.open_bidi().await.unwrap();
    send.write_all(&[0, 1, 7]).await.unwrap();
    let outcome = soon(async {
        match server.accept().await {
            Ok(Some(request)) => request.resolve_request().await.map(drop).map_err(drop),
            other => panic!("{:?}", other.map(drop)),
        }
    })
    .await;
    assert!(outcome.is_err());
    match soon(server.accept()).await {
        Err(ConnectionError::Local {
            error: LocalError::Application { code, .. },
            ..
        }) => assert_eq!(code, Code::H3_FRAME_UNEXPECTED),
        other => panic!("{:?}", other.map(drop)),
    }
    let end = soon(pair.client.closed()).await;
    assert!(end.to_string().contains(&0x105.to_string()), "{end}");
}

/// The priority of a response decides which one is sent first.
#[tokio::test]
async fn an_urgent_response_overtakes_another() {
    let pair = Pair::new().await;
    let (mut server, _client, mut requests) = ends(&pair).await;
    let mut streams = Vec::new();
    let mut answers = Vec::new();
    for path in ["/slow", "/urgent"] {
        let mut stream = soon(requests.send_request(get(path))).await.unwrap();
        stream.finish().await.unwrap();
        let request = soon(server.accept()).await.unwrap().unwrap();
        let (_, answer) = soon(request.resolve_request()).await.unwrap();
        streams.push(stream);
        answers.push(answer);
    }
    for (answer, field) in answers.iter().zip(["u=7", "u=0"]) {
        let priority = hybriq_h3::priority(field.as_bytes());
        let id = hybriq::StreamId(answer.send_id().into_inner());
        pair.server.set_stream_priority(id, priority);
    }
    assert_eq!(
        hybriq_h3::priority(b"u=7"),
        Priority::new(7).non_incremental()
    );
    let body = Bytes::from(vec![1; 200_000]);
    for answer in &mut answers {
        answer.send_response(Response::new(())).await.unwrap();
        answer.send_data(body.clone()).await.unwrap();
        answer.finish().await.unwrap();
    }
    let [slow, urgent] = &mut streams[..] else {
        unreachable!()
    };
    let first = tokio::select! {
        biased;
        _ = async { slow.recv_response().await.unwrap(); read_body(slow).await } => "slow",
        _ = async { urgent.recv_response().await.unwrap(); read_body(urgent).await } => "urgent",
    };
    assert_eq!(first, "urgent");
}

#[tokio::test]
async fn a_reset_request_shows_its_code() {
    let pair = Pair::new().await;
    let (mut server, _client, mut requests) = ends(&pair).await;
    let mut stream = soon(requests.send_request(get("/"))).await.unwrap();
    let request = soon(server.accept()).await.unwrap().unwrap();
    let (_, mut answer) = soon(request.resolve_request()).await.unwrap();
    stream.stop_stream(Code::H3_REQUEST_CANCELLED);
    match soon(answer.recv_data()).await.map(|_| ()) {
        Err(StreamError::RemoteTerminate { code, .. }) => {
            assert_eq!(code, Code::H3_REQUEST_CANCELLED);
        }
        other => panic!("{other:?}"),
    }
}

/// A client asks in 0-RTT packets, before its handshake is complete.
#[tokio::test]
async fn a_request_goes_in_0_rtt_packets() {
    let server = support::server_with(hybriq::ServerConfig::accept_early_data);
    let client = support::client_with(hybriq::ClientConfig::offer_early_data);
    let address = server.local_address();
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            let early = incoming.accept().early().await.unwrap();
            let server = h3::server::Connection::new(Connection::new(early));
            tokio::spawn(serve_echo(server.await.unwrap()));
        }
    });
    // The first connection brings the ticket.
    let first = soon(client.connect(address, "localhost")).await.unwrap();
    let (driver, mut requests) = soon(h3::client::new(Connection::new(first.clone())))
        .await
        .unwrap();
    assert_eq!(ask(&mut requests, Bytes::from("late")).await, "late");
    drop((driver, requests, first));
    let Ok(early) = soon(client.connect(address, "localhost").early()).await else {
        panic!("there is a ticket");
    };
    let ends = h3::client::new(Connection::new(early.clone()));
    let (_driver, mut requests) = soon(ends).await.unwrap();
    assert_eq!(ask(&mut requests, Bytes::from("early")).await, "early");
    let (connection, fate) = soon(early.complete()).await.unwrap();
    assert_eq!(fate, hybriq::tls::EarlyData::Accepted);
    assert!(connection.handshake().resumed);
}

/// A body in parts, none of which is `Bytes`.
#[tokio::test]
async fn bodies_may_have_any_type() {
    type Body = bytes::buf::Chain<std::io::Cursor<Vec<u8>>, VecDeque<u8>>;
    let pair = Pair::new().await;
    let server = h3::server::Connection::<_, Body>::new(Connection::new(pair.server.clone()));
    let client = h3::client::new(Connection::new(pair.client.clone()));
    let (server, client) = soon(async { tokio::join!(server, client) }).await;
    let (mut server, (_driver, mut requests)) = (server.unwrap(), client.unwrap());
    let mut stream = soon(requests.send_request(get("/"))).await.unwrap();
    stream.finish().await.unwrap();
    let request = soon(server.accept()).await.unwrap().unwrap();
    let (_, mut answer) = soon(request.resolve_request()).await.unwrap();
    let body = std::io::Cursor::new(vec![9; 3_000_000]).chain(VecDeque::from([7; 1_000]));
    let send = async {
        answer.send_response(Response::new(())).await.unwrap();
        answer.send_data(body).await.unwrap();
        answer.finish().await.unwrap();
    };
    let recv = async {
        stream.recv_response().await.unwrap();
        read_body(&mut stream).await.unwrap()
    };
    let came = soon(async { tokio::join!(send, recv) }).await.1;
    assert!(came[..] == [vec![9; 3_000_000], vec![7; 1_000]].concat());
}

/// What is left of the frame of a `send_data` that was dropped would be content of the next frame, or missing.
#[tokio::test]
async fn a_send_that_is_dropped_half_way_costs_its_stream_alone() {
    for finishes in [false, true] {
        let pair = Pair::new().await;
        let (mut server, _client, mut requests) = ends(&pair).await;
        let mut stream = soon(requests.send_request(get("/"))).await.unwrap();
        stream.finish().await.unwrap();
        let request = soon(server.accept()).await.unwrap().unwrap();
        let (_, mut answer) = soon(request.resolve_request()).await.unwrap();
        answer.send_response(Response::new(())).await.unwrap();
        soon(stream.recv_response()).await.unwrap();
        {
            // More than the peer gives credit for.
            let body = Bytes::from(vec![1; 50_000_000]);
            let mut send = std::pin::pin!(answer.send_data(body));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(send.as_mut().poll(&mut cx).is_pending());
        }
        for _ in 0..2 {
            let next = if finishes {
                soon(answer.finish()).await
            } else {
                soon(answer.send_data(Bytes::from("next"))).await
            };
            let refused = next.unwrap_err().to_string();
            assert!(refused.contains("sent in part"), "{refused}");
        }
        match soon(read_body(&mut stream)).await {
            Err(StreamError::RemoteTerminate { code, .. }) => {
                assert_eq!(code, Code::H3_REQUEST_CANCELLED);
            }
            other => panic!("{other:?}"),
        }
        tokio::spawn(serve_echo(server));
        assert_eq!(ask(&mut requests, Bytes::from("on")).await, "on");
    }
}

/// What is sent without a frame, as by extensions of `h3`, is taken over without a copy.
#[tokio::test]
async fn what_has_no_frame_is_sent_whole() {
    let pair = Pair::new().await;
    let mut connection = Connection::new(pair.client.clone());
    let mut stream: SendStream<Bytes> = soon(poll_fn(|cx| connection.poll_open_send(cx)))
        .await
        .unwrap();
    let body = Bytes::from((0..3_000_000).map(|at| at as u8).collect::<Vec<_>>());
    let mut left = body.slice(..2_500_000).chain(body.slice(2_500_000..));
    let send = async {
        while left.has_remaining() {
            poll_fn(|cx| stream.poll_send(cx, &mut left)).await.unwrap();
        }
        poll_fn(|cx| stream.poll_finish(cx)).await.unwrap();
    };
    let recv = async {
        let mut recv = pair.server.accept_uni().await.unwrap().unwrap();
        recv.read_to_end(4_000_000).await.unwrap()
    };
    let came = soon(async { tokio::join!(send, recv) }).await.1;
    assert!(came == body);
}
