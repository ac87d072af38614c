//! Sends a mebibyte to an echo server and logs the connection for tools such as qvis.

use std::path::PathBuf;

use clap::Parser;
use hybriq::{ClientConfig, Endpoint, qlog::Qlog};
use hybriq_examples::{Client, Failure};

const BYTES: usize = 1024 * 1024;

#[derive(Parser)]
struct Args {
    #[command(flatten)]
    client: Client,
    /// The directory of the log.
    #[arg(long, default_value = "qlog")]
    qlog: PathBuf,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let Args { client: args, qlog } = Args::parse();
    let log = Qlog::directory(&qlog).start()?;
    let config = ClientConfig::new().alpn(["echo"]).trust(args.trust()?);
    let client = Endpoint::builder()
        .client(config)
        .qlog(&log)
        .bind("[::]:0")?;
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

    let name = format!("{}_client.sqlog", connection.id());
    connection.close(0, b"done");
    client.idle().await;
    log.flush();
    println!("see {}", qlog.join(name).display());
    Ok(())
}
