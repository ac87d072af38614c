//! A third observer on the path between a client and a server.

mod hello;
mod initial;

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{net::UdpSocket, sync::mpsc, task::JoinHandle};

pub use hello::{ClientHello, ServerHello};
use initial::{Direction, Reading};

/// The largest UDP payload.
const MAX_DATAGRAM: usize = 65_535;

/// Forwards datagrams between one client and a server, and reads the Initial packets among them.
///
/// Anybody on the path can: their keys follow from the client's first Destination Connection ID
/// (RFC 9001 §5.2). It shares no code with hybriq, so that neither can agree with the other's
/// mistake. Dropping it cuts the path.
pub struct Witness {
    address: SocketAddr,
    reading: Arc<Mutex<Reading>>,
    rebinds: mpsc::UnboundedSender<()>,
    task: JoinHandle<io::Result<()>>,
}

/// What was on the wire of one handshake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sighting {
    /// Every ClientHello, a second one after a HelloRetryRequest.
    pub client_hellos: Vec<ClientHello>,
    /// Every ServerHello and HelloRetryRequest.
    pub server_hellos: Vec<ServerHello>,
    /// The error code of each `CONNECTION_CLOSE` in an Initial packet.
    pub closes: Vec<u64>,
    /// Datagrams from the client.
    pub client_datagrams: usize,
    /// Datagrams from the server.
    pub server_datagrams: usize,
    /// Retry packets from the server.
    pub retries: usize,
    /// 0-RTT packets from the client.
    pub early_packets: usize,
}

impl Witness {
    /// Opens a path to `server` that starts at [`Witness::address`].
    ///
    /// # Errors
    /// Whatever the sockets say.
    pub async fn before(server: SocketAddr) -> io::Result<Self> {
        let front = UdpSocket::bind(("127.0.0.1", 0)).await?;
        let back = UdpSocket::bind(("127.0.0.1", 0)).await?;
        back.connect(server).await?;
        let address = front.local_addr()?;
        let reading = Arc::default();
        let (rebinds, wishes) = mpsc::unbounded_channel();
        let task = tokio::spawn(forward(front, back, wishes, Arc::clone(&reading)));
        Ok(Self {
            address,
            reading,
            rebinds,
            task,
        })
    }

    /// The address a client connects to in place of the server's.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Goes on from another port, like a NAT that forgot its binding: what the server still sends
    /// to the old one is lost.
    pub fn rebind(&self) {
        let _ = self.rebinds.send(());
    }

    /// What was seen so far.
    pub fn sighting(&self) -> Sighting {
        self.reading
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .sighting()
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(
    front: UdpSocket,
    mut back: UdpSocket,
    mut rebinds: mpsc::UnboundedReceiver<()>,
    reading: Arc<Mutex<Reading>>,
) -> io::Result<()> {
    let (mut out, mut home) = (vec![0; MAX_DATAGRAM], vec![0; MAX_DATAGRAM]);
    let mut client = None;
    let read = |direction, datagram: &[u8]| {
        reading
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .on_datagram(direction, datagram);
    };
    loop {
        tokio::select! {
            Some(()) = rebinds.recv() => {
                let server = back.peer_addr()?;
                // The old socket lives until the new one has a port, so that it is another.
                let other = UdpSocket::bind(("127.0.0.1", 0)).await?;
                other.connect(server).await?;
                back = other;
            }
            received = front.recv_from(&mut out) => {
                let (len, from) = received?;
                client = Some(from);
                read(Direction::ToServer, &out[..len]);
                // A server that closed its socket shows as ECONNREFUSED: a lost datagram to QUIC.
                let _ = back.send(&out[..len]).await;
            }
            received = back.recv(&mut home) => {
                let Ok(len) = received else { continue };
                read(Direction::ToClient, &home[..len]);
                if let Some(client) = client {
                    let _ = front.send_to(&home[..len], client).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
