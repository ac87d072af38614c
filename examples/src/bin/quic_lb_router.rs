//! Routes datagrams to the servers of a fleet by their connection ids (QUIC-LB, in plain text): a client that moves to
//! another address stays with its server. Nothing is decrypted, and nothing is known about connections.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use clap::Parser;
use hybriq_examples::Failure;
use tokio::{net::UdpSocket, time::timeout};

/// Most clients at once, below the usual limit of open files, and the time after which a silent one is forgotten.
const CLIENTS: usize = 900;
const SILENCE: Duration = Duration::from_mins(1);

/// Routes to servers with ids of one byte.
#[derive(Debug, clap::Parser)]
struct Args {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:4433")]
    listen: SocketAddr,
    /// Addresses of the servers, whose ids are 1, 2 and so on.
    #[arg(required = true)]
    servers: Vec<SocketAddr>,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = Args::parse();
    let public = Arc::new(UdpSocket::bind(args.listen).await?);
    println!("listening on {}", public.local_addr()?);
    // Each client has a socket towards the servers, so that their answers tell whom they are for.
    let mut ways: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
    let mut buffer = vec![0; 65_536];
    loop {
        let (length, client) = public.recv_from(&mut buffer).await?;
        let datagram = &buffer[..length];
        if ways.len() >= CLIENTS {
            ways.retain(|_, way| Arc::strong_count(way) > 1);
        }
        let is_silent = |way: &Arc<UdpSocket>| Arc::strong_count(way) == 1;
        if ways.get(&client).map_or(ways.len() < CLIENTS, is_silent) {
            let any = if args.servers[0].is_ipv4() {
                "0.0.0.0:0"
            } else {
                "[::]:0"
            };
            // Without room for another socket, new clients have to wait.
            let Ok(way) = UdpSocket::bind(any).await.map(Arc::new) else {
                continue;
            };
            tokio::spawn(bring_back(client, way.clone(), public.clone()));
            ways.insert(client, way);
        }
        if let Some(way) = ways.get(&client) {
            // A server that is gone refuses datagrams. That concerns its clients alone.
            let server = server(datagram, client, &args.servers);
            let _ = way.send_to(datagram, server).await;
        }
    }
}

/// Returns the server whose id is in the connection id, or any for new clients: the same for all their datagrams.
fn server(datagram: &[u8], client: SocketAddr, servers: &[SocketAddr]) -> SocketAddr {
    let is_long = datagram.first().is_some_and(|first| first & 0x80 != 0);
    let cid = datagram.get(if is_long { 6.. } else { 1.. });
    let id = match cid {
        // The rotation codepoint of the servers is 0.
        Some([first, id, ..]) if first >> 5 == 0 => usize::from(*id),
        _ => 0,
    };
    let known = id.checked_sub(1).and_then(|at| servers.get(at));
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(client);
    *known.unwrap_or(&servers[(hash % servers.len() as u64) as usize])
}

/// Sends the answers of servers to a client, until it is silent.
async fn bring_back(
    client: SocketAddr,
    way: Arc<UdpSocket>,
    public: Arc<UdpSocket>,
) -> io::Result<()> {
    let mut buffer = vec![0; 65_536];
    while let Ok(received) = timeout(SILENCE, way.recv(&mut buffer)).await {
        if let Ok(length) = received {
            public.send_to(&buffer[..length], client).await?;
        }
    }
    Ok(())
}
