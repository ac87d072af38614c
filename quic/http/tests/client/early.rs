//! Requests in 0-RTT packets.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Extension, Router, routing::get as on_get};
use http::StatusCode;
use hybriq::{TransportConfig, fleet::Tickets};
use hybriq_http::{Client, EarlyMethods, Http3, Limits, Peer, Server};

use crate::{
    common::{bytes, client_with, config, get, peer, post, uri},
    support::{Certificate, Running, run_with, soon},
};

/// A server that would answer unsafe requests in 0-RTT packets, too.
fn server(router: Router) -> Running {
    let config = Certificate::shared().config().accept_early_data();
    let mut limits = Limits::default();
    limits.early_methods = EarlyMethods::All;
    run_with(Server::builder().limits(limits), config, router)
}

/// A client that knows the server, and has no connection to it.
async fn returning(server: &Running) -> Client {
    let builder = Client::builder().http3(Http3::Only);
    let client = client_with(builder, config().offer_early_data());
    let first = post(&client, server.address(), "ticket").await.unwrap();
    assert!(!peer(&first).early);
    assert_eq!(bytes(first).await, "ticket");
    client.close_idle();
    client
}

#[tokio::test]
async fn safe_requests_alone_are_sent_early() {
    let server = server(Router::new());
    let client = returning(&server).await;
    let response = get(&client, server.address()).await;
    assert_eq!(response.headers()["x-early"], "true");
    let early = peer(&response);
    assert!(early.early && early.tls.resumed);
    // The connection is an ordinary one now.
    let later = get(&client, server.address()).await;
    assert_eq!(later.headers()["x-early"], "false");
    assert!(!peer(&later).early);
    client.close_idle();
    let response = post(&client, server.address(), "unsafe").await.unwrap();
    assert_eq!(response.headers()["x-early"], "false");
    assert!(peer(&response).tls.resumed);
    assert_eq!(bytes(response).await, "unsafe");
}

/// Many requests at once share the early connection, and the unsafe ones among them wait.
#[tokio::test]
async fn requests_at_once_share_an_early_connection() {
    let server = server(Router::new());
    let client = returning(&server).await;
    let safe = (0..20).map(|_| get(&client, server.address()));
    let unsafe_ones = (0..20).map(|_| post(&client, server.address(), "x"));
    let (safe, unsafe_ones) = tokio::join!(
        futures_util::future::join_all(safe),
        futures_util::future::join_all(unsafe_ones),
    );
    assert!(
        safe.iter()
            .any(|response| response.headers()["x-early"] == "true")
    );
    for response in unsafe_ones {
        assert_eq!(response.unwrap().headers()["x-early"], "false");
    }
}

/// A server that answers 425 gets the request again after the handshake (RFC 8470 §5.2).
#[tokio::test]
async fn a_request_that_came_too_early_is_sent_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let careful = move |Extension(peer): Extension<Peer>| {
        count.fetch_add(1, Ordering::Relaxed);
        std::future::ready(if peer.early {
            StatusCode::TOO_EARLY
        } else {
            StatusCode::OK
        })
    };
    let always = || async { StatusCode::TOO_EARLY };
    let router = Router::new().route("/careful", on_get(careful));
    let server = server(router.route("/always", on_get(always)));
    let client = returning(&server).await;
    let response = soon(client.get(uri(server.address(), "/careful")))
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(!peer(&response).early);
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    // The answer to a request that was not early is the answer.
    let response = soon(client.get(uri(server.address(), "/always")))
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::TOO_EARLY);
}

/// A server that has forgotten its sessions refuses early data. The requests are sent again.
#[tokio::test]
async fn refused_early_data_is_sent_again() {
    let server = server(Router::new());
    let client = returning(&server).await;
    // Tickets of other keys, as in another process.
    let config = Certificate::shared().config().accept_early_data();
    let config = config.tickets(Tickets::new());
    server.handle.reload(config).unwrap();
    let responses = (0..10).map(|_| get(&client, server.address()));
    for response in futures_util::future::join_all(responses).await {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["x-early"], "false");
        assert!(!peer(&response).tls.resumed);
    }
}

/// Early requests do not wait for a path that is dead: they are sent again over TCP.
#[tokio::test]
async fn early_requests_leave_a_dead_path() {
    let server = server(Router::new());
    let front = crate::front::Front::of(server.address()).await;
    let minute = Duration::from_secs(60);
    let builder = Client::builder().http3(Http3::First);
    let builder = builder.connect_timeout(minute);
    let transport = TransportConfig::new().handshake_timeout(minute);
    let config = config().offer_early_data().transport(transport);
    let client = client_with(builder, config);
    let first = post(&client, front.address, "ticket").await.unwrap();
    assert_eq!(first.version(), http::Version::HTTP_3);
    assert_eq!(bytes(first).await, "ticket");
    client.close_idle();
    front.cut_udp();
    let response = get(&client, front.address).await;
    assert_eq!(response.version(), http::Version::HTTP_2);
}
