//! gRPC over HTTP/3: the health service of tonic (`grpc.health.v1`), served by hybriq-http and called by its
//! client. The same server answers gRPC over HTTP/2 as well, on the same port.

use clap::Parser;
use hybriq::{ClientConfig, ServerConfig};
use hybriq_examples::{Failure, Server};
use hybriq_http::{Client, Handle, Http3, Peer};
use std::time::Duration;
use tonic::Request;
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

/// Serves gRPC over HTTP/3, and makes a call.
#[derive(Debug, clap::Parser)]
struct Args {
    #[command(flatten)]
    server: Server,
    /// Serves until it is stopped, instead of ending after the call.
    #[arg(long)]
    stay: bool,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = Args::parse();
    let config = ServerConfig::new(args.server.identity()?);
    let server = hybriq_http::Server::bind(args.server.listen, config)?;
    println!("listening on {}", server.local_address());
    let handle = server.handle();
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter
        .set_service_status("example.Shop", ServingStatus::Serving)
        .await;
    let serving = tokio::spawn(server.serve(health));
    call(&args, &handle).await?;
    if args.stay {
        tokio::signal::ctrl_c().await?;
    }
    handle.shutdown(Duration::from_secs(5)).await;
    serving.await??;
    Ok(())
}

/// Asks the server, over HTTP/3 alone, whether a service of it is healthy.
async fn call(args: &Args, server: &Handle) -> Result<(), Failure> {
    let address = server.local_address();
    let config = ClientConfig::new().trust(args.server.trust()?);
    let client = Client::builder()
        .http3(Http3::Only)
        .resolve("localhost", [address])
        .build(config)?;
    let origin = format!("https://localhost:{}", address.port()).parse()?;
    let mut health = HealthClient::with_origin(client, origin);
    let service = "example.Shop".to_owned();
    let answer = health
        .check(Request::new(HealthCheckRequest { service }))
        .await?;
    let peer = answer
        .extensions()
        .get::<Peer>()
        .ok_or("no connection is known")?;
    let (version, tls) = (peer.version, peer.tls.clone());
    println!(
        "{} over {version:?}, with {tls}",
        answer.get_ref().status().as_str_name()
    );
    Ok(())
}
