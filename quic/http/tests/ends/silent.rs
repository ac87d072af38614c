//! Bodies that say nothing for long, and whose receiver has lost interest.

use std::time::Duration;

use axum::{Router, body::Bytes, routing::any};
use http::{Method, Request, StatusCode, Version};
use hybriq::TransportConfig;
use hybriq_http::Server;

use crate::{
    common::{Asker, Guards, Silent, VERSIONS},
    early::until,
    support::{Certificate, Http3, Running, post, run, run_with, soon},
};

/// A server whose responses say nothing, or begin and go on with nothing; and one that does not answer.
fn server(guards: &Guards) -> Running {
    let [silent, begun, deaf] = [guards.make(), guards.make(), guards.make()];
    let router = Router::new()
        .route("/silent", any(async move || Silent::body(b"", silent())))
        .route("/begun", any(async move || Silent::body(b"hello", begun())))
        .route(
            "/deaf",
            any(async move || {
                let _guard = deaf();
                std::future::pending::<StatusCode>().await
            }),
        );
    let transport = TransportConfig::new().max_bidi_streams(20);
    let config = Certificate::shared().config().transport(transport);
    run_with(Server::builder(), config, router)
}

#[tokio::test]
async fn a_silent_response_is_dropped_when_its_client_is_gone() {
    let mut guards = Guards::new();
    let server = server(&guards);
    for version in VERSIONS {
        for path in ["/silent", "/begun", "/deaf"] {
            let what = (version, path);
            let mut client = Asker::new(version, server.address()).await;
            if path == "/deaf" {
                until("at rest", || {
                    server.handle.census().entries("requests") == 0
                })
                .await;
                let asked = client.ask(Method::GET, path, b"").await;
                until("it came", || {
                    server.handle.census().entries("requests") == 1
                })
                .await;
                asked.cancel();
            } else {
                drop(client.begin(path).await);
            }
            drop(client);
            guards.dropped(what).await;
        }
    }
    // Nobody waits for a client that has left.
    soon(server.handle.shutdown(Duration::from_secs(600))).await;
}

/// The connection goes on, and has room for more than its limit of streams.
#[tokio::test]
async fn responses_that_are_given_up_take_no_place() {
    let mut guards = Guards::new();
    let server = server(&guards);
    for version in [Version::HTTP_2, Version::HTTP_3] {
        let mut client = Asker::new(version, server.address()).await;
        for number in 0..60 {
            let path = ["/silent", "/begun"][number % 2];
            drop(client.begin(path).await);
            guards.dropped((version, number)).await;
        }
        assert_eq!(server.handle.connections(), 1, "{version:?}");
        drop(client);
    }
    soon(server.handle.shutdown(Duration::from_secs(600))).await;
}

/// A client that closes its connection, and one that stops a stream by itself.
#[tokio::test]
async fn a_silent_response_over_http3_ends_with_its_stream_and_its_connection() {
    let mut guards = Guards::new();
    let server = server(&guards);
    for path in ["/silent", "/begun"] {
        for stop in [true, false] {
            let mut client = Http3::connect(server.address()).await;
            let request = Request::get(format!("https://localhost{path}"));
            let request = request.body(()).unwrap();
            let mut stream = soon(client.requests.send_request(request)).await.unwrap();
            soon(stream.finish()).await.unwrap();
            soon(stream.recv_response()).await.unwrap();
            if stop {
                stream.stop_sending(h3::error::Code::H3_REQUEST_CANCELLED);
            } else {
                client.connection.close(0x100, b"");
            }
            guards.dropped((path, stop)).await;
        }
    }
    soon(server.handle.shutdown(Duration::from_secs(600))).await;
}

/// The body of a request ends when the server needs no more of it, or when the response is dropped.
#[tokio::test]
async fn a_silent_request_is_dropped_when_its_server_needs_no_more() {
    let mut guards = Guards::new();
    let (all, none) = (guards.make(), guards.make());
    let wait = async move |body: axum::body::Body| {
        // Kept, and not read.
        let _kept = body;
        let _guard = none();
        std::future::pending::<StatusCode>().await
    };
    let router = Router::new()
        .route("/refused", any(async || StatusCode::FORBIDDEN))
        .route("/begun", any(async move || Silent::body(b"hello", all())))
        .route("/wait", any(wait));
    let server = run(router);
    for version in [Version::HTTP_2, Version::HTTP_3] {
        let client = match Asker::new(version, server.address()).await {
            Asker::Pooled(client, _) => client,
            Asker::Tcp(_) => unreachable!(),
        };
        let mut sent = Guards::new();
        let make = sent.make();
        let ask = |path: &str| {
            let uri = format!("https://localhost:{}{path}", server.address().port());
            let body = Silent::raw(b"hello", make());
            client.request(Request::post(uri).body(body).unwrap())
        };
        // The whole response comes, and with it the news that the rest is not needed.
        let refused = soon(ask("/refused")).await.unwrap();
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
        let all = soon(refused.into_body().bytes(1000)).await.unwrap();
        assert_eq!(all, Bytes::new());
        sent.dropped((version, "the server has answered")).await;
        let begun = soon(ask("/begun")).await.unwrap();
        drop(begun);
        sent.dropped((version, "the response was dropped")).await;
        guards.dropped((version, "the response was dropped")).await;
        until("at rest", || {
            server.handle.census().entries("requests") == 0
        })
        .await;
        let waiting = tokio::spawn(ask("/wait"));
        until("it came", || {
            server.handle.census().entries("requests") == 1
        })
        .await;
        waiting.abort();
        sent.dropped((version, "the request was given up")).await;
        guards.dropped((version, "the request was given up")).await;
        let left = |table| client.census().entries(table);
        until("the client rests", || {
            left("uploads") + left("exchanges") == 0
        })
        .await;
    }
    let mut client = Http3::connect(server.address()).await;
    assert_eq!(client.ask(post("/", "fine")).await.unwrap().body(), "fine");
}
