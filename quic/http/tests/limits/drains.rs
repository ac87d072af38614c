//! The time that requests may take after the end of their connection was announced.

use std::time::Duration;

use axum::{Router, routing::get};

use crate::{
    client::{Client, VERSIONS, connections},
    serve,
    support::{Certificate, client_config, soon},
};

/// The last request of a connection may take long, but not for ever.
#[tokio::test]
async fn a_connection_that_was_told_to_end_ends_in_its_time() {
    for version in VERSIONS {
        let router = Router::new().route("/held", get(std::future::pending::<()>));
        let server = serve(router, |limits| {
            limits.requests = 1;
            limits.drain_time = Duration::from_millis(400);
        });
        let mut client = Client::connect(version, server.address()).await;
        let held = client.send("/held").await.unwrap();
        client.ended().await;
        drop(held);
        connections(&server.handle, 0).await;
    }
}

/// HTTP/3 does not begin if the client has no room for the server's streams: the connection ends even so, although
/// its client keeps it alive.
#[tokio::test]
async fn a_client_without_room_for_the_streams_of_the_server_is_let_go() {
    for streams in 0..3 {
        let server = serve(Router::new(), |limits| {
            limits.header_time = Duration::from_millis(300);
        });
        let transport = hybriq::TransportConfig::new().keep_alive(Duration::from_millis(50));
        let transport = transport.max_uni_streams(streams);
        let config = client_config(&Certificate::shared()).transport(transport);
        let endpoint = hybriq::Endpoint::client(config).unwrap();
        let connection = soon(endpoint.connect(server.address(), "localhost")).await;
        let connection = connection.unwrap();
        let closed = tokio::time::timeout(Duration::from_secs(5), connection.closed()).await;
        assert!(closed.is_ok(), "{streams} streams");
        connections(&server.handle, 0).await;
    }
}
