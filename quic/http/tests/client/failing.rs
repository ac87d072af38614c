//! Servers that refuse requests, or go away.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, routing::any};
use bytes::Bytes;
use h3::error::Code;
use http::{Method, Response, StatusCode, Version};
use hybriq::{ClientConfig, Endpoint, ServerConfig, Trust};
use hybriq_http::{Client, ClientError, Http3, Limits, QuicError, Server};
use tokio::sync::{broadcast, mpsc};

use crate::{
    common::{bytes, client, client_with, config, get, offering, peer, post, request, uri},
    front::Front,
    records::{H3, Zone, rdata},
    support::{Certificate, run, run_with, soon},
};

type Stream = h3::server::RequestStream<hybriq_h3::adapter::BidiStream<Bytes>, Bytes>;
type Connection = h3::server::Connection<hybriq_h3::adapter::Connection, Bytes>;

/// Fate of the requests of one connection.
#[derive(Clone, Copy)]
enum Fate {
    Answer,
    /// Each stream is reset with this code.
    Reset(u64),
    /// The connection is closed after the first request.
    Close,
    /// GOAWAY refuses all requests but the first of two, and nothing else does. The connection is closed when another has
    /// come.
    Leave,
}

/// A server of HTTP/3 whose connections have these fates, in order, and then answer. Tells about every
/// request: the number of its connection, and its body.
fn server(fates: &'static [Fate]) -> (SocketAddr, mpsc::UnboundedReceiver<(usize, Bytes)>) {
    let config: ServerConfig = Certificate::shared().config().alpn([hybriq_h3::ALPN]);
    let endpoint = Endpoint::server("127.0.0.1:0", config).unwrap();
    let address = endpoint.local_address();
    let (seen, requests) = mpsc::unbounded_channel();
    let (accepted, _) = broadcast::channel(100);
    tokio::spawn(async move {
        let mut number = 0;
        while let Some(incoming) = endpoint.accept().await {
            let fate = fates.get(number).copied().unwrap_or(Fate::Answer);
            let transport = incoming.accept().await.unwrap();
            let transport = hybriq_h3::adapter::Connection::new(transport);
            let connection = h3::server::Connection::new(transport).await.unwrap();
            // Tells connections before it.
            let _ = accepted.send(number);
            let next = accepted.subscribe();
            tokio::spawn(serve(connection, fate, number, seen.clone(), next));
            number += 1;
        }
    });
    (address, requests)
}

async fn serve(
    mut connection: Connection,
    fate: Fate,
    number: usize,
    seen: mpsc::UnboundedSender<(usize, Bytes)>,
    mut next: broadcast::Receiver<usize>,
) {
    let mut held = Vec::new();
    while let Ok(Some(request)) = connection.accept().await {
        let (_, mut stream) = request.resolve_request().await.unwrap();
        let body = read(&mut stream).await;
        seen.send((number, body)).unwrap();
        match fate {
            Fate::Answer => {
                stream.send_response(Response::new(())).await.unwrap();
                stream
                    .send_data(Bytes::from(number.to_string()))
                    .await
                    .unwrap();
                stream.finish().await.unwrap();
            }
            Fate::Reset(code) => {
                let code = [
                    Code::H3_REQUEST_REJECTED,
                    Code::H3_VERSION_FALLBACK,
                    Code::H3_INTERNAL_ERROR,
                ]
                .into_iter()
                .find(|known| known.value() == code);
                stream.stop_stream(code.unwrap());
            }
            Fate::Close => return,
            Fate::Leave => {
                held.push(stream);
                if held.len() == 2 {
                    connection.shutdown(0).await.unwrap();
                    while next.recv().await.is_ok_and(|next| next == number) {}
                    return;
                }
            }
        }
    }
}

async fn read(stream: &mut Stream) -> Bytes {
    let mut body = Vec::new();
    while let Some(mut data) = stream.recv_data().await.unwrap() {
        let len = bytes::Buf::remaining(&data);
        body.extend(bytes::Buf::copy_to_bytes(&mut data, len));
    }
    body.into()
}

const REJECTED: u64 = 0x10b;
const INTERNAL: u64 = 0x102;
const FALLBACK: u64 = 0x110;

/// A request that the server has not processed is sent again with its whole body, on another connection.
#[tokio::test]
async fn a_rejected_request_is_sent_again() {
    let (address, mut seen) = server(&[Fate::Reset(REJECTED), Fate::Reset(REJECTED)]);
    let client = client(Http3::Only);
    let response = post(&client, address, "the body").await.unwrap();
    assert_eq!(bytes(response).await, "2");
    for number in 0..3 {
        assert_eq!(
            seen.recv().await.unwrap(),
            (number, Bytes::from("the body"))
        );
    }
}

/// The request is not sent for ever.
#[tokio::test]
async fn a_request_is_rejected_in_the_end() {
    let (address, _seen) = server(&[Fate::Reset(REJECTED); 10]);
    let refused = post(&client(Http3::Only), address, "x").await.unwrap_err();
    assert!(matches!(refused, ClientError::Refused { .. }), "{refused}");
}

/// Other codes do not say that nothing was done.
#[tokio::test]
async fn a_reset_request_is_not_sent_again() {
    let (address, mut seen) = server(&[Fate::Reset(INTERNAL)]);
    let client = client(Http3::Only);
    let reset = soon(client.get(uri(address, "/"))).await.unwrap_err();
    assert!(
        matches!(reset, ClientError::Reset(code) if code.0 == INTERNAL),
        "{reset}"
    );
    seen.recv().await.unwrap();
    assert!(seen.try_recv().is_err());
}

/// When a connection is lost, requests are sent again whose methods are idempotent.
#[tokio::test]
async fn idempotent_requests_survive_a_lost_connection() {
    let (address, mut seen) = server(&[Fate::Close, Fate::Close]);
    let client = client(Http3::Only);
    let lost = post(&client, address, "x").await.unwrap_err();
    assert!(matches!(lost, ClientError::Lost { .. }), "{lost}");
    assert_eq!(bytes(get(&client, address).await).await, "2");
    for number in 0..3 {
        assert_eq!(seen.recv().await.unwrap().0, number);
    }
}

/// A request that a GOAWAY refuses was not processed, whatever its method. It is sent again at once, as new requests are
/// sent, on another connection; those that the server may still answer wait for it.
#[tokio::test]
async fn requests_that_goaway_refuses_are_sent_again() {
    let (address, mut seen) = server(&[Fate::Leave]);
    let client = client(Http3::Only);
    let first = tokio::spawn({
        let client = client.clone();
        async move { post(&client, address, "first").await }
    });
    assert_eq!(seen.recv().await, Some((0, "first".into())));
    let second = tokio::spawn({
        let client = client.clone();
        async move { post(&client, address, "second").await }
    });
    assert_eq!(seen.recv().await, Some((0, "second".into())));
    // Nothing but this ends the first connection.
    let again = soon(second).await.unwrap().unwrap();
    assert_eq!(bytes(again).await, "1");
    let lost = soon(first).await.unwrap().unwrap_err();
    assert!(matches!(lost, ClientError::Lost { .. }), "{lost}");
    let more = post(&client, address, "more").await.unwrap();
    assert_eq!(bytes(more).await, "1");
}

/// A server that answers a few requests on each connection fails none.
#[tokio::test]
async fn connections_with_few_requests_fail_none() {
    let mut limits = Limits::default();
    // The limit is exact: of fifty at once, some are refused unseen twice, and our client tries four times.
    limits.requests = 19;
    let builder = Server::builder().limits(limits);
    let server = run_with(builder, Certificate::shared().config(), Router::new());
    let client = client(Http3::Only);
    let mut resumed = 0;
    for _ in 0..20 {
        let response = post(&client, server.address(), "x").await.unwrap();
        resumed += usize::from(peer(&response).tls.resumed);
    }
    assert!(resumed > 0, "there were several connections");
    let requests = (0..50).map(|_| post(&client, server.address(), "x"));
    for response in futures_util::future::join_all(requests).await {
        assert_eq!(response.unwrap().status(), StatusCode::OK);
    }
}

/// Requests go on while the server's certificate is reloaded, over each version.
#[tokio::test]
async fn a_reload_fails_no_request() {
    let server = run_with(
        Server::builder(),
        Certificate::shared().config(),
        Router::new(),
    );
    for http3 in [Http3::Only, Http3::Off] {
        let client = client(http3);
        for round in 0..5 {
            let requests = (0..20).map(|_| post(&client, server.address(), "x"));
            let (responses, ()) = tokio::join!(futures_util::future::join_all(requests), async {
                server
                    .handle
                    .reload(Certificate::shared().config())
                    .unwrap();
            });
            for response in responses {
                assert_eq!(response.unwrap().status(), StatusCode::OK, "{round}");
            }
            client.close_idle();
        }
    }
}

/// A server shuts down under load and another takes its port: no request fails, over any version.
#[tokio::test]
async fn a_restart_fails_no_request() {
    for http3 in [Http3::Only, Http3::First, Http3::Off] {
        let config = Certificate::shared().config();
        let first = run_with(Server::builder(), config.clone(), Router::new());
        let address = first.address();
        let client = Arc::new(client(http3));
        let response = get(&client, address).await;
        assert_eq!(response.version() == Version::HTTP_3, http3 != Http3::Off);
        let requests = (0..20).map(|_| post(&client, address, "x"));
        let (responses, ()) = tokio::join!(
            futures_util::future::join_all(requests),
            first.handle.shutdown(Duration::from_secs(10)),
        );
        for response in responses {
            // Requests that came after the end have no server.
            if let Err(error) = response {
                let refused = matches!(error, ClientError::Connect { .. });
                assert!(refused, "{http3:?}: {error}");
            }
        }
        soon(first.serving).await.unwrap();
        let second = Server::builder().bind(address, config).unwrap();
        let _handle = second.handle();
        tokio::spawn(second.serve(Router::new()));
        let response = get(&client, address).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{http3:?}");
    }
}

/// A request that the server does not want over HTTP/3 (H3_VERSION_FALLBACK) goes over TCP, if it may.
#[tokio::test]
async fn a_request_that_is_not_for_http3_is_sent_over_tcp() {
    let (address, _seen) = server(&[Fate::Reset(FALLBACK); 10]);
    let refused = post(&client(Http3::Only), address, "x").await.unwrap_err();
    assert!(matches!(refused, ClientError::Refused { .. }), "{refused}");
    let other = run(Router::new());
    let front = Front::between(other.address(), address).await;
    let response = post(&client(Http3::First), front.address, "x")
        .await
        .unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
    assert_eq!(bytes(response).await, "x");
    // Whatever the records of DNS say.
    let (address, mut seen) = server(&[Fate::Reset(FALLBACK); 10]);
    let front = Front::between(other.address(), address).await;
    let record = rdata(1, "", &[H3]);
    let port = front.address.port();
    let name = format!("_{port}._https.server.test");
    let builder = Client::builder().https_records(Zone::default().with(&name, record));
    let at = async |_, port| Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]);
    // Nobody looks for records of `localhost`, which is the name in the certificate.
    let anyone = Trust::dangerously_accept_any_certificate();
    let client = builder
        .resolver(at)
        .build(ClientConfig::new().trust(anyone));
    let asked = request(Method::POST, &format!("https://server.test:{port}/"), "y");
    let response = soon(client.unwrap().request(asked)).await.unwrap();
    assert_eq!(soon(seen.recv()).await, Some((0, "y".into())));
    assert_eq!(response.version(), Version::HTTP_2);
    assert_eq!(bytes(response).await, "y");
}

/// An alternative that answers 421 is left (RFC 7838 §6).
#[tokio::test]
async fn an_alternative_that_is_not_responsible_is_left() {
    // The alternative is another server, which knows nothing of the first one's pages.
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let wrong = Router::new().fallback(async move |_: Bytes| {
        count.fetch_add(1, Ordering::AcqRel);
        StatusCode::MISDIRECTED_REQUEST
    });
    let wrong = Server::bind("127.0.0.1:0", Certificate::shared().config()).map(|server| {
        let address = server.local_address();
        tokio::spawn(server.serve(wrong));
        address
    });
    let offer = format!("h3=\":{}\"", wrong.unwrap().port());
    let server = run(offering(&offer));
    let client = client_with(Client::builder(), config());
    let ask = async || {
        let response = post(&client, server.address(), "x").await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.version(), Version::HTTP_2);
    };
    soon(async {
        while asked.load(Ordering::Acquire) == 0 {
            ask().await;
        }
    })
    .await;
    for _ in 0..30 {
        ask().await;
    }
    assert_eq!(asked.load(Ordering::Acquire), 1);
    // A body that was not kept cannot be sent again: the caller gets the answer.
    let client = client_with(Client::builder(), config());
    let ask = async || {
        let large = vec![7; 300_000];
        let response = post(&client, server.address(), large).await.unwrap();
        response.status() == StatusCode::MISDIRECTED_REQUEST
    };
    soon(async { while !ask().await {} }).await;
    for _ in 0..10 {
        assert!(!ask().await);
    }
    assert_eq!(asked.load(Ordering::Acquire), 2);
}

/// Fields of responses are bounded, over every version.
#[tokio::test]
async fn long_fields_are_refused() {
    let long = |bytes: usize| async move { [("x-long", "x".repeat(bytes))] };
    let router = Router::new()
        .route("/long", any(move || long(60_000)))
        .route("/short", any(move || long(2_000)));
    let server = run(router);
    for http3 in [Http3::Only, Http3::Off] {
        let builder = Client::builder().http3(http3).header_list(16 << 10);
        let client = client_with(builder, config());
        let refused = soon(client.get(uri(server.address(), "/long"))).await;
        // A server that knows the limit sends no such response: over HTTP/3 it says that it failed.
        match &refused {
            Ok(failed) => assert_eq!((http3, failed.status().as_u16()), (Http3::Only, 500)),
            Err(error) => assert!(
                matches!(
                    error,
                    ClientError::ResponseFields(_) | ClientError::Lost { .. }
                ),
                "{error}"
            ),
        }
        let short = soon(client.get(uri(server.address(), "/short"))).await;
        assert_eq!(short.unwrap().headers()["x-long"].len(), 2_000);
    }
}

/// HTTP/3 begins with unidirectional streams. A server that has no room for them holds nobody up for longer than the
/// time to connect, and its connection is closed then.
#[tokio::test]
async fn a_server_without_room_for_the_streams_of_the_client_is_given_up() {
    for streams in 0..3 {
        let transport = hybriq::TransportConfig::new().max_uni_streams(streams);
        let server_config = Certificate::shared().config().alpn([hybriq_h3::ALPN]);
        let server_config = server_config.transport(transport);
        let endpoint = Endpoint::server("127.0.0.1:0", server_config).unwrap();
        let address = endpoint.local_address();
        let accepted = tokio::spawn(async move {
            let connection = endpoint.accept().await.unwrap().accept().await.unwrap();
            connection.closed().await
        });
        let builder = Client::builder().http3(Http3::Only);
        let builder = builder.connect_timeout(Duration::from_millis(500));
        let client = client_with(builder, config());
        let failed = soon(client.get(uri(address, "/"))).await.unwrap_err();
        let ClientError::Connect {
            quic: Some(quic), ..
        } = failed
        else {
            panic!("{failed}")
        };
        assert!(matches!(*quic, QuicError::TimedOut(_)), "{streams}: {quic}");
        soon(accepted).await.unwrap();
    }
}
