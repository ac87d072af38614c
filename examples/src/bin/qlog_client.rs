//! Sends a mebibyte to an echo server and writes the events to a qlog file, for tools such as qvis.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use hybriq::{ClientConfig, Endpoint, TransportConfig};
use hybriq_examples::{Client, Failure, qlog::Qlog};

const BYTES: usize = 1024 * 1024;

#[derive(Parser)]
struct Args {
    #[command(flatten)]
    client: Client,
    /// The file to write.
    #[arg(long, default_value = "hybriq.sqlog")]
    qlog: PathBuf,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let Args { client: args, qlog } = Args::parse();
    let file = File::create(&qlog)?;
    let subscriber = Arc::new(Qlog::new(BufWriter::new(file)));
    let config = ClientConfig::new()
        .alpn(["echo"])
        .trust(args.trust()?)
        .transport(TransportConfig::new().subscriber(subscriber.clone()));
    let client = Endpoint::client(config)?;
    let connection = client.connect(args.server, &args.name).await?;

    let (mut send, mut receive) = connection.open_bidi().await?;
    let writing = tokio::spawn(async move {
        let written = send.write_all(&vec![7; BYTES]).await;
        send.finish();
        written
    });
    let echo = receive.read_to_end(BYTES).await?;
    writing.await??;
    println!("{} bytes came back", echo.len());

    connection.close(0, b"done");
    client.idle().await;
    subscriber.finish()?;
    println!("see {}", qlog.display());
    Ok(())
}
