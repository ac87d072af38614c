//! A static site under systemd, over HTTP/1.1, HTTP/2 and HTTP/3: sockets come from the service manager where there
//! are any, renewed certificates are found by themselves, and SIGTERM lets requests end.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use axum::Router;
use clap::Parser;
use hybriq::{Identity, ServerConfig, error::ConfigError, fleet::ListenFds};
use hybriq_examples::Failure;
use hybriq_http::{AccessLog, Server};
use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};
use tower_http::services::ServeDir;

/// Serves the files of a folder.
#[derive(Debug, clap::Parser)]
struct Args {
    /// Address to listen on, by TCP and UDP, if systemd gives no sockets.
    #[arg(long, default_value = "[::]:4433")]
    listen: SocketAddr,
    /// PEM file with the certificate chain.
    #[arg(long)]
    cert: PathBuf,
    /// PEM file with the private key.
    #[arg(long)]
    key: PathBuf,
    /// Folder to serve: all files in it, so that keys belong elsewhere.
    #[arg(long)]
    files: PathBuf,
    /// Milliseconds between two looks at the certificate.
    #[arg(long, default_value_t = 10_000)]
    look: u64,
    /// Seconds that requests have to finish after SIGTERM.
    #[arg(long, default_value_t = 30)]
    drain: u64,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = Args::parse();
    // Before anything else: a signal that comes early must not kill the process.
    let mut terminate = signal(SignalKind::terminate())?;
    let files = [args.cert.clone(), args.key.clone()];
    let config = move || {
        let identity = Identity::from_pem_files(&args.cert, &args.key)?;
        Ok::<_, ConfigError>(ServerConfig::new(identity))
    };
    let builder = Server::builder();
    let server = match std::env::var_os("LISTEN_FDS") {
        Some(_) => builder.listen_fds(ListenFds::take()?, config()?)?,
        None => builder.bind(args.listen, config()?)?,
    };
    println!("listening on {}", server.local_address());
    let handle = server.handle();
    let look = Duration::from_millis(args.look);
    tokio::spawn(async move { handle.watch(files, look, config).await });
    let app = Router::new().fallback_service(ServeDir::new(args.files));
    let app = app.layer(AccessLog::new(|entry| println!("{entry}")));
    sd_notify::notify(&[NotifyState::Ready])?;
    let stop = async {
        terminate.recv().await;
        let _ = sd_notify::notify(&[NotifyState::Stopping]);
    };
    Ok(server
        .serve_until(app, stop, Duration::from_secs(args.drain))
        .await?)
}
