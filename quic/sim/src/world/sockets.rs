//! Sockets of the network, for endpoints of `hybriq` and whole programs.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt, io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
};

use hybriq::socket::{DatagramSocket, Outgoing, Received};
use hybriq_tls::Side;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::{Datagram, Network};

/// Sockets of a [`Network`] between one server and any number of clients, for
/// [`EndpointBuilder::bind_custom`](hybriq::EndpointBuilder::bind_custom).
///
/// On a runtime of tokio whose clock is paused, endpoints on these sockets and the programs above them run in virtual
/// time: hours in milliseconds. A panic prints the seed.
///
/// The seed determines what the network does to the nth datagram. It does not determine the order in which a program's
/// tasks run; a runtime on one thread does.
#[derive(Clone)]
pub struct Sockets(Arc<Wire>);

/// One socket of [`Sockets`].
pub struct Socket {
    wire: Arc<Wire>,
    address: SocketAddr,
    side: Side,
}

/// The network and its sockets, shared with the task that delivers.
struct Wire {
    begun: Instant,
    state: Mutex<State>,
    /// Tells the task that delivers of a datagram that may be due earlier.
    sent: Arc<Notify>,
}

struct State {
    network: Network,
    ports: BTreeMap<SocketAddr, Port>,
}

#[derive(Default)]
struct Port {
    waiting: VecDeque<Datagram>,
    reader: Option<Waker>,
}

impl fmt::Debug for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sockets")
            .field(&self.0.lock().network)
            .finish()
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Socket").field(&self.address).finish()
    }
}

impl Sockets {
    /// Puts sockets on a network. Its time begins now. Must be called on a runtime of tokio, which delivers.
    pub fn new(network: Network) -> Self {
        let sent = Arc::new(Notify::new());
        let wire = Arc::new(Wire {
            begun: Instant::now(),
            state: Mutex::new(State {
                network,
                ports: BTreeMap::new(),
            }),
            sent: sent.clone(),
        });
        tokio::spawn(deliver(Arc::downgrade(&wire), sent));
        Self(wire)
    }

    /// Returns the socket of a server.
    pub fn server(&self, address: SocketAddr) -> Socket {
        self.open(address, Side::Server)
    }

    /// Returns the socket of a client. Each needs its own address.
    pub fn client(&self, address: SocketAddr) -> Socket {
        self.open(address, Side::Client)
    }

    fn open(&self, address: SocketAddr, side: Side) -> Socket {
        self.0.lock().ports.insert(address, Port::default());
        Socket {
            wire: self.0.clone(),
            address,
            side,
        }
    }
}

impl Wire {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over everything that has arrived. Returns the time of the next event.
    fn deliver(&self) -> Option<Instant> {
        let mut readers = Vec::new();
        let mut state = self.lock();
        let now = self.begun.elapsed();
        while let Some((_, datagram)) = state.network.poll_delivery(now) {
            // A datagram to nobody is lost.
            if let Some(port) = state.ports.get_mut(&datagram.destination) {
                port.waiting.push_back(datagram);
                readers.extend(port.reader.take());
            }
        }
        let next = state.network.next_timeout();
        drop(state);
        readers.into_iter().for_each(Waker::wake);
        next.map(|at| self.begun + at)
    }
}

/// Delivers until all sockets are gone.
async fn deliver(wire: Weak<Wire>, sent: Arc<Notify>) {
    loop {
        let Some(next) = wire.upgrade().map(|wire| wire.deliver()) else {
            return;
        };
        let due = async {
            match next {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            () = sent.notified() => {}
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the seed of the network is {}", self.lock().network.seed());
        }
        self.sent.notify_one();
    }
}

impl DatagramSocket for Socket {
    fn local_address(&self) -> SocketAddr {
        self.address
    }

    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.wire.lock();
        match state.ports.get_mut(&self.address) {
            Some(port) if port.waiting.is_empty() => {
                port.reader = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let mut state = self.wire.lock();
        let port = state.ports.get_mut(&self.address);
        let Some(datagram) = port.and_then(|port| port.waiting.pop_front()) else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        let len = datagram.payload.len().min(buffer.len());
        buffer[..len].copy_from_slice(&datagram.payload[..len]);
        let mut received = Received::new(len, datagram.source);
        received.ecn = datagram.ecn;
        received.local = Some(self.address.ip());
        Ok(received)
    }

    fn send(&self, outgoing: &Outgoing<'_>) -> io::Result<()> {
        let contents = outgoing.contents.to_vec();
        let mut datagram = Datagram::new(self.address, outgoing.peer, contents);
        datagram.ecn = outgoing.ecn;
        let now = self.wire.begun.elapsed();
        let toward = self.side.peer();
        self.wire.lock().network.send(now, toward, datagram);
        self.wire.sent.notify_one();
        Ok(())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.wire.lock().ports.remove(&self.address);
    }
}
