//! The budget of memory.

use std::sync::Arc;

use axum::{Router, routing::get};
use hybriq::Endpoint;
use tokio::{io::AsyncReadExt as _, net::TcpStream, sync::Notify};

use crate::{
    client::{Client, Outcome, VERSIONS, Version, connections},
    serve,
    support::{Certificate, client_config, connect_tls, soon},
};

/// Beyond the budget nothing new is begun: requests are not served, new connections are refused, and idle ones
/// end.
#[tokio::test]
async fn beyond_the_budget_nothing_is_begun() {
    for version in VERSIONS {
        let server = serve(Router::new(), |limits| limits.memory = 1);
        let address = server.address();
        let mut client = Client::connect(version, address).await;
        let outcome = client.ask("/").await;
        assert_ne!(outcome, Outcome::Answered(200), "{version:?}");
        let refused = match version {
            Version::Http1 => connect_tls(address, "http/1.1").await.is_err(),
            Version::Http2 => connect_tls(address, "h2").await.is_err(),
            Version::Http3 => {
                let config = client_config(&Certificate::shared());
                let endpoint = Endpoint::client(config).unwrap();
                soon(endpoint.connect(address, "localhost")).await.is_err()
            }
        };
        // The first connection may have ended by now, and made room for another.
        assert!(refused || outcome != Outcome::Answered(503), "{version:?}");
        client.ended().await;
        drop(client);
        connections(&server.handle, 0).await;
    }
}

/// Connections end one after another, from the oldest on, and no more of them than it takes.
#[tokio::test]
async fn idle_connections_end_oldest_first() {
    /// Connections that have room.
    const ROOM: usize = 4;

    // What one takes is known to the server alone.
    let one = {
        let server = serve(Router::new(), |_| {});
        let mut client = Client::connect(Version::Http2, server.address()).await;
        assert_eq!(client.ask("/").await, Outcome::Answered(200));
        server.handle.memory()
    };
    let server = serve(Router::new(), |limits| {
        // An eighth below it, there is room for four.
        limits.memory = one * ROOM as u64 + one * 3 / 4;
    });
    let mut clients = Vec::new();
    for index in 0..=ROOM {
        let mut client = Client::connect(Version::Http2, server.address()).await;
        let is_served = client.ask("/").await == Outcome::Answered(200);
        assert_eq!(is_served, index < ROOM, "client {index}");
        clients.push(client);
    }
    let mut others = clients.split_off(1);
    clients[0].ended().await;
    connections(&server.handle, ROOM).await;
    // The others go on, the last one too.
    for client in &mut others {
        soon(async { while client.ask("/").await != Outcome::Answered(200) {} }).await;
    }
    assert_eq!(server.handle.connections(), ROOM);
}

/// A flood of connections that have no place takes no memory, so that those which have one are served.
#[tokio::test]
async fn connections_that_are_refused_do_not_count() {
    let server = serve(Router::new(), |limits| {
        limits.tcp_connections = 1;
        limits.memory = 1 << 20;
    });
    let mut client = Client::connect(Version::Http2, server.address()).await;
    for _ in 0..50 {
        let mut refused = TcpStream::connect(server.address()).await.unwrap();
        let end = soon(refused.read(&mut [0])).await;
        assert!(!matches!(end, Ok(1..)));
    }
    assert_eq!(client.ask("/").await, Outcome::Answered(200));
}

/// Large fields count from when they come until the response has ended, so that others are not served meanwhile.
#[tokio::test]
async fn large_fields_count_until_their_response_ends() {
    for version in VERSIONS {
        let fields = match version {
            Version::Http1 => 90,
            Version::Http2 | Version::Http3 => 1500,
        };
        let mut budget = u64::MAX;
        for is_bounded in [false, true] {
            let release = Arc::new(Notify::new());
            let held = release.clone();
            let router = Router::new().route("/held", get(async move || held.notified().await));
            let server = serve(router, |limits| limits.memory = budget);
            let (handle, address) = (&server.handle, server.address());
            let mut client = Client::connect(version, address).await;
            let mut other = Client::connect(version, address).await;
            for client in [&mut client, &mut other] {
                assert_eq!(client.ask("/").await, Outcome::Answered(200));
            }
            soon(async {
                while handle.census().entries("requests") > 0 {
                    tokio::task::yield_now().await;
                }
            })
            .await;
            let before = handle.memory();
            let asked = client.send_with("/held", fields).await.unwrap();
            soon(async {
                while handle.memory() < before + 72 * fields as u64 {
                    tokio::task::yield_now().await;
                }
            })
            .await;
            if is_bounded {
                assert_ne!(other.ask("/").await, Outcome::Answered(200), "{version:?}");
            } else {
                budget = before.midpoint(handle.memory());
                assert_eq!(other.ask("/").await, Outcome::Answered(200), "{version:?}");
            }
            release.notify_one();
            assert_eq!(client.take(asked).await, Outcome::Answered(200));
            soon(async {
                while handle.memory() > before {
                    tokio::task::yield_now().await;
                }
            })
            .await;
            soon(async { while client.ask("/").await != Outcome::Answered(200) {} }).await;
        }
    }
}
