//! A reverse proxy: all versions outside, HTTP/2 or HTTP/1.1 to one upstream, WebSocket included. Bodies and trailers stream
//! both ways; fields of a connection stay on it (RFC 9110 §7.6.1). The upstream gets the client's host and address (RFC 7239).

use std::time::Duration;

use axum::{Router, body::Body, extract::Request, response::Response};
use clap::Parser;
use http::header::{FORWARDED, HeaderValue, VIA};
use http::{StatusCode, Uri, uri::Authority};
use http_body_util::{BodyExt as _, Limited};
use hybriq::{ClientConfig, ServerConfig, Trust};
use hybriq_examples::Failure;
use hybriq_http::{Client, Forward, Http3, Peer, Server};
use tokio::time::timeout;

/// Passes requests on to an upstream, whose certificate the system must trust.
#[derive(Debug, clap::Parser)]
struct Args {
    #[command(flatten)]
    server: hybriq_examples::Server,
    /// Host and port of the upstream, which is asked over TLS.
    upstream: Authority,
    /// Milliseconds from the request's fields to the response's: for the client's body, and for the upstream.
    #[arg(long, default_value_t = 30_000)]
    patience: u64,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = Args::parse();
    let client = Client::builder().http3(Http3::Off).max_connections(8);
    let client = client.build(ClientConfig::new().trust(Trust::platform()))?;
    let config = ServerConfig::new(args.server.identity()?);
    let server = Server::builder().extended_connect();
    let server = server.bind(args.server.listen, config)?;
    println!("listening on {}", server.local_address());
    let patience = Duration::from_millis(args.patience);
    let app = Router::new().fallback(async move |request| {
        let answer = timeout(patience, forward(&client, args.upstream, request)).await;
        answer.unwrap_or(Err(StatusCode::GATEWAY_TIMEOUT))
    });
    Ok(server.serve(app).await?)
}

async fn forward(
    client: &Client,
    upstream: Authority,
    request: Request,
) -> Result<Response, StatusCode> {
    let mut forward = Forward::of(request)?;
    let request = forward.request_mut();
    let path = request.uri().path_and_query();
    let path = path.map_or("/", |path| path.as_str());
    let uri = Uri::builder().scheme("https").authority(upstream);
    let uri = uri.path_and_query(path).build();
    *request.uri_mut() = uri.map_err(|_| StatusCode::BAD_REQUEST)?;
    let via = HeaderValue::from_static("1.1 hybriq-proxy");
    request.headers_mut().append(VIA, via);
    if let Some(peer) = request.extensions().get::<Peer>() {
        let from = format!("for=\"{}\";proto=https", peer.address);
        let from = from.parse().map_err(|_| StatusCode::BAD_REQUEST)?;
        request.headers_mut().insert(FORWARDED, from);
    }
    // The end may come after the fields, and HTTP/1.1 announces a body whose end it does not know.
    if request.method().is_safe() {
        let body = std::mem::take(request.body_mut());
        let whole = Limited::new(body, 64 << 10).collect().await;
        let whole = whole.map_err(|_| StatusCode::BAD_REQUEST)?;
        *request.body_mut() = whole.to_bytes().into();
    }
    let response = forward.send(client).await;
    let response = response.map_err(|error| {
        eprintln!("{error}");
        StatusCode::BAD_GATEWAY
    })?;
    Ok(response.map(Body::new))
}
