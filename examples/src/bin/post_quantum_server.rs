//! Prints the negotiated key exchange of each connection. With `--require` it accepts only
//! post-quantum groups; a classical client is then refused with an error for that purpose.

use std::path::PathBuf;

use clap::Parser;
use hybriq::{Connection, Endpoint, KeyExchange, ServerConfig, tls::KeyLog};
use hybriq_examples::{Failure, policy};

/// A server that prints its handshakes.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    server: hybriq_examples::Server,
    /// Refuse clients without a post-quantum group.
    #[arg(long)]
    require: bool,
    /// Accept these groups instead of the default, first choice first. With `X25519` it is a server that
    /// went back to classical cryptography.
    #[arg(long, value_delimiter = ',', conflicts_with = "require")]
    groups: Vec<String>,
    /// Write the secrets of all connections to this file, for Wireshark.
    #[arg(long)]
    key_log: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = Args::parse();
    let policy = if args.require {
        KeyExchange::RequirePostQuantum
    } else {
        policy(&args.groups)?
    };
    let config = ServerConfig::new(args.server.identity()?)
        .alpn(["pq"])
        .key_exchange(policy)
        .key_log(args.key_log.map_or(KeyLog::Environment, KeyLog::File));
    let server = Endpoint::server(args.server.listen, config)?;
    println!("listening on {}", server.local_address());

    while let Some(incoming) = server.accept().await {
        let from = incoming.peer_address();
        tokio::spawn(async move {
            match incoming.accept().await {
                Ok(connection) => report(&connection).await,
                Err(error) => println!("{from}: {error}"),
            }
        });
    }
    Ok(())
}

async fn report(connection: &Connection) {
    let from = connection.peer_address();
    let key = connection.handshake().key_exchange;
    let (code_point, kind) = (key.group.0, key.kind());
    let (theirs, ours) = (key.client_share, key.server_share);
    let retry = if key.hello_retry {
        ", after a HelloRetryRequest"
    } else {
        ""
    };
    println!(
        "{from}: {key} (0x{code_point:04x}, {kind:?}), shares of {theirs} B and {ours} B{retry}"
    );
    connection.closed().await;
}
