//! Clients, and what they ask.

use std::net::SocketAddr;

use axum::{Router, routing::any};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header::ALT_SVC};
use http_body_util::Full;
use hybriq::{ClientConfig, Trust};
use hybriq_http::{Body, Client, ClientBuilder, ClientError, Http3, Peer};

use crate::support::{Certificate, soon};

pub(crate) fn config() -> ClientConfig {
    ClientConfig::new().trust(Trust::roots_der([Certificate::shared().der()]))
}

/// A client that finds `localhost` at 127.0.0.1.
pub(crate) fn client_with(builder: ClientBuilder, config: ClientConfig) -> Client {
    let builder = builder.resolve("localhost", [SocketAddr::from(([127, 0, 0, 1], 0))]);
    builder.build(config).unwrap()
}

pub(crate) fn client(http3: Http3) -> Client {
    client_with(Client::builder().http3(http3), config())
}

pub(crate) fn uri(server: SocketAddr, path: &str) -> String {
    format!("https://localhost:{}{path}", server.port())
}

pub(crate) async fn get(client: &Client, server: SocketAddr) -> Response<Body> {
    soon(client.get(uri(server, "/"))).await.unwrap()
}

pub(crate) fn request(method: Method, uri: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body.into()));
    *request.method_mut() = method;
    *request.uri_mut() = uri.parse().unwrap();
    request
}

pub(crate) async fn post(
    client: &Client,
    server: SocketAddr,
    body: impl Into<Bytes>,
) -> Result<Response<Body>, ClientError> {
    soon(client.request(request(Method::POST, &uri(server, "/"), body))).await
}

pub(crate) fn peer(response: &Response<Body>) -> Peer {
    response.extensions().get::<Peer>().unwrap().clone()
}

pub(crate) async fn bytes(response: Response<Body>) -> Bytes {
    soon(response.into_body().bytes(100 << 20)).await.unwrap()
}

/// A page that offers alternatives of its own, and answers with the body of the request.
pub(crate) fn offering(offer: &str) -> Router {
    let offer = HeaderValue::try_from(offer).unwrap();
    let echo = move |body: Bytes| std::future::ready(([(ALT_SVC, offer.clone())], body));
    Router::new().route("/", any(echo))
}

/// Asks until an answer comes over HTTP/3.
pub(crate) async fn until_http3(client: &Client, server: SocketAddr) {
    soon(async { while get(client, server).await.version() != http::Version::HTTP_3 {} }).await;
}
