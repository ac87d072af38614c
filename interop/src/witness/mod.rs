//! A third observer on the path between a client and a server.

mod hello;
mod initial;

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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

/// Record of what was on the wire of one handshake.
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
        Self::new(server, Answers::Forwarded).await
    }

    /// Like [`Witness::before`], and lets nothing of the server pass before the client has sent a
    /// 0-RTT packet: however slow the client is, it is early.
    ///
    /// # Errors
    /// Whatever the sockets say.
    pub async fn before_early_data(server: SocketAddr) -> io::Result<Self> {
        Self::new(server, Answers::AfterEarlyData).await
    }

    async fn new(server: SocketAddr, answers: Answers) -> io::Result<Self> {
        let front = UdpSocket::bind(("127.0.0.1", 0)).await?;
        let back = UdpSocket::bind(("127.0.0.1", 0)).await?;
        back.connect(server).await?;
        let address = front.local_addr()?;
        let reading = Arc::default();
        let (rebinds, wishes) = mpsc::unbounded_channel();
        let path = Path {
            front,
            back,
            answers,
            client: None,
            reading: Arc::clone(&reading),
        };
        let task = tokio::spawn(path.forward(wishes));
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

    /// Returns what was seen so far.
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

/// When what the server sends is passed on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    Forwarded,
    AfterEarlyData,
}

struct Path {
    /// Towards the client.
    front: UdpSocket,
    /// Towards the server.
    back: UdpSocket,
    answers: Answers,
    client: Option<SocketAddr>,
    reading: Arc<Mutex<Reading>>,
}

impl Path {
    async fn forward(mut self, mut rebinds: mpsc::UnboundedReceiver<()>) -> io::Result<()> {
        let (mut out, mut home) = (vec![0; MAX_DATAGRAM], vec![0; MAX_DATAGRAM]);
        loop {
            let open = self.answers == Answers::Forwarded || self.reading().has_early_data();
            tokio::select! {
                Some(()) = rebinds.recv() => self.rebind().await?,
                received = self.front.recv_from(&mut out) => {
                    let (len, from) = received?;
                    self.client = Some(from);
                    self.reading().on_datagram(Direction::ToServer, &out[..len]);
                    // A server that closed its socket shows as ECONNREFUSED: a lost datagram to QUIC.
                    let _ = self.back.send(&out[..len]).await;
                }
                received = self.back.recv(&mut home), if open => {
                    let Ok(len) = received else { continue };
                    self.reading().on_datagram(Direction::ToClient, &home[..len]);
                    if let Some(client) = self.client {
                        let _ = self.front.send_to(&home[..len], client).await;
                    }
                }
            }
        }
    }

    async fn rebind(&mut self) -> io::Result<()> {
        let server = self.back.peer_addr()?;
        // The old socket lives until the new one has a port, so that it is another.
        let other = UdpSocket::bind(("127.0.0.1", 0)).await?;
        other.connect(server).await?;
        self.back = other;
        Ok(())
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
