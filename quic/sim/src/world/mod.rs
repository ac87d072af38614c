//! A server, its clients and the network between them, in virtual time.

pub(super) mod app;
pub(super) mod download;
pub(super) mod host;
pub(super) mod ledger;
pub(super) mod peer;
#[cfg(feature = "sockets")]
pub mod sockets;
pub(super) mod trace;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use hybriq_tls::Side;

use self::{
    host::SERVER_NAME,
    ledger::{Ledger, check_rest},
    peer::Clock,
    trace::Stage,
};
use crate::{App, Datagram, Host, Network, Peer, Trace};
use hybriq_proto::wire::error::MigrateError;
use hybriq_proto::{
    connection::Connection,
    endpoint::{Local, Setup},
    owners::cids::CidGenerator,
};

/// Address of the server in every world.
pub const SERVER_ADDRESS: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 4433);

/// One server, its clients and the network between them, in virtual time.
///
/// If a panicking thread drops it, it prints its seed and the traffic.
pub struct World {
    clock: Clock,
    network: Network,
    server: Host,
    clients: Vec<Host>,
    trace: Trace,
    ledger: Ledger,
    /// Generator of the connection ids of new clients, if not the default one.
    client_cids: Option<Arc<dyn CidGenerator>>,
    /// Server name that clients use to connect.
    server_name: String,
    /// Maximum number of turns of one run before it counts as endless.
    most_turns: usize,
    /// Reason why connections may hold something at rest.
    keeps: Option<&'static str>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

impl World {
    /// Default maximum number of turns of one run.
    const TURNS: usize = 1_000_000;
    /// Maximum number of datagrams in the trace of a world that expects many.
    const TRACED: usize = 20_000;
    /// Maximum number of turns without time passing.
    const TURNS_AT_ONCE: usize = 1_000;
    /// Time without an event after which a world is at rest.
    const REST: Duration = Duration::from_secs(1);

    /// Creates a world with a server and without clients. Its randomness comes from the network's
    /// seed.
    #[expect(clippy::disallowed_methods, reason = "virtual time needs a base")]
    pub fn new(network: Network, server: Setup) -> Self {
        let server = Host::new(SERVER_ADDRESS, network.seed() ^ 0x5e7e7, Some(server));
        Self {
            clock: Clock {
                base: Instant::now(),
                now: Duration::ZERO,
            },
            network,
            server,
            clients: Vec::new(),
            trace: Trace::default(),
            ledger: Ledger::default(),
            client_cids: None,
            server_name: SERVER_NAME.to_owned(),
            most_turns: Self::TURNS,
            keeps: None,
        }
    }

    /// Expects more datagrams than a trace can hold, so that only its beginning and end are kept. A
    /// run may take this many turns.
    pub const fn expect_bulk(&mut self, turns: usize) {
        self.trace.keep_at_most(Self::TRACED);
        self.most_turns = turns;
    }

    /// Drops the trace and frees its memory.
    pub fn forget_trace(&mut self) {
        self.trace.clear();
    }

    /// Tolerates server behaviour that only clients that break rules can see: a rejected client may
    /// start again under the same connection id, and is answered under another.
    pub const fn expect_hostile_clients(&mut self) {
        self.ledger.hostile_clients = true;
    }

    /// Sets the generator of connection ids for clients that are added from now on.
    pub fn set_client_cids(&mut self, generator: impl CidGenerator + 'static) {
        self.client_cids = Some(Arc::new(generator));
    }

    /// Sets the server name that clients use to connect from now on. Default: `localhost`.
    pub fn set_server_name(&mut self, name: impl Into<String>) {
        self.server_name = name.into();
    }

    /// Adds a client machine with one connection to the server, and returns its index.
    ///
    /// # Panics
    /// Panics if the setup cannot be used.
    pub fn connect(&mut self, setup: &Setup, app: impl App + 'static) -> usize {
        let index = self.clients.len();
        let [high, low] = (index as u16).to_be_bytes();
        let address = SocketAddr::from(([10, 0, high, low], 50_000));
        let mut host = Host::new(address, self.network.seed() ^ (index as u64) << 32, None);
        if let Some(generator) = &self.client_cids {
            host.endpoint_mut().set_cid_generator(generator.clone());
        }
        let server = (SERVER_ADDRESS, &*self.server_name);
        if let Err(error) = host.connect(self.clock, setup, server, Box::new(app)) {
            self.fail(&format!("the client's setup is of no use: {error}"));
        }
        self.clients.push(host);
        index
    }

    /// Connects a client machine again, from the same address. Its connections are those of
    /// [`World::client_host`].
    ///
    /// # Panics
    /// Panics if there is no such client, or if the setup cannot be used.
    pub fn connect_again(&mut self, index: usize, setup: &Setup, app: impl App + 'static) {
        let host = &mut self.clients[index];
        let server = (SERVER_ADDRESS, &*self.server_name);
        if let Err(error) = host.connect(self.clock, setup, server, Box::new(app)) {
            self.fail(&format!("the client's setup is of no use: {error}"));
        }
    }

    /// Returns the virtual time since the world began.
    pub const fn now(&self) -> Duration {
        self.clock.now
    }

    /// Returns the current time as the instant that the core sees.
    pub fn instant(&self) -> Instant {
        self.clock.instant()
    }

    /// Returns the server.
    pub const fn server(&self) -> &Host {
        &self.server
    }

    /// Returns the server, to change its behaviour.
    pub const fn server_mut(&mut self) -> &mut Host {
        &mut self.server
    }

    /// Returns the client with this index.
    ///
    /// # Panics
    /// Panics if there is no such host.
    pub fn client(&self, index: usize) -> &Peer {
        self.clients[index]
            .peers()
            .first()
            .expect("a client machine has a connection")
    }

    /// Returns the machine of the client with this index.
    ///
    /// # Panics
    /// Panics if there is no such host.
    pub fn client_host(&self, index: usize) -> &Host {
        &self.clients[index]
    }

    /// Returns the server's end of a connection by its index, in the order of acceptance.
    ///
    /// # Panics
    /// Panics if there is no such host.
    pub fn accepted(&self, index: usize) -> &Peer {
        &self.server.peers()[index]
    }

    /// Returns a client's connection, to use it from outside an [`App`]. Its effects happen on the
    /// next turn.
    ///
    /// # Panics
    /// Panics if there is no such client, or if its connection is drained.
    pub fn client_connection(&mut self, index: usize) -> &mut Connection {
        self.clients[index]
            .connection(0)
            .expect("the client's connection is not drained")
    }

    /// Returns the server's end of a connection, to use it from outside an [`App`].
    ///
    /// # Panics
    /// Panics if there is no such client, or if its connection is drained.
    pub fn accepted_connection(&mut self, index: usize) -> &mut Connection {
        self.server
            .connection(index)
            .expect("the server's connection is not drained")
    }

    /// Closes a client's connection with an application's code.
    pub fn close_client(&mut self, index: usize, code: u64) {
        let now = self.instant();
        self.client_connection(index).close(now, code, Bytes::new());
    }

    /// Returns the record of everything that was on the wire.
    pub const fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Puts a datagram on the wire at the first node.
    pub fn inject(&mut self, toward: Side, datagram: Datagram) {
        self.network.send(self.clock.now, toward, datagram);
    }

    /// Delivers a datagram to the server as if it had just crossed the network.
    pub fn deliver(&mut self, datagram: Datagram) {
        self.arrive(Side::Server, datagram);
    }

    /// Replaces the server with another machine at the same address that knows none of the
    /// existing connections.
    pub fn restart_server(&mut self, server: Setup) -> &mut Host {
        let seed = self.network.seed() ^ 0x007e_57a7;
        self.server = Host::new(SERVER_ADDRESS, seed, Some(server));
        &mut self.server
    }

    /// Moves a client to another address, like a NAT that rebinds: the client does not notice.
    ///
    /// # Panics
    /// Panics if there is no such client.
    pub fn rebind(&mut self, index: usize, address: SocketAddr) {
        let host = &mut self.clients[index];
        let inside = host.address;
        host.translate(inside, address);
    }

    /// Adds a socket to a client's machine and returns the id that the core gives it.
    ///
    /// # Panics
    /// Panics if there is no such client.
    pub fn bind_client(&mut self, index: usize, address: SocketAddr) -> Local {
        let socket = self.clients[index].bind(address);
        Local {
            socket,
            ip: Some(address.ip()),
        }
    }

    /// Adds a socket to the server, for use as its preferred address.
    pub fn bind_server(&mut self, address: SocketAddr) {
        self.server.bind(address);
    }

    /// Asks a client's connection to move to another of its sockets (RFC 9000 §9.2).
    ///
    /// # Errors
    /// The connection may not move.
    ///
    /// # Panics
    /// Panics if there is no such client, or if its connection is drained.
    pub fn migrate(&mut self, index: usize, local: Local) -> Result<(), MigrateError> {
        let now = self.instant();
        self.client_connection(index).migrate(now, local)
    }

    /// Runs until every connection is drained and nothing is on the wire.
    ///
    /// # Panics
    /// Panics if that takes longer than `limit`, or if a rule is broken on the way.
    pub fn run(&mut self, limit: Duration) {
        if !self.run_until(limit, World::is_quiet) {
            self.fail(&format!("not every connection was drained after {limit:?}"));
        }
    }

    /// Runs for this long.
    ///
    /// # Panics
    /// Panics if a rule is broken on the way.
    pub fn run_for(&mut self, span: Duration) {
        self.run_until(span, |_| false);
    }

    /// Runs until the condition holds. Returns false if it does not hold before `limit` has passed.
    ///
    /// # Panics
    /// Panics if a rule is broken on the way.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&Self) -> bool) -> bool {
        let end = self.clock.now + limit;
        let mut at_once = 0;
        for _ in 0..self.most_turns {
            self.turn();
            if done(self) {
                return true;
            }
            let Some(next) = self.next_timeout().filter(|&at| at <= end) else {
                self.clock.now = end;
                return false;
            };
            at_once = if next > self.clock.now {
                0
            } else {
                at_once + 1
            };
            if at_once > Self::TURNS_AT_ONCE {
                self.fail("time stands still");
            }
            if next.saturating_sub(self.clock.now) > Self::REST {
                self.check_rest();
            }
            self.clock.now = self.clock.now.max(next);
        }
        self.fail("the world runs in circles");
    }

    /// Returns true if every connection is drained, every partial ClientHello is dropped and
    /// nothing is on the wire.
    pub fn is_quiet(&self) -> bool {
        self.network.is_quiet()
            && self.hosts().all(|host| host.live_connections() == 0)
            && self.server.stats().partial_hellos == 0
    }

    /// Lets connections and hosts hold something although nothing happens any more, for this
    /// reason.
    pub const fn keep(&mut self, reason: &'static str) {
        self.keeps = Some(reason);
    }

    /// Checks that connections whose applications are done hold no more than fresh ones, and that
    /// hosts without connections do not either.
    fn check_rest(&self) {
        if self.keeps.is_none() && self.network.is_quiet() {
            let outcome = check_rest(self.hosts());
            self.judge(outcome);
        }
    }

    /// Runs one instant: arrivals, timers, and their effects.
    fn turn(&mut self) {
        while let Some((side, datagram)) = self.network.poll_delivery(self.clock.now) {
            self.arrive(side, datagram);
        }
        let outcome = self.server.turn(self.clock);
        self.judge(outcome);
        let mut outgoing = self.server.take_outgoing();
        for datagram in outgoing.drain(..) {
            self.leave(Side::Client, datagram);
        }
        self.server.give_back(outgoing);
        for index in 0..self.clients.len() {
            let outcome = self.clients[index].turn(self.clock);
            self.judge(outcome);
            let mut outgoing = self.clients[index].take_outgoing();
            for datagram in outgoing.drain(..) {
                self.leave(Side::Server, datagram);
            }
            self.clients[index].give_back(outgoing);
        }
    }

    fn leave(&mut self, toward: Side, datagram: Datagram) {
        self.trace
            .push(self.clock.now, Stage::Sent, toward, &datagram);
        let outcome = self.ledger.on_sent(toward, &datagram);
        self.judge(outcome);
        self.network.send(self.clock.now, toward, datagram);
    }

    fn arrive(&mut self, side: Side, datagram: Datagram) {
        self.trace
            .push(self.clock.now, Stage::Arrived, side, &datagram);
        let outcome = if side.is_server() {
            self.ledger.on_server_received(&datagram);
            self.server.on_datagram(self.clock, datagram)
        } else {
            let address = datagram.destination;
            match self
                .clients
                .iter_mut()
                .find(|client| client.socket_at(address).is_some())
            {
                Some(client) => {
                    self.ledger.on_client_received(&datagram);
                    client.on_datagram(self.clock, datagram)
                }
                // The datagram was sent to a spoofed or an abandoned address.
                None => Ok(()),
            }
        };
        self.judge(outcome);
    }

    fn next_timeout(&self) -> Option<Duration> {
        let hosts = self
            .hosts()
            .filter_map(|host| host.next_timeout(self.clock));
        hosts.chain(self.network.next_timeout()).min()
    }

    fn hosts(&self) -> impl Iterator<Item = &Host> + Clone {
        self.clients.iter().chain([&self.server])
    }

    fn judge(&self, outcome: Result<(), String>) {
        if let Err(broken) = outcome {
            self.fail(&broken);
        }
    }

    fn fail(&self, what: &str) -> ! {
        panic!(
            "{what} (seed {}, at {:?})",
            self.network.seed(),
            self.clock.now
        )
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!(
                "seed {} at {:?}:\n{}",
                self.network.seed(),
                self.clock.now,
                self.trace
            );
        }
    }
}
