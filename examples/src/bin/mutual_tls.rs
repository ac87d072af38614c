//! A service for clients with certificates, over all versions. Whose certificate is in the revocation list is no longer
//! let in as soon as the file has changed.

use std::{path::PathBuf, time::Duration};

use axum::{Router, routing::get};
use clap::Parser;
use hybriq::{Identity, ServerConfig, Trust, error::ConfigError, tls::ClientAuth};
use hybriq_examples::Failure;
use hybriq_http::{Peer, Server};

/// Greets clients that have a valid certificate.
#[derive(Debug, clap::Parser)]
struct Args {
    #[command(flatten)]
    server: hybriq_examples::Server,
    /// PEM file with the authority of the clients.
    #[arg(long)]
    clients: PathBuf,
    /// PEM file with the revocation list of that authority.
    #[arg(long)]
    revoked: PathBuf,
    /// Milliseconds between two looks at both.
    #[arg(long, default_value_t = 10_000)]
    look: u64,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = Args::parse();
    let identity: Identity = args.server.identity()?;
    let files = [args.clients.clone(), args.revoked.clone()];
    let config = move || {
        let trust = Trust::roots_pem_file(&args.clients)?;
        let trust = trust.revocation_lists_pem_file(&args.revoked)?;
        let config = ServerConfig::new(identity.clone());
        Ok::<_, ConfigError>(config.client_auth(ClientAuth::Required(trust)))
    };
    let server = Server::bind(args.server.listen, config()?)?;
    println!("listening on {}", server.local_address());
    let handle = server.handle();
    let look = Duration::from_millis(args.look);
    // A reload ends the sessions of clients with certificates: each is verified anew.
    tokio::spawn(async move { handle.watch(files, look, config).await });
    let app = Router::new().fallback(get(async |peer: axum::Extension<Peer>| {
        let certificates = &peer.tls.client_certificates;
        format!(
            "your certificate has {} bytes\n",
            certificates.first().map_or(0, |first| first.len())
        )
    }));
    Ok(server.serve(app).await?)
}
