//! Sessions of WebTransport.

use axum::{Extension, Router, routing::any};
use h3::quic::StreamId;
use http::{Method, Request, StatusCode};
use hybriq_http::webtransport::{Limits, WebTransport};

use crate::{
    Server,
    support::{Http3, soon},
};

type Stream = h3::client::RequestStream<hybriq_h3::adapter::BidiStream<bytes::Bytes>, bytes::Bytes>;

/// Accepts a session, and takes nothing of it.
async fn accept(Extension(request): Extension<WebTransport>) -> StatusCode {
    request.accept(async |session| {
        session.closed().await;
    })
}

/// Starts a server with sessions.
pub(crate) async fn start() -> Server {
    let builder = hybriq_http::Server::builder().webtransport(Limits::default());
    Server::with(builder, Router::new().route("/chat", any(accept))).await
}

/// Asks for a session.
pub(crate) async fn ask(client: &Http3) -> Stream {
    let mut request = Request::new(());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = "https://localhost/chat".parse().unwrap();
    let protocol = h3::ext::Protocol::WEB_TRANSPORT;
    request.extensions_mut().insert(protocol);
    let mut requests = client.requests.clone();
    let mut stream = soon(requests.send_request(request)).await.unwrap();
    let response = soon(stream.recv_response()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    stream
}

/// Sends datagrams for a session, as many as it keeps.
pub(crate) async fn flood(server: &Server, client: &Http3, session: StreamId, bytes: usize) {
    let datagrams = hybriq_h3::Datagrams::new(client.connection.clone());
    let payload = [9; 1000];
    for index in 0..=bytes / (payload.len() + 96) {
        datagrams
            .send(hybriq::StreamId(session.into_inner()), &payload)
            .unwrap();
        if index % 8 == 0 {
            server.quiet().await;
        }
    }
}

#[tokio::test]
async fn sessions_reach_their_worst_case() {
    let limits = Limits::default();
    let mut server = start().await;
    let client = Http3::connect(server.address()).await;
    server.begin().await;
    let mut all = Vec::new();
    for _ in 0..limits.sessions {
        all.push(ask(&client).await);
    }
    for session in &all {
        flood(&server, &client, session.id(), limits.datagrams).await;
    }
    let unknown = StreamId::try_from(400).unwrap();
    flood(&server, &client, unknown, limits.waiting_datagrams).await;
    let mut streams = Vec::new();
    for _ in 0..96 {
        let mut send = soon(client.connection.open_uni()).await.unwrap();
        soon(send.write_all(&[0x40, 0x54, 0, 7])).await.unwrap();
        streams.push(send);
    }
    let most = server.worst.sessions;
    server.reaches("sessions", 1, most).await;
}
