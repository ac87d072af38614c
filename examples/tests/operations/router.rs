//! A small load balancer for UDP: it sends what clients send on to a server, from a port of its own
//! for each client, and the answers back. All servers see the same address of a client, because
//! tokens are bound to it.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::net::UdpSocket;
use tokio::sync::Notify;

use crate::quic_lb::Balancer;

/// A server behind the router.
pub(crate) struct Member {
    pub(crate) id: Vec<u8>,
    pub(crate) address: SocketAddr,
    /// Gets clients that belong to no server yet.
    pub(crate) takes_new: bool,
}

/// Address and connection id of a client whose handshake no server has answered.
type Newcomer = (SocketAddr, Vec<u8>);

#[derive(Default)]
pub(crate) struct State {
    pub(crate) members: Vec<Member>,
    /// Server to which the datagrams of another go, if that one is gone.
    pub(crate) instead: HashMap<usize, usize>,
    /// Set: the router goes on without a server as soon as it has sent a Retry.
    pub(crate) loses_server_after_retry: bool,
    newcomers: HashMap<Newcomer, usize>,
    /// Servers that sent a Retry, and the connection ids of the clients, once each: every datagram
    /// of a long ClientHello is answered.
    retries: Vec<(usize, Vec<u8>)>,
    /// Number of datagrams that were sent to another server than the addresses would choose.
    pub(crate) against_hash: u64,
    /// Servers that each client's address was sent to.
    pub(crate) visited: HashMap<SocketAddr, BTreeSet<usize>>,
}

impl State {
    /// Returns the server that a balancer without connection ids would choose.
    pub(crate) fn by_hash(&self, client: SocketAddr) -> usize {
        let open = |at: &usize| self.members[*at].takes_new;
        let open: Vec<usize> = (0..self.members.len()).filter(open).collect();
        let mut hasher = DefaultHasher::new();
        client.hash(&mut hasher);
        open[(hasher.finish() % open.len() as u64) as usize]
    }

    /// Returns the server for a datagram of a client.
    fn route(&mut self, balancer: &Balancer, client: SocketAddr, datagram: &[u8]) -> usize {
        let by_hash = self.by_hash(client);
        let newcomer = source(datagram).map(|source| (client, source.to_vec()));
        let id = balancer.server(datagram);
        let known = self
            .members
            .iter()
            .position(|it| Some(&it.id) == id.as_ref());
        let chosen = if let Some(server) = known {
            if let Some(newcomer) = &newcomer {
                self.newcomers.remove(newcomer);
            }
            self.against_hash += u64::from(server != by_hash);
            server
        } else if let Some(newcomer) = newcomer {
            // The rest of a ClientHello goes where its beginning went, whatever opens or closes.
            *self.newcomers.entry(newcomer).or_insert(by_hash)
        } else {
            by_hash
        };
        let server = self.instead.get(&chosen).copied().unwrap_or(chosen);
        self.visited.entry(client).or_default().insert(server);
        server
    }

    /// Takes note of an answer.
    fn on_answer(&mut self, from: SocketAddr, datagram: &[u8]) {
        let server = self.members.iter().position(|it| it.address == from);
        let server = server.unwrap();
        // A long header of version 1 and type 3.
        if datagram.first().is_some_and(|first| first & 0xf0 == 0xf0) {
            let length = usize::from(datagram[5]);
            let retry = (server, datagram[6..6 + length].to_vec());
            if !self.retries.contains(&retry) {
                self.retries.push(retry);
            }
            if self.loses_server_after_retry {
                self.instead.insert(server, 1 - server);
            }
        }
    }

    /// Returns the servers that sent a client a Retry, in order.
    pub(crate) fn retries(&self) -> Vec<usize> {
        self.retries.iter().map(|retry| retry.0).collect()
    }

    /// Returns true if no handshake waits for the first answer of a server.
    fn is_calm(&self, server: usize) -> bool {
        !self.newcomers.values().any(|at| *at == server)
    }
}

/// Returns the source connection id of a long header.
fn source(datagram: &[u8]) -> Option<&[u8]> {
    if datagram.first()? & 0x80 == 0 {
        return None;
    }
    let at = 6 + usize::from(*datagram.get(5)?);
    let length = usize::from(*datagram.get(at)?);
    datagram.get(at + 1..at + 1 + length)
}

/// Handle of a router.
#[derive(Clone)]
pub(crate) struct Router {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
}

impl Router {
    pub(crate) fn new(members: Vec<Member>) -> Self {
        let state = State {
            members,
            ..State::default()
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            changed: Arc::default(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Sends no more newcomers to a server, and waits until it has answered those that it has.
    pub(crate) async fn take_out(&self, server: usize) {
        self.state().members[server].takes_new = false;
        loop {
            let changed = self.changed.notified();
            if self.state().is_calm(server) {
                return;
            }
            changed.await;
        }
    }

    pub(crate) fn put_in(&self, server: usize) {
        self.state().members[server].takes_new = true;
    }

    /// Routes until it is dropped. Opens its sockets in the network of the calling thread.
    pub(crate) async fn run(self, balancer: Balancer, public: UdpSocket) {
        let public = Arc::new(public);
        let mut ways: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
        let mut buffer = vec![0; 65_536];
        loop {
            let Ok((length, client)) = public.recv_from(&mut buffer).await else {
                continue;
            };
            let datagram = &buffer[..length];
            let server = {
                let mut state = self.state();
                let server = state.route(&balancer, client, datagram);
                state.members[server].address
            };
            self.changed.notify_waiters();
            let way = if let Some(way) = ways.get(&client) {
                way.clone()
            } else {
                let way = Arc::new(UdpSocket::bind("0.0.0.0:0").await.unwrap());
                ways.insert(client, way.clone());
                let back = self.clone();
                tokio::spawn(back.bring_back(client, way.clone(), public.clone()));
                way
            };
            // A server that is gone refuses datagrams; that is the client's affair.
            let _ = way.send_to(datagram, server).await;
        }
    }

    /// Sends the answers of servers to a client.
    async fn bring_back(self, client: SocketAddr, way: Arc<UdpSocket>, public: Arc<UdpSocket>) {
        let mut buffer = vec![0; 65_536];
        loop {
            if let Ok((length, from)) = way.recv_from(&mut buffer).await {
                self.state().on_answer(from, &buffer[..length]);
                let _ = public.send_to(&buffer[..length], client).await;
            }
        }
    }
}
