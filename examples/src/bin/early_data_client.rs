//! Connects twice. The second time, the request leaves with the first datagrams, so the answer
//! takes one round trip.

use clap::Parser;
use hybriq::{ClientConfig, Connection, Endpoint, RecvStream, error::Printable, tls::EarlyData};
use hybriq_examples::Failure;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = hybriq_examples::Client::parse();
    let config = ClientConfig::new()
        .alpn(["early"])
        .trust(args.trust()?)
        .offer_early_data();
    let client = Endpoint::client(config)?;
    for _ in 0..2 {
        // The first flight waits for the request.
        match client.connect_early(args.server, &args.name).early().await {
            Ok(early) => {
                let (mut send, receive) = early.open_bidi().await?;
                send.write_all(b"GET early").await?;
                send.finish();
                let (connection, early_data) = early.established().await?;
                println!("0-RTT data: {early_data:?}");
                if early_data == EarlyData::Accepted {
                    println!("{}", answer(receive).await?);
                } else {
                    // The server discarded it, and hybriq does not send it again.
                    ask(&connection).await?;
                }
                connection.close(0, b"");
            }
            Err(connecting) => {
                let connection = connecting.await?;
                println!("no ticket yet: connected first");
                ask(&connection).await?;
                connection.close(0, b"");
            }
        }
    }
    client.idle().await;
    Ok(())
}

async fn ask(connection: &Connection) -> Result<(), Failure> {
    let (mut send, receive) = connection.open_bidi().await?;
    send.write_all(b"GET").await?;
    send.finish();
    println!("{}", answer(receive).await?);
    Ok(())
}

async fn answer(mut receive: RecvStream) -> Result<String, Failure> {
    let answer = receive.read_to_end(1024).await?;
    Ok(Printable(String::from_utf8_lossy(&answer)).to_string())
}
