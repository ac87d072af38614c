//! Sends a line and prints the answer.

use clap::Parser;
use hybriq::{ClientConfig, Endpoint, error::Printable};
use hybriq_examples::Failure;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = hybriq_examples::Client::parse();
    let config = ClientConfig::new().alpn(["echo"]).trust(args.trust()?);
    let client = Endpoint::client(config)?;
    let connection = client.connect(args.server, &args.name).await?;
    println!("connected with {}", connection.handshake().key_exchange);

    let (mut send, mut receive) = connection.open_bidi().await?;
    send.write_all(b"hello, post-quantum world").await?;
    send.finish();
    let echo = receive.read_to_end(1024).await?;
    println!("{}", Printable(String::from_utf8_lossy(&echo)));

    connection.close(0, b"done");
    client.idle().await;
    Ok(())
}
