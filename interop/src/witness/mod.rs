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
pub(crate) use hello::{Cursor, client_hellos, server_hellos};
use initial::{Direction, Reading};

/// Maximum size of a UDP payload.
const MAX_DATAGRAM: usize = 65_535;

/// Relay between one client and a server that reads their Initial packets.
///
/// Anybody on the path can read them: their keys follow from the client's first Destination
/// Connection ID (RFC 9001 §5.2). It shares no code with hybriq, so that neither repeats the
/// other's mistake. Dropping it cuts the path.
pub struct Witness {
    address: SocketAddr,
    reading: Arc<Mutex<Reading>>,
    rebinds: mpsc::UnboundedSender<()>,
    task: JoinHandle<io::Result<()>>,
}

impl std::fmt::Debug for Witness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Witness")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Record of one handshake on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sighting {
    /// Every ClientHello; there is a second one after a HelloRetryRequest.
    pub client_hellos: Vec<ClientHello>,
    /// Every ServerHello and HelloRetryRequest.
    pub server_hellos: Vec<ServerHello>,
    /// Error code of each `CONNECTION_CLOSE` in an Initial packet.
    pub closes: Vec<u64>,
    /// Number of datagrams from the client.
    pub client_datagrams: usize,
    /// Number of datagrams from the server.
    pub server_datagrams: usize,
    /// Number of Retry packets from the server.
    pub retries: usize,
    /// Number of 0-RTT packets from the client.
    pub early_packets: usize,
}

impl Witness {
    /// Opens a path to `server` that starts at [`Witness::address`].
    ///
    /// # Errors
    /// An error of the sockets.
    pub async fn before(server: SocketAddr) -> io::Result<Self> {
        Self::new(server, Answers::Forwarded).await
    }

    /// Works like [`Witness::before`], but holds the server's datagrams back until the client has
    /// sent a 0-RTT packet, so that even a slow client is early.
    ///
    /// # Errors
    /// An error of the sockets.
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

    /// Returns the address to which a client connects instead of the server's.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Switches to another port, like a NAT that forgot its binding: datagrams of the server to the
    /// old one are lost.
    pub fn rebind(&self) {
        let _ = self.rebinds.send(());
    }

    /// Returns the record so far.
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

/// Time from which the server's datagrams are passed on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    Forwarded,
    AfterEarlyData,
}

struct Path {
    /// Socket towards the client.
    front: UdpSocket,
    /// Socket towards the server.
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
                    // A server that closed its socket shows as ECONNREFUSED, which is a lost
                    // datagram to QUIC.
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
        // The old socket lives until the new one has a port, so that the ports differ.
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
