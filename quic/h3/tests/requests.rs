//! Requests and responses through the `h3` crate, with both ends on hybriq.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::large_futures, reason = "those of the h3 crate are large")]

mod support;

use bytes::{Buf, Bytes, BytesMut};
use h3::error::{Code, ConnectionError, LocalError, StreamError};
use http::{Request, Response, StatusCode};
use hybriq::transport::Priority;
use hybriq_h3::{Connection, Datagrams, OpenStreams, Payload};
use support::{Pair, soon};

type Server = h3::server::Connection<Connection, Payload>;
type ServerStream = h3::server::RequestStream<hybriq_h3::BidiStream<Payload>, Payload>;
type Client = h3::client::Connection<Connection, Payload>;
type Requests = h3::client::SendRequest<OpenStreams<Payload>, Payload>;

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
        let payload = Payload::from(data.copy_to_bytes(len));
        stream.send_data(payload).await.unwrap();
    }
    stream.finish().await.unwrap();
}

/// Serves all requests of a connection, each in a task of its own. Returns its end.
async fn serve_echo(mut server: Server) -> Result<(), ConnectionError> {
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
    stream: &mut h3::client::RequestStream<hybriq_h3::BidiStream<Payload>, Payload>,
) -> Result<Bytes, StreamError> {
    let mut all = BytesMut::new();
    while let Some(data) = stream.recv_data().await? {
        bytes::BufMut::put(&mut all, data);
    }
    Ok(all.freeze())
}

/// Sends a body and returns the response's.
async fn ask(requests: &mut Requests, body: Bytes) -> Bytes {
    let request = Request::post("https://localhost/echo").body(()).unwrap();
    let stream = requests.send_request(request).await.unwrap();
    let (mut send, mut recv) = stream.split();
    let upload = async move {
        send.send_data(Payload::from(body)).await.unwrap();
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
    answer.send_data(Payload::from("hello")).await.unwrap();
    answer.finish().await.unwrap();
    soon(stream.recv_response()).await.unwrap();
    assert_eq!(soon(read_body(&mut stream)).await.unwrap(), "hello");
    let after = pair.server.stats();
    assert_eq!(after.packets_sent - before.packets_sent, 1);
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
    match soon(stream.send_data(Payload::from("more"))).await {
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
    assert!(hybriq_h3::is_clean(&reason), "{reason}");
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
        answer.send_data(Payload::from(body.clone())).await.unwrap();
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
async fn datagrams_belong_to_the_stream_of_a_request() {
    let pair = Pair::new().await;
    let (server, client) = (
        Datagrams::new(pair.server.clone()),
        Datagrams::new(pair.client.clone()),
    );
    for id in [
        0_u64,
        4,
        63 * 4,
        64 * 4,
        16_383 * 4,
        16_384 * 4,
        (1 << 30) * 4,
    ] {
        let stream = hybriq::StreamId(id);
        assert!(client.max_size(stream).unwrap() > 1_000);
        client.send(stream, b"payload").unwrap();
        let (from, payload) = soon(server.recv()).await.unwrap().unwrap();
        assert_eq!((from, payload), (stream, Bytes::from("payload")));
    }
    // A datagram without a whole stream number.
    pair.client
        .send_datagram(Bytes::from_static(&[0x40]))
        .unwrap();
    assert_eq!(
        soon(server.recv()).await,
        Err(hybriq_h3::DatagramError::Malformed)
    );
    let end = soon(pair.client.closed()).await;
    assert!(end.to_string().contains(&0x33.to_string()), "{end}");
}

#[tokio::test]
async fn bodies_of_other_types_are_sent_too() {
    let pair = Pair::new().await;
    let server = h3::server::Connection::<_, Bytes>::new(Connection::new(pair.server.clone()));
    let client = h3::client::new(Connection::new(pair.client.clone()));
    let (server, client) = soon(async { tokio::join!(server, client) }).await;
    let (mut server, (_driver, mut requests)) = (server.unwrap(), client.unwrap());
    let mut stream = soon(requests.send_request(get("/"))).await.unwrap();
    stream.finish().await.unwrap();
    let request = soon(server.accept()).await.unwrap().unwrap();
    let (_, mut answer) = soon(request.resolve_request()).await.unwrap();
    let body = Bytes::from(vec![9; 3_000_000]);
    let send = async {
        answer.send_response(Response::new(())).await.unwrap();
        answer.send_data(body.clone()).await.unwrap();
        answer.finish().await.unwrap();
    };
    let recv = async {
        stream.recv_response().await.unwrap();
        let mut len = 0;
        while let Some(data) = stream.recv_data().await.unwrap() {
            len += data.remaining();
        }
        len
    };
    assert_eq!(soon(async { tokio::join!(send, recv) }).await.1, body.len());
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

/// Returns what the server says about the packets of a request.
async fn is_early(requests: &mut Requests, path: &str) -> String {
    let mut stream = soon(requests.send_request(get(path))).await.unwrap();
    stream.finish().await.unwrap();
    let response = soon(stream.recv_response()).await.unwrap();
    response.headers()["early"].to_str().unwrap().to_owned()
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
            let connection = Connection::early(early);
            let replayable = connection.early_requests();
            let mut server = Server::new(connection).await.unwrap();
            tokio::spawn(async move {
                while let Ok(Some(request)) = server.accept().await {
                    let (request, mut stream) = request.resolve_request().await.unwrap();
                    let early = replayable.contains(stream.id());
                    assert_eq!(early, request.uri().path() == "/early");
                    let response = Response::builder().header("early", early.to_string());
                    stream
                        .send_response(response.body(()).unwrap())
                        .await
                        .unwrap();
                    stream.finish().await.unwrap();
                }
            });
        }
    });
    let mut builder = h3::client::builder();
    // The first connection brings the ticket.
    let first = soon(client.connect(address, "localhost")).await.unwrap();
    let ends = builder.build::<_, _, Payload>(Connection::new(first.clone()));
    let (driver, mut requests) = soon(ends).await.unwrap();
    assert_eq!(is_early(&mut requests, "/full").await, "false");
    drop((driver, requests, first));
    let Ok(early) = soon(client.connect(address, "localhost").early()).await else {
        panic!("there is a ticket");
    };
    let ends = builder.build::<_, _, Payload>(Connection::early(early.clone()));
    let (_driver, mut requests) = soon(ends).await.unwrap();
    assert_eq!(is_early(&mut requests, "/early").await, "true");
    let (connection, fate) = soon(early.complete()).await.unwrap();
    assert_eq!(fate, hybriq::tls::EarlyData::Accepted);
    assert!(connection.handshake().resumed);
}

/// `h3` would collect the frame until it is whole, whatever its length.
#[tokio::test]
async fn a_frame_that_is_too_long_ends_its_stream_alone() {
    let pair = Pair::new().await;
    let (mut server, _client, mut requests) = ends(&pair).await;
    // HEADERS of 2^30 bytes, and an unknown frame of as many.
    for kind in [1, 0x21] {
        let (mut send, _recv) = pair.client.open_bidi().await.unwrap();
        send.write_all(&[kind, 0xc0, 0, 0, 0, 0x40, 0, 0, 0, 1, 2, 3])
            .await
            .unwrap();
        let request = soon(server.accept()).await.unwrap().unwrap();
        assert!(soon(request.resolve_request()).await.is_err());
        assert_eq!(soon(send.stopped()).await, Ok(Some(0x107)));
    }
    tokio::spawn(serve_echo(server));
    assert_eq!(
        ask(&mut requests, Bytes::from("still here")).await,
        "still here"
    );
}

#[tokio::test]
async fn a_frame_that_is_too_long_on_the_control_stream_ends_the_connection() {
    let pair = Pair::new().await;
    let builder = h3::server::builder();
    let server = builder.build::<_, Payload>(Connection::new(pair.server.clone()).max_frame(100));
    let mut server = soon(server).await.unwrap();
    let mut control = pair.client.open_uni().await.unwrap();
    // The type of the stream, empty SETTINGS, and an unknown frame of 101 bytes.
    control
        .write_all(&[0, 4, 0, 0x21, 0x40, 101])
        .await
        .unwrap();
    assert!(soon(server.accept()).await.is_err());
    let end = soon(pair.client.closed()).await.to_string();
    assert!(end.contains(&0x107.to_string()), "{end}");
    assert!(end.contains("101 bytes"), "{end}");
}

/// PRIORITY_UPDATE (RFC 9218 §7.1) reorders responses that are under way.
#[tokio::test]
async fn a_priority_update_is_applied() {
    let pair = Pair::new().await;
    let mut server = soon(Server::new(Connection::new(pair.server.clone())))
        .await
        .unwrap();
    let mut control = pair.client.open_uni().await.unwrap();
    control.write_all(&[0, 4, 0]).await.unwrap();
    // Two requests that a test writes itself: GET / over QPACK's static table.
    let get = [
        1, 12, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 5, b'l', b'o', b'c', b'a', b'l',
    ];
    let mut streams = Vec::new();
    let mut answers = Vec::new();
    for _ in 0..2 {
        let (mut send, recv) = pair.client.open_bidi().await.unwrap();
        send.write_all(&get).await.unwrap();
        send.finish();
        let request = soon(server.accept()).await.unwrap().unwrap();
        let (_, answer) = soon(request.resolve_request()).await.unwrap();
        streams.push((send, recv));
        answers.push(answer);
    }
    // The first stream is to come last, the second first.
    for (stream, urgency) in [(0, b'7'), (4, b'0')] {
        let update = [0x80, 0xf, 7, 0, 4, stream, b'u', b'=', urgency];
        control.write_all(&update).await.unwrap();
    }
    // The server reads its control stream before it takes the next request.
    let (mut send, _recv) = pair.client.open_bidi().await.unwrap();
    send.write_all(&get).await.unwrap();
    assert!(soon(server.accept()).await.unwrap().is_some());
    let body = Bytes::from(vec![1; 200_000]);
    for answer in &mut answers {
        answer.send_response(Response::new(())).await.unwrap();
        answer.send_data(Payload::from(body.clone())).await.unwrap();
        answer.finish().await.unwrap();
    }
    let [(_, last), (_, first)] = &mut streams[..] else {
        unreachable!()
    };
    let winner = tokio::select! {
        biased;
        _ = last.read_to_end(1 << 20) => "last",
        _ = first.read_to_end(1 << 20) => "first",
    };
    assert_eq!(winner, "first");
}
