//! The budget of memory.

use std::sync::Arc;

use axum::{
    Router,
    extract::Request,
    routing::{any, get},
};
use http::Version as Protocol;
use hybriq::Endpoint;
use hybriq_http::{Server, Upgrade};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Notify,
};

use crate::{
    client::{Client, Outcome, VERSIONS, Version, connections},
    serve,
    support::{Certificate, agreed, client_config, connect_tls, run_with, soon, upgrade},
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

/// What comes on a tunnel over HTTP/2 counts until it is read, in whatever parts, or dropped with the tunnel.
#[tokio::test]
async fn a_tunnel_counts_for_what_is_not_read() {
    /// Frames that come before they are read.
    const FRAMES: usize = 64;
    /// Bytes that a frame counts for at least.
    const LEAST: u64 = 8 << 10;
    const LEN: usize = 256;

    let (read, ready) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (turn, done) = (read.clone(), ready.clone());
    let router = any(async move |mut request: Request| {
        let upgrade = request.extensions_mut().remove::<Upgrade>().unwrap();
        tokio::spawn(async move {
            let mut stream = upgrade.upgraded().await.unwrap();
            turn.notified().await;
            let mut parts = [[0; LEN / 4]; 3 * FRAMES];
            for part in &mut parts {
                stream.read_exact(part).await.unwrap();
            }
            done.notify_one();
            turn.notified().await;
            stream.read_exact(&mut [0; FRAMES * LEN / 4]).await.unwrap();
            done.notify_one();
            turn.notified().await;
        });
        agreed(Protocol::HTTP_2)
    });
    let builder = Server::builder().extended_connect();
    let config = Certificate::shared().config();
    let server = run_with(builder, config, Router::new().route("/", router));
    let mut stream = upgrade(Protocol::HTTP_2, server.address(), "/").await;
    let counted = async |least: u64, most: u64| {
        let is_counted = |bytes| least <= bytes && bytes <= most;
        soon(async {
            while !is_counted(server.handle.memory()) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    };
    let mut send = async || {
        for _ in 0..FRAMES {
            stream.write_all(&[0; LEN]).await.unwrap();
            stream.flush().await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let entries = |what| server.handle.census().entries(what);
    soon(async {
        while entries("requests") > 0 || entries("tasks of requests") != 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let before = server.handle.memory();
    send().await;
    let all = before + FRAMES as u64 * LEAST;
    counted(all, all).await;
    read.notify_one();
    soon(ready.notified()).await;
    let quarter = before + FRAMES as u64 / 4 * LEAST;
    counted(quarter, quarter).await;
    read.notify_one();
    soon(ready.notified()).await;
    counted(before, before).await;
    send().await;
    counted(all, all).await;
    read.notify_one();
    counted(0, before).await;
}
