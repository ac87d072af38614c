//! Sends half a line, moves to another address, and sends the rest on the same stream.

use std::net::SocketAddr;

use clap::Parser;
use hybriq::{ClientConfig, Endpoint, error::Printable};
use hybriq_examples::Failure;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = hybriq_examples::Client::parse();
    let config = ClientConfig::new().alpn(["echo"]).trust(args.trust()?);
    let client = Endpoint::client(config)?;
    let connection = client.connect(args.server, &args.name).await?;
    println!("first from {}", client.local_address());

    let (mut send, mut receive) = connection.open_bidi().await?;
    send.write_all(b"before ").await?;

    // A phone that leaves its Wi-Fi would pass the address of its mobile network here.
    let anywhere = if args.server.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let now_at: SocketAddr = connection.migrate(anywhere.parse()?).await?;
    println!("now from {now_at}");

    send.write_all(b"and after").await?;
    send.finish();
    let echo = receive.read_to_end(1024).await?;
    println!("{}", Printable(String::from_utf8_lossy(&echo)));

    connection.close(0, b"done");
    client.idle().await;
    Ok(())
}
