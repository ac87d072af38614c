//! The size of a request's fields.

use axum::Router;

use crate::{
    client::{Client, Outcome, VERSIONS},
    serve,
};

/// A request whose fields are too large gets 431, and only that.
#[tokio::test]
async fn fields_beyond_the_limit_get_431() {
    for version in VERSIONS {
        let server = serve(Router::new(), |limits| limits.header_list = 2048);
        let mut client = Client::connect(version, server.address()).await;
        for (fields, status) in [(20, 200), (60, 431)] {
            let asked = client.send_with("/", fields).await.unwrap();
            let outcome = client.take(asked).await;
            assert_eq!(outcome, Outcome::Answered(status), "{version:?}, {fields}");
        }
        assert_eq!(client.ask("/").await, Outcome::Answered(200), "{version:?}");
    }
}
