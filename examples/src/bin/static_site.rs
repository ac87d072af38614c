//! A static site under systemd, over HTTP/1.1, HTTP/2 and HTTP/3: sockets come from the service manager where there
//! are any, renewed certificates are found by themselves, and SIGTERM lets requests end.

use std::{path::PathBuf, time::Duration};

use axum::Router;
use clap::Parser;
use hybriq::{ServerConfig, fleet::ListenFds};
use hybriq_examples::{Failure, Service};
use hybriq_http::{AccessLog, Server};
use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};
use tower_http::services::ServeDir;

/// Serves the files of a folder.
#[derive(Debug, clap::Parser)]
struct Args {
    #[command(flatten)]
    service: Service,
    /// Folder to serve: all files in it, so that keys belong elsewhere.
    #[arg(long)]
    files: PathBuf,
    /// Milliseconds between two looks at the certificate.
    #[arg(long, default_value_t = 10_000)]
    look: u64,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let Args {
        service,
        files,
        look,
    } = Args::parse();
    // Before anything else: a signal that comes early must not kill the process.
    let mut terminate = signal(SignalKind::terminate())?;
    let watched = [service.cert.clone(), service.key.clone()];
    let (listen, drain) = (service.listen, service.drain());
    let config = move || service.identity().map(ServerConfig::new);
    let builder = Server::builder();
    let server = match std::env::var_os("LISTEN_FDS") {
        Some(_) => builder.listen_fds(ListenFds::take()?, config()?)?,
        None => builder.bind(listen, config()?)?,
    };
    println!("listening on {}", server.local_address());
    let handle = server.handle();
    let look = Duration::from_millis(look);
    tokio::spawn(async move { handle.watch(watched, look, config).await });
    let app = Router::new().fallback_service(ServeDir::new(files));
    let app = app.layer(AccessLog::new(|entry| println!("{entry}")));
    sd_notify::notify(&[NotifyState::Ready])?;
    let stop = async {
        terminate.recv().await;
        let _ = sd_notify::notify(&[NotifyState::Stopping]);
    };
    Ok(server.serve_until(app, stop, drain).await?)
}
