//! A reverse proxy: all versions outside, HTTP/2 or HTTP/1.1 to one upstream. Bodies and trailers stream both ways; fields
//! of a connection stay on it (RFC 9110 §7.6.1). The upstream gets the client's host, and its address (RFC 7239).

use std::time::Duration;

use axum::{Router, body::Body, extract::Request, response::Response};
use clap::Parser;
use http::header::{ALT_SVC, CONNECTION, FORWARDED, HOST, TE, TRANSFER_ENCODING, UPGRADE, VIA};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, uri::Authority};
use http_body_util::{BodyExt as _, Limited};
use hybriq::{ClientConfig, ServerConfig, Trust};
use hybriq_examples::Failure;
use hybriq_http::{Client, Http3, Peer, Server};
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
    let server = ServerConfig::new(args.server.identity()?);
    let server = Server::bind(args.server.listen, server)?;
    println!("listening on {}", server.local_address());
    let patience = Duration::from_millis(args.patience);
    let app = Router::new().fallback(async move |request| {
        match timeout(patience, forward(&client, args.upstream, request)).await {
            Ok(forwarded) => forwarded.ok_or(StatusCode::BAD_GATEWAY),
            Err(_) => Err(StatusCode::GATEWAY_TIMEOUT),
        }
    });
    Ok(server.serve(app).await?)
}

async fn forward(client: &Client, upstream: Authority, request: Request) -> Option<Response> {
    let (mut parts, mut body) = request.into_parts();
    // The client makes it `:authority` over HTTP/2. A request over HTTP/1.1 has it, whatever `connection` says.
    let host = match parts.uri.authority() {
        Some(host) => host.as_str().parse().ok()?,
        None => parts.headers.get(HOST)?.clone(),
    };
    remove_hop_by_hop(&mut parts.headers);
    parts.headers.insert(HOST, host);
    let via = HeaderValue::from_static("1.1 hybriq-proxy");
    parts.headers.append(VIA, via);
    if let Some(peer) = parts.extensions.get::<Peer>() {
        let from = format!("for=\"{}\";proto=https", peer.address);
        parts.headers.insert(FORWARDED, from.parse().ok()?);
    }
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let uri = Uri::builder().scheme("https").authority(upstream);
    parts.uri = uri.path_and_query(path).build().ok()?;
    // The end may come after the fields, and HTTP/1.1 announces a body whose end it does not know.
    if parts.method.is_safe() {
        let whole = Limited::new(body, 64 << 10).collect().await;
        body = whole.ok()?.to_bytes().into();
    }
    let request = Request::from_parts(parts, body);
    let mut response = client.request(request).await.ok()?.map(Body::new);
    remove_hop_by_hop(response.headers_mut());
    Some(response)
}

/// Removes fields that belong to the connection, and the upstream's own HTTP/3.
fn remove_hop_by_hop(fields: &mut HeaderMap) {
    let named = fields.get_all(CONNECTION).iter();
    let named: Vec<_> = named.map(HeaderValue::as_bytes).collect();
    for name in named.join(&b","[..]).split(|byte| *byte == b',') {
        if let Ok(name) = HeaderName::from_bytes(name.trim_ascii()) {
            fields.remove(name);
        }
    }
    for name in [CONNECTION, TE, TRANSFER_ENCODING, UPGRADE, ALT_SVC] {
        fields.remove(name);
    }
    fields.remove("keep-alive");
    fields.remove("proxy-connection");
}
