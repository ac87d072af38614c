//! Two ends in one program: one sends its position a hundred times, the other wants the newest one.
//! A lost datagram is not sent again, because the next one is newer anyway (RFC 9221).

use std::time::Duration;

use clap::Parser;
use hybriq::{
    ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, transport::DatagramConfig,
};
use hybriq_examples::Failure;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = hybriq_examples::Server::parse();
    // Only the newest position matters: both ends keep short queues.
    let datagrams = DatagramConfig::new().send_queue(4096).receive_buffer(4096);
    let transport = TransportConfig::new().datagrams(datagrams);
    let config = ServerConfig::new(args.identity()?).alpn(["positions"]);
    let server = Endpoint::server(args.listen, config.transport(transport.clone()))?;
    println!("listening on {}", server.local_address());

    let trusting = hybriq_examples::Client {
        server: server.local_address(),
        name: "localhost".to_owned(),
        ca: args.ca.clone(),
    };
    let config = ClientConfig::new()
        .alpn(["positions"])
        .trust(trusting.trust()?);
    let client = Endpoint::client(config.transport(transport))?;
    let accept = async {
        let incoming = server.accept().await.ok_or("the server is closed")?;
        Ok::<_, Failure>(incoming.accept().await?)
    };
    let connect = client.connect(trusting.server, &trusting.name);
    let (connection, accepted) = tokio::join!(connect, accept);
    let ((), newest) = tokio::try_join!(tell(connection?), watch(accepted?))?;
    println!("the last position seen is {newest:?}");
    client.idle().await;
    Ok(())
}

/// Sends a hundred positions.
async fn tell(connection: Connection) -> Result<(), Failure> {
    let most = connection
        .max_datagram_size()
        .ok_or("the peer takes none")?;
    println!("a datagram may have {most} bytes");
    for position in 0..100_u32 {
        connection.send_datagram(position.to_be_bytes().to_vec().into())?;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!("{} were sent", connection.stats().datagram_frames.sent);
    connection.close(0, b"done");
    Ok(())
}

/// Reads positions until the peer closes.
async fn watch(connection: Connection) -> Result<Option<u32>, Failure> {
    let mut newest = None;
    while let Some(datagram) = connection.recv_datagram().await? {
        // Datagrams may overtake each other.
        newest = newest.max(datagram.as_ref().try_into().ok().map(u32::from_be_bytes));
    }
    Ok(newest)
}
