//! The budget of memory.

use axum::Router;
use hybriq::Endpoint;

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
