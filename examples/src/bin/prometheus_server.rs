//! Echoes everything that clients send, and shows the metrics of all workers to Prometheus:
//! `curl http://127.0.0.1:9090/metrics`. `examples/dashboards/hybriq.json` shows them in Grafana.

use std::net::SocketAddr;

use clap::Parser;
use hybriq::{
    Connection, Endpoint, Incoming, KeyExchange, ServerConfig, Workers, fleet::Placement,
};
use hybriq_examples::{Failure, prometheus};

/// An echo server with metrics.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    server: hybriq_examples::Server,
    /// TCP address of the page for Prometheus. Do not show it to the world.
    #[arg(long, default_value = "127.0.0.1:9090")]
    metrics: SocketAddr,
    /// Name of the endpoint in the metrics.
    #[arg(long, default_value = "echo")]
    name: String,
    /// Refuse clients without a post-quantum group.
    #[arg(long)]
    require: bool,
}

// The workers have threads of their own: this runtime only accepts, and answers Prometheus.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let args = Args::parse();
    // Before the endpoint: what it reports before has no recorder.
    let recorder = prometheus::install()?;
    let policy = if args.require {
        KeyExchange::RequirePostQuantum
    } else {
        KeyExchange::PreferPostQuantum
    };
    let config = ServerConfig::new(args.server.identity()?)
        .alpn(["echo"])
        .key_exchange(policy);
    let server = Endpoint::builder()
        .server(config)
        .name(args.name)
        .workers(Workers::PerCore)
        .placement(Placement::Threads)
        .bind(args.server.listen)?;
    println!("listening on {}", server.local_address());
    let page = prometheus::answer(args.metrics, recorder).await?;
    println!("metrics on http://{page}/metrics");

    while let Some(incoming) = server.accept().await {
        tokio::spawn(accept(incoming));
    }
    Ok(())
}

/// Serves a client on the thread of its worker. The metrics count those that fail.
async fn accept(incoming: Incoming) {
    if let Ok(connection) = incoming.accept().await {
        connection.clone().spawn(echo(connection));
    }
}

async fn echo(connection: Connection) {
    while let Ok(Some((mut send, mut recv))) = connection.accept_bidi().await {
        connection.spawn(async move {
            // A stream that fails is dropped unfinished, which resets it: no truncated echo.
            if tokio::io::copy(&mut recv, &mut send).await.is_ok() {
                send.finish();
            }
        });
    }
}
