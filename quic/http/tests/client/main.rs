//! The client, against servers of this crate.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::net::SocketAddr;

use axum::Router;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Version};
use http_body_util::Full;
use hybriq::{ClientConfig, Trust};
use hybriq_http::{Body, Client, ClientBuilder, ClientError, Http3, Peer};
use support::{Certificate, run, soon};

fn config() -> ClientConfig {
    ClientConfig::new().trust(Trust::roots_der([Certificate::shared().der()]))
}

/// A client for whom `localhost` is a server's address.
fn client(builder: ClientBuilder, server: SocketAddr) -> Client {
    let builder = builder.resolve("localhost", [SocketAddr::new(server.ip(), 0)]);
    builder.build(config()).unwrap()
}

fn uri(server: SocketAddr, path: &str) -> String {
    format!("https://localhost:{}{path}", server.port())
}

async fn get(client: &Client, server: SocketAddr) -> Response<Body> {
    soon(client.get(uri(server, "/"))).await.unwrap()
}

async fn send(
    client: &Client,
    method: Method,
    uri: String,
    body: impl Into<Bytes>,
) -> Result<Response<Body>, ClientError> {
    let mut request = Request::new(Full::new(body.into()));
    *request.method_mut() = method;
    *request.uri_mut() = uri.parse().unwrap();
    soon(client.request(request)).await
}

fn peer(response: &Response<Body>) -> Peer {
    response.extensions().get::<Peer>().unwrap().clone()
}

async fn bytes(response: Response<Body>) -> Bytes {
    soon(response.into_body().bytes(10 << 20)).await.unwrap()
}

#[tokio::test]
async fn requests_go_over_http3_alone() {
    let server = run(Router::new());
    let client = client(Client::builder().http3(Http3::Only), server.address());
    let mut ports = Vec::new();
    for len in [0, 5, 100_000] {
        let body = vec![7; len];
        let sent = send(
            &client,
            Method::POST,
            uri(server.address(), "/"),
            body.clone(),
        )
        .await;
        let response = sent.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.version(), Version::HTTP_3);
        let peer = peer(&response);
        assert_eq!(peer.address, server.address());
        assert_eq!(peer.version, Version::HTTP_3);
        assert_eq!(peer.tls.to_string(), "X25519MLKEM768");
        assert_eq!(peer.tls.server_certificates, [Certificate::shared().der()]);
        assert!(!peer.early);
        ports.push(response.headers()["x-peer"].clone());
        assert!(bytes(response).await == body, "{len} bytes");
    }
    // One connection.
    ports.dedup();
    assert_eq!(ports.len(), 1);
}

#[tokio::test]
async fn requests_go_over_http2_where_http3_is_off() {
    let server = run(Router::new());
    let client = client(Client::builder().http3(Http3::Off), server.address());
    let mut ports = Vec::new();
    for len in [0, 5, 100_000] {
        let body = vec![7; len];
        let sent = send(
            &client,
            Method::POST,
            uri(server.address(), "/"),
            body.clone(),
        )
        .await;
        let response = sent.unwrap();
        let peer = peer(&response);
        assert_eq!(peer.version, Version::HTTP_2);
        assert_eq!(peer.tls.group.unwrap().to_string(), "X25519MLKEM768");
        ports.push(response.headers()["x-peer"].clone());
        assert!(bytes(response).await == body, "{len} bytes");
    }
    ports.dedup();
    assert_eq!(ports.len(), 1);
}

/// The first answer over HTTP/2 offers HTTP/3, which later requests use.
#[tokio::test]
async fn an_offer_of_http3_is_taken() {
    let server = run(Router::new());
    let client = client(Client::builder(), server.address());
    assert_eq!(
        get(&client, server.address()).await.version(),
        Version::HTTP_2
    );
    soon(async { while get(&client, server.address()).await.version() != Version::HTTP_3 {} })
        .await;
    assert_eq!(
        get(&client, server.address()).await.version(),
        Version::HTTP_3
    );
}
