//! Requests whose fields do not come to their end.

use std::time::Duration;

use axum::{Router, routing::get};
use tokio::time::interval;

use crate::{
    client::{Client, Outcome, VERSIONS, Version, connections},
    serve,
    support::soon,
};

/// Not the first request alone has a time for its fields.
#[tokio::test]
async fn later_requests_have_the_same_time_for_their_fields() {
    for version in VERSIONS {
        let server = serve(Router::new(), |limits| {
            limits.header_time = Duration::from_millis(200);
        });
        let mut client = Client::connect(version, server.address()).await;
        assert_eq!(client.ask("/").await, Outcome::Answered(200), "{version:?}");
        let part = client.send_part().await;
        if version == Version::Http3 {
            let outcome = client.take(part).await;
            assert!(matches!(outcome, Outcome::Reset(_)), "{outcome:?}");
            assert_eq!(client.ask("/").await, Outcome::Answered(200));
        } else {
            client.closed().await;
            connections(&server.handle, 0).await;
        }
    }
}

/// Behind a field block that is not whole, nothing else comes over HTTP/2: not even a request that is under way keeps
/// the connection, however the rest trickles in.
#[tokio::test]
async fn over_http2_a_field_block_that_trickles_in_ends_its_connection() {
    let router = Router::new().route("/held", get(std::future::pending::<()>));
    let server = serve(router, |limits| {
        limits.header_time = Duration::from_millis(200);
    });
    let mut client = Client::connect(Version::Http2, server.address()).await;
    assert_eq!(client.ask("/").await, Outcome::Answered(200));
    let _held = client.send("/held").await.unwrap();
    let Client::Http2(mut client) = client else {
        unreachable!("a client of HTTP/2");
    };
    // The header of a frame of 16,000 bytes, which follow one by one.
    client.bytes(&[0, 0x3e, 0x80, 1, 4, 0, 0, 0, 99]).await;
    let mut ticks = interval(Duration::from_millis(20));
    soon(async {
        while client.bytes(&[0x82]).await {
            ticks.tick().await;
        }
    })
    .await;
    connections(&server.handle, 0).await;
}
