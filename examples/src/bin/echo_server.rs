//! Echoes everything that clients send.

use clap::Parser;
use hybriq::{Endpoint, Incoming, ServerConfig};
use hybriq_examples::Failure;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = hybriq_examples::Server::parse();
    let config = ServerConfig::new(args.identity()?).alpn(["echo"]);
    let server = Endpoint::server(args.listen, config)?;
    println!("listening on {}", server.local_address());

    while let Some(incoming) = server.accept().await {
        tokio::spawn(async {
            if let Err(error) = echo(incoming).await {
                eprintln!("{error:?}");
            }
        });
    }
    Ok(())
}

async fn echo(incoming: Incoming) -> Result<(), Failure> {
    let connection = incoming.accept().await?;
    while let Some((mut send, mut receive)) = connection.accept_bidi().await? {
        tokio::spawn(async move {
            // A stream that fails is dropped unfinished, which resets it: no truncated echo.
            if tokio::io::copy(&mut receive, &mut send).await.is_ok() {
                send.finish();
            }
        });
    }
    Ok(())
}
