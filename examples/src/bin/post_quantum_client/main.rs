//! Prints the negotiated key exchange, writes a key log to inspect the handshake with Wireshark, and
//! remembers in a file which servers were post-quantum, so that it refuses one that goes back.

mod servers;

use std::path::PathBuf;

use clap::Parser;
use hybriq::{ClientConfig, Connection, Endpoint, memory::Continuity, tls::KeyLog};
use hybriq_examples::{Failure, policy};

use servers::Servers;

/// A client that prints its handshake.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    client: hybriq_examples::Client,
    /// Offer these groups instead of the default, first choice first. With
    /// `X25519,X25519MLKEM768`, a server that prefers post-quantum sends a HelloRetryRequest.
    #[arg(long, value_delimiter = ',')]
    groups: Vec<String>,
    /// Write the secrets of the connection to this file, for Wireshark.
    #[arg(long)]
    key_log: Option<PathBuf>,
    /// Remember servers in this file: tokens, versions and groups, to connect faster, and which servers
    /// were post-quantum, to refuse one that no longer is.
    #[arg(long)]
    servers: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let Args {
        client: args,
        groups,
        key_log,
        servers,
    } = Args::parse();
    let secrets = key_log.clone().map_or(KeyLog::Environment, KeyLog::File);
    let config = ClientConfig::new()
        .alpn(["pq"])
        .trust(args.trust()?)
        .key_exchange(policy(&groups)?)
        .key_log(secrets);
    let servers = servers.map(Servers::open).transpose()?;
    let config = match &servers {
        Some(known) => config
            .server_memory(known.memory())
            .continuity(Continuity::Refuse),
        None => config,
    };
    let client = Endpoint::client(config)?;
    let connection = client.connect(args.server, &args.name).await?;

    report(&connection);
    if let Some(path) = key_log {
        let (port, path) = (args.server.port(), path.display());
        println!("In Wireshark, capture udp port {port}; in Preferences > Protocols > TLS set the");
        println!("(Pre)-Master-Secret log filename to {path}; open the ClientHello: key_share.");
        println!("Or: tshark -i any -f 'udp port {port}' -o tls.keylog_file:{path} -V");
    } else {
        println!("To look at it in Wireshark, run it again with --key-log FILE.");
    }
    connection.close(0, b"seen");
    client.idle().await;
    if let Some(known) = &servers {
        known.save()?;
    }
    Ok(())
}

fn report(connection: &Connection) {
    let (handshake, stats) = (connection.handshake(), connection.stats());
    let key = &handshake.key_exchange;
    let retry = if key.hello_retry { "yes" } else { "no" };
    let code_point = key.group.0;
    println!(
        "group          {key} (0x{code_point:04x}, {:?})",
        key.kind()
    );
    println!("hello retry    {retry}");
    println!("client share   {} B", key.client_share);
    println!("server share   {} B", key.server_share);
    println!("cipher suite   {:?}", handshake.suite);
    println!("datagrams out  {}", stats.datagrams_sent);
    println!("datagrams in   {}", stats.datagrams_received);
}
