//! Sessions of WebTransport.

use axum::{Extension, Router, routing::any};
use http::StatusCode;
use hybriq::StreamId;
use hybriq_http::webtransport::{Limits, WebTransport};

use crate::{Server, peer::Peer};

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

/// Sends datagrams for a session, as many as it keeps.
pub(crate) async fn flood(server: &Server, client: &Peer, session: StreamId, bytes: usize) {
    let payload = [9; 1000];
    for index in 0..=bytes / (payload.len() + 96) {
        client.send_datagram(session, &payload);
        if index % 8 == 0 {
            server.quiet().await;
        }
    }
}

#[tokio::test]
async fn sessions_reach_their_worst_case() {
    let limits = Limits::default();
    let mut server = start().await;
    let client = Peer::connect(server.address()).await;
    server.begin().await;
    let mut all = Vec::new();
    for _ in 0..limits.sessions {
        all.push(client.session().await);
    }
    for session in &all {
        flood(&server, &client, session.id(), limits.datagrams).await;
    }
    let unknown = StreamId(396);
    flood(&server, &client, unknown, limits.waiting_datagrams).await;
    let mut streams = Vec::new();
    for _ in 0..96 {
        streams.push(client.uni(StreamId(0), &[7]).await);
    }
    let most = server.worst.sessions;
    server.reaches("sessions", 1, most).await;
}
