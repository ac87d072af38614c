//! TLS over TCP.

use axum::Router;

use crate::{
    Server,
    raw::{Raw, hello},
};

const CONNECTIONS: u64 = 16;

#[tokio::test]
async fn a_client_hello_that_is_not_whole_reaches_its_worst_case() {
    let server = Server::start(Router::new()).await;
    let mut all = Vec::new();
    for _ in 0..CONNECTIONS {
        all.push(hello(&server).await);
    }
    let most = server.worst.handshake;
    server.reaches("handshake", CONNECTIONS, most).await;
}

/// A message of a handshake that comes after the handshake.
#[tokio::test]
async fn a_late_message_of_tls_reaches_its_worst_case() {
    let server = Server::start(Router::new()).await;
    let mut all = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut client = Raw::connect(&server, "http/1.1").await;
        client.send_part_of_message().await;
        all.push(client);
    }
    // What is sent is another test's.
    let most = server.worst.handshake;
    server.reaches("late message", CONNECTIONS, most).await;
}
