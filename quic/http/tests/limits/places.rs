//! The number of connections.

use std::net::SocketAddr;

use axum::Router;
use hybriq::Endpoint;
use hybriq_http::{Limits, Server};

use crate::{
    client::{Client, Outcome, VERSIONS, Version, connections},
    support::{Certificate, client_config, connect_tls, run_with, soon},
};

/// Returns true if a client cannot connect.
async fn is_refused(version: Version, address: SocketAddr) -> bool {
    match version {
        Version::Http1 => connect_tls(address, "http/1.1").await.is_err(),
        Version::Http2 => connect_tls(address, "h2").await.is_err(),
        Version::Http3 => {
            let endpoint = Endpoint::client(client_config(&Certificate::shared())).unwrap();
            soon(endpoint.connect(address, "localhost")).await.is_err()
        }
    }
}

/// A server at its limit of connections refuses others, and accepts them again once one has closed.
#[tokio::test]
async fn connections_beyond_the_limit_are_refused() {
    for version in VERSIONS {
        let mut limits = Limits::default();
        limits.tcp_connections = 2;
        let builder = Server::builder().limits(limits);
        let builder = builder.endpoint(Endpoint::builder().max_connections(2));
        let server = run_with(builder, Certificate::shared().config(), Router::new());
        let mut clients = Vec::new();
        for _ in 0..2 {
            let mut client = Client::connect(version, server.address()).await;
            assert_eq!(client.ask("/").await, Outcome::Answered(200), "{version:?}");
            clients.push(client);
        }
        assert!(is_refused(version, server.address()).await, "{version:?}");
        assert_eq!(clients[0].ask("/").await, Outcome::Answered(200));
        clients.pop();
        connections(&server.handle, 1).await;
        // The place is free a moment later.
        soon(async { while is_refused(version, server.address()).await {} }).await;
    }
}
