//! The time that requests may take after the end of their connection was announced.

use std::time::Duration;

use axum::{Router, routing::get};

use crate::{
    client::{Client, VERSIONS, connections},
    serve,
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
