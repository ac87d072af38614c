//! A web server over HTTP/1.1, HTTP/2 and HTTP/3 on one port: a page and JSON that tell visitors what was
//! negotiated, files with ranges, and an upload. The access log says how the keys were exchanged.
//!
//! SIGHUP reads the certificate again for new connections; a bad pair leaves the old one. SIGTERM or SIGINT
//! answers the requests in progress, for at most `--drain` seconds, and ends.

use std::path::PathBuf;
use std::time::Duration;

use axum::response::{Html, Json};
use axum::routing::{get, post};
use axum::{Extension, Router, body::Body, http::StatusCode};
use clap::Parser;
use http_body_util::BodyExt as _;
use hybriq::ServerConfig;
use hybriq_examples::{Failure, Server};
use hybriq_http::{AccessLog, Peer};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tower_http::services::ServeDir;

/// Serves a page, files and an upload over HTTP/1.1, HTTP/2 and HTTP/3.
#[derive(Debug, clap::Parser)]
struct Args {
    #[command(flatten)]
    server: Server,
    /// Folder whose files are served below /files.
    #[arg(long, default_value = ".")]
    files: PathBuf,
    /// Seconds that requests have to finish after SIGTERM.
    #[arg(long, default_value_t = 5)]
    drain: u64,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = Args::parse();
    let mut hangup = signal(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let app = Router::new()
        .route("/", get(page))
        .route("/connection", get(connection))
        .route("/upload", post(upload))
        .nest_service("/files", ServeDir::new(&args.files))
        .layer(AccessLog::new(|entry| println!("{entry}")));
    let config = || Ok::<_, Failure>(ServerConfig::new(args.server.identity()?));
    let server = hybriq_http::Server::bind(args.server.listen, config()?)?;
    println!("listening on {}", server.local_address());
    let handle = server.handle();
    let serving = tokio::spawn(server.serve(app));
    loop {
        tokio::select! {
            _ = hangup.recv() => match config().and_then(|config| Ok(handle.reload(config)?)) {
                Ok(()) => println!("reloaded"),
                Err(error) => println!("not reloaded, the old certificate stays: {error:?}"),
            },
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    println!("draining for at most {} s", args.drain);
    handle.shutdown(Duration::from_secs(args.drain)).await;
    serving.await??;
    Ok(())
}

/// Returns a page that tells the visitor what was negotiated.
async fn page(Extension(peer): Extension<Peer>) -> Html<String> {
    let group = peer
        .tls
        .group
        .map_or("?".to_owned(), |group| group.to_string());
    let kind = if peer.tls.is_post_quantum() {
        ""
    } else {
        "not "
    };
    Html(format!(
        "<!doctype html><title>hybriq</title>\n<h1>this connection is {kind}post-quantum: {group}</h1>\n\
         <p>{:?} from {}. After the first page a browser comes back over HTTP/3.</p>\n\
         <form method=post enctype=multipart/form-data action=/upload><input type=file name=file><input type=submit></form>\n\
         <p><a href=/connection>as JSON</a></p>\n",
        peer.version, peer.address,
    ))
}

/// Returns the same as JSON.
async fn connection(Extension(peer): Extension<Peer>) -> Json<Value> {
    let tls = &peer.tls;
    Json(json!({
        "version": format!("{:?}", peer.version),
        "address": peer.address.to_string(),
        "group": tls.group.map(|group| group.to_string()),
        "post_quantum": tls.is_post_quantum(),
        "lineage": tls.lineage.map(|lineage| format!("{lineage:?}")),
        "resumed": tls.resumed,
        "hello_retry": tls.hello_retry,
        "suite": tls.suite.map(|suite| suite.to_string()),
        "early_data": peer.early,
    }))
}

/// Counts the bytes of a body as they come, however many these are.
async fn upload(mut body: Body) -> Result<String, StatusCode> {
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| StatusCode::BAD_REQUEST)?;
        bytes += frame.data_ref().map_or(0, axum::body::Bytes::len);
    }
    Ok(format!("{bytes} bytes came\n"))
}
