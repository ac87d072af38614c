//! The number of requests of a connection, and the time without any.

use std::time::Duration;

use axum::{
    Extension, Router,
    routing::{any, get},
};
use hybriq_http::Upgrade;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::{
    client::{Client, Outcome, VERSIONS, Version, connections},
    serve,
    support::{agreed, connect_tls, soon},
};

/// A client that goes on after its last request is not served, and its connection ends.
#[tokio::test]
async fn a_connection_has_as_many_requests_as_the_limit_says() {
    for version in VERSIONS {
        let server = serve(Router::new(), |limits| {
            limits.requests = 5;
            limits.header_time = Duration::from_millis(500);
        });
        let mut client = Client::connect(version, server.address()).await;
        let mut answered = 0;
        loop {
            match client.ask("/").await {
                Outcome::Answered(status) => {
                    assert_eq!(status, 200, "{version:?}");
                    answered += 1;
                }
                Outcome::Refused => {}
                Outcome::Gone => break,
                Outcome::Reset(code) => panic!("{version:?}: {code}"),
            }
        }
        assert_eq!(answered, 5, "{version:?}");
        connections(&server.handle, 0).await;
    }
}

/// The last request of a connection of HTTP/1.1 may ask for another protocol, which then has the connection.
#[tokio::test]
async fn the_last_request_may_be_an_upgrade() {
    let echo = any(async |Extension(upgrade): Extension<Upgrade>| {
        tokio::spawn(async move {
            let mut stream = upgrade.upgraded().await.unwrap();
            let byte = stream.read_u8().await.unwrap();
            stream.write_u8(byte).await.unwrap();
            stream.flush().await.unwrap();
        });
        agreed(http::Version::HTTP_11)
    });
    let router = Router::new().route("/upgrade", echo);
    let server = serve(router, |limits| limits.requests = 1);
    let mut stream = connect_tls(server.address(), "http/1.1").await.unwrap();
    let asked =
        b"GET /upgrade HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    stream.write_all(asked).await.unwrap();
    stream.flush().await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(soon(stream.read_u8()).await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    assert!(head.contains("\r\nconnection: upgrade\r\n"), "{head}");
    assert!(!head.contains("close"), "{head}");
    stream.write_u8(7).await.unwrap();
    stream.flush().await.unwrap();
    assert_eq!(soon(stream.read_u8()).await.unwrap(), 7);
}

/// A client that goes on while its last response is under way is cut off after a number of requests, long before
/// [`Limits::drain_time`](hybriq_http::Limits::drain_time). Over HTTP/1.1, nobody reads what it sends.
#[tokio::test]
async fn a_flood_after_the_last_request_is_cut_off() {
    for version in [Version::Http2, Version::Http3] {
        let router = Router::new().route("/held", get(std::future::pending::<()>));
        let server = serve(router, |limits| {
            limits.requests = 1;
            limits.cancelled = 20;
        });
        let mut client = Client::connect(version, server.address()).await;
        let held = client.send("/held").await.unwrap();
        let mut sent = 0;
        soon(async {
            while client.send("/").await.is_some() {
                sent += 1;
            }
        })
        .await;
        assert!(sent >= 20 + 128, "{version:?}: some may be on their way");
        let code = client.ended().await;
        if version == Version::Http3 {
            assert_eq!(code, Some(0x107), "H3_EXCESSIVE_LOAD");
        }
        drop(held);
        connections(&server.handle, 0).await;
    }
}

/// A shutdown does not wait for a client that asks and asks.
#[tokio::test]
async fn a_client_that_asks_without_end_does_not_hold_up_a_shutdown() {
    for version in VERSIONS {
        let server = serve(Router::new(), |limits| {
            limits.header_time = Duration::from_millis(500);
        });
        let mut client = Client::connect(version, server.address()).await;
        assert_eq!(client.ask("/").await, Outcome::Answered(200));
        let handle = server.handle.clone();
        let hour = Duration::from_secs(3600);
        let shutdown = tokio::spawn(async move { handle.shutdown(hour).await });
        while client.ask("/").await != Outcome::Gone {}
        soon(shutdown).await.unwrap();
    }
}

/// A connection without requests ends, however busy its client is with PINGs.
#[tokio::test]
async fn a_connection_without_requests_ends() {
    for version in VERSIONS {
        let server = serve(Router::new(), |limits| {
            limits.idle_time = Duration::from_millis(200);
            limits.header_time = Duration::from_millis(500);
        });
        let mut client = Client::connect(version, server.address()).await;
        assert_eq!(client.ask("/").await, Outcome::Answered(200));
        let code = client.ended().await;
        let clean = match version {
            Version::Http1 => None,
            Version::Http2 => Some(0),
            Version::Http3 => Some(0x100),
        };
        assert_eq!(code, clean, "{version:?}");
        connections(&server.handle, 0).await;
    }
}

/// So does one on which no request comes at all.
#[tokio::test]
async fn a_connection_on_which_no_request_comes_ends() {
    for version in VERSIONS {
        let server = serve(Router::new(), |limits| {
            limits.header_time = Duration::from_millis(200);
        });
        let mut client = Client::connect(version, server.address()).await;
        client.ended().await;
        connections(&server.handle, 0).await;
    }
}

/// Times that no clock can count are as good as none.
#[tokio::test]
async fn times_may_be_of_any_length() {
    for version in VERSIONS {
        let server = serve(Router::new(), |limits| {
            limits.header_time = Duration::MAX;
            limits.stall_time = Duration::MAX;
            limits.idle_time = Duration::MAX;
            limits.drain_time = Duration::MAX;
        });
        let mut client = Client::connect(version, server.address()).await;
        for _ in 0..2 {
            assert_eq!(client.ask("/").await, Outcome::Answered(200), "{version:?}");
        }
    }
}
