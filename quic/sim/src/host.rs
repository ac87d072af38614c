//! Hosts in a world: servers and clients.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    time::{Duration, Instant},
};

use hybriq_tls::Side;

use super::{App, Datagram, Echo, Progress, SeededRandom};
use hybriq_proto::{
    config::AddressValidation,
    events::agreement::Handshake,
    remembered::token::Keys,
    stats::{ConnectionStats, EndpointStats, census::Census},
    wire::error::ConnectionError,
};
use hybriq_proto::{
    connection::{Connection, Event, PathChange},
    endpoint::{
        AcceptError, Arrival, Endpoint, Incoming, Local, Routed, Setup, Slot, SocketId, StartError,
        Transmit,
    },
};

/// Maximum number of datagrams in one transmission.
const TRAIN: usize = 10;

/// Maximum number of timers of a connection due at one instant.
const TIMERS_AT_ONCE: usize = 8;

/// Maximum number of events and transmissions of a connection at one instant.
const STEPS_AT_ONCE: usize = 10_000;

/// A server's decision about a client that wants to connect.
pub enum Answer {
    /// Accepts the client, with the given setup or the endpoint's.
    Accept(Option<Setup>, Box<dyn App>),
    /// Sends a Retry packet, so that the client proves its address.
    Retry,
    /// Refuses the client.
    Refuse,
    /// Does not answer.
    Ignore,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Accept(..) => "Accept",
            Self::Retry => "Retry",
            Self::Refuse => "Refuse",
            Self::Ignore => "Ignore",
        })
    }
}

/// One end of a connection, with its history.
pub struct Peer {
    /// Side of this end.
    pub side: Side,
    /// The connection, until it is drained.
    pub connection: Option<Connection>,
    /// Time at which it began, counted from the start of the world.
    pub began_at: Duration,
    /// Time at which TLS was complete.
    pub complete_at: Option<Duration>,
    /// Time at which the handshake was confirmed.
    pub confirmed_at: Option<Duration>,
    /// Time at which the application was done.
    pub done_at: Option<Duration>,
    /// Time and reason of the end for the application.
    pub closed: Option<(Duration, ConnectionError)>,
    /// Time at which its slot was freed.
    pub drained_at: Option<Duration>,
    /// Outcome of the handshake.
    pub handshake: Option<Handshake>,
    /// Paths to which it moved, with their times.
    pub moves: Vec<(Duration, PathChange)>,
    /// Paths that failed, with their times.
    pub failed_paths: Vec<(Duration, PathChange)>,
    app: Box<dyn App>,
    last_stats: ConnectionStats,
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer").finish_non_exhaustive()
    }
}

impl Peer {
    fn new(now: Duration, connection: Connection, app: Box<dyn App>) -> Self {
        Self {
            side: connection.side(),
            connection: Some(connection),
            began_at: now,
            complete_at: None,
            confirmed_at: None,
            done_at: None,
            closed: None,
            drained_at: None,
            handshake: None,
            moves: Vec::new(),
            failed_paths: Vec::new(),
            app,
            last_stats: ConnectionStats::default(),
        }
    }

    /// Progress of the application.
    pub fn progress(&self) -> Progress {
        self.app.progress()
    }

    /// Returns its counters; the last ones if it is drained.
    pub fn stats(&self) -> ConnectionStats {
        self.connection
            .as_ref()
            .map_or(self.last_stats, Connection::stats)
    }

    /// Returns why it is over.
    pub fn close_reason(&self) -> Option<&ConnectionError> {
        self.closed.as_ref().map(|(_, reason)| reason)
    }

    fn on_event(&mut self, clock: Clock, event: Event) -> Result<(), String> {
        let Some(connection) = self.connection.as_mut() else {
            return Ok(());
        };
        if let Some((_, reason)) = &self.closed {
            return Err(format!(
                "{event:?} came after the connection closed with {reason}"
            ));
        }
        let at = Some(clock.now);
        match &event {
            Event::HandshakeComplete => {
                self.complete_at = at;
                self.handshake = connection
                    .handshake()
                    .map(|handshake| (**handshake).clone());
                if self.handshake.is_none() {
                    return Err("a complete handshake has no outcome".to_owned());
                }
            }
            Event::HandshakeConfirmed => self.confirmed_at = at,
            Event::PathChanged(path) => self.moves.push((clock.now, *path)),
            Event::PathFailed(path) => self.failed_paths.push((clock.now, *path)),
            _ => {}
        }
        self.app.on_event(clock.instant(), &event, connection);
        if self.progress() == Progress::Done && self.done_at.is_none() {
            self.done_at = at;
        }
        if let Event::Closed(reason) = event {
            self.closed = Some((clock.now, reason));
        }
        Ok(())
    }
}

/// Virtual time: the age of the world, and the instant at which it began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub(super) base: Instant,
    pub(super) now: Duration,
}

impl Clock {
    pub(super) fn instant(self) -> Instant {
        self.base + self.now
    }

    pub(super) fn since(self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.base)
    }
}

type Policy = Box<dyn FnMut(&Incoming) -> Answer + Send>;

/// A machine with one endpoint and its connections, driven in the order of a worker: receive
/// everything, handle timers, send.
pub struct Host {
    /// Address of its first socket.
    pub address: SocketAddr,
    /// Addresses of its other sockets.
    further: Vec<SocketAddr>,
    /// Addresses inside and outside of a NAT, if there is one.
    nat: Vec<(SocketAddr, SocketAddr)>,
    endpoint: Endpoint,
    /// What the endpoint held when it was new.
    fresh: Census,
    peers: Vec<Peer>,
    slots: BTreeMap<Slot, usize>,
    /// Slots during a turn; kept to reuse its memory.
    live: Vec<(Slot, usize)>,
    refused: Vec<ConnectionError>,
    foreign: u64,
    policy: Policy,
    outgoing: Vec<Datagram>,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Host {
    pub(super) fn new(address: SocketAddr, seed: u64, server: Option<Setup>) -> Self {
        let endpoint = Endpoint::new(0, Box::new(SeededRandom::new(seed)), server);
        Self {
            address,
            further: Vec::new(),
            nat: Vec::new(),
            fresh: endpoint.census(),
            endpoint,
            peers: Vec::new(),
            slots: BTreeMap::new(),
            live: Vec::new(),
            refused: Vec::new(),
            foreign: 0,
            policy: Box::new(|_| Answer::Accept(None, Box::new(Echo::new()))),
            outgoing: Vec::new(),
            buffer: vec![0; 65_536],
        }
    }

    /// Binds another socket and returns its id.
    pub(super) fn bind(&mut self, address: SocketAddr) -> SocketId {
        self.further.push(address);
        SocketId(self.further.len() as u8)
    }

    /// Returns the address of a socket.
    pub(super) fn socket(&self, id: SocketId) -> Option<SocketAddr> {
        self.sockets().nth(id.0.into())
    }

    fn sockets(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        [self.address]
            .into_iter()
            .chain(self.further.iter().copied())
    }

    /// Puts a NAT in front of a socket: its datagrams get this source address, and answers to that
    /// address arrive; datagrams to the previous address are lost.
    pub(super) fn translate(&mut self, inside: SocketAddr, outside: SocketAddr) {
        self.nat.retain(|(known, _)| *known != inside);
        self.nat.push((inside, outside));
    }

    fn outside(&self, inside: SocketAddr) -> SocketAddr {
        let known = self.nat.iter().find(|(known, _)| *known == inside);
        known.map_or(inside, |(_, outside)| *outside)
    }

    /// Returns the socket that gets datagrams to this address.
    pub(super) fn socket_at(&self, outside: SocketAddr) -> Option<SocketId> {
        let mut sockets = self.sockets();
        let place = sockets.position(|inside| self.outside(inside) == outside)?;
        Some(SocketId(place as u8))
    }

    /// Sets how to decide about clients that want to connect. Default: accept, and echo.
    pub fn on_incoming(&mut self, policy: impl FnMut(&Incoming) -> Answer + Send + 'static) {
        self.policy = Box::new(policy);
    }

    /// Makes clients prove their addresses.
    pub fn validate_addresses(&mut self, keys: impl Keys + 'static, policy: AddressValidation) {
        self.endpoint.set_address_validation(keys, policy);
    }

    /// Returns what the endpoint holds besides its connections.
    pub fn census(&self) -> Census {
        self.endpoint.census()
    }

    /// Returns true if nothing changes on its own any longer: no connection is left, and no partial
    /// ClientHello that will be forgotten later.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.endpoint.next_timeout().is_none()
    }

    pub(super) const fn fresh(&self) -> &Census {
        &self.fresh
    }

    /// Returns its endpoint, for settings before there are connections.
    pub const fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// Returns every connection it ever had, oldest first.
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// Returns the reasons of failed accepts.
    pub fn refused(&self) -> &[ConnectionError] {
        &self.refused
    }

    /// Returns the number of datagrams for other workers, which simulated machines do not have.
    pub const fn foreign(&self) -> u64 {
        self.foreign
    }

    /// Returns the counters of its endpoint.
    pub fn stats(&self) -> EndpointStats {
        self.endpoint.stats()
    }

    /// Returns the number of connections that are not drained.
    pub fn live_connections(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn connection(&mut self, index: usize) -> Option<&mut Connection> {
        self.peers.get_mut(index)?.connection.as_mut()
    }

    pub(super) fn connect(
        &mut self,
        clock: Clock,
        setup: &Setup,
        (peer, server_name): (SocketAddr, &str),
        app: Box<dyn App>,
    ) -> Result<(), StartError> {
        let (slot, connection) =
            self.endpoint
                .connect(clock.instant(), setup, peer, server_name)?;
        self.adopt(clock, slot, connection, app);
        Ok(())
    }

    pub(super) fn on_datagram(&mut self, clock: Clock, datagram: Datagram) -> Result<(), String> {
        let now = clock.instant();
        let socket = self.socket_at(datagram.destination).unwrap_or_default();
        let arrival = Arrival {
            peer: datagram.source,
            local: Local {
                socket,
                ip: self.socket(socket).map(|address| address.ip()),
            },
            ecn: datagram.ecn,
        };
        let mut payload = datagram.payload;
        match self.endpoint.on_datagram(now, &arrival, &mut payload) {
            Routed::Connection(slot, packets) => {
                let index = self.slots.get(&slot).copied();
                let connection = index.and_then(|index| self.connection(index));
                connection
                    .ok_or_else(|| format!("a datagram was routed to {slot:?}, which is free"))?
                    .on_packets(now, &arrival, packets);
                Ok(())
            }
            Routed::Incoming(incoming) => self.answer(clock, *incoming),
            Routed::Foreign(..) | Routed::Earlier(..) | Routed::Stray(_) => {
                self.foreign += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Handles everything that is due and its effects. [`Host::take_outgoing`] returns the
    /// datagrams to send.
    pub(super) fn turn(&mut self, clock: Clock) -> Result<(), String> {
        let now = clock.instant();
        if self.endpoint.next_timeout().is_some_and(|at| at <= now) {
            self.endpoint.on_timeout(now);
        }
        let mut live = std::mem::take(&mut self.live);
        live.clear();
        live.extend(self.slots.iter().map(|(slot, index)| (*slot, *index)));
        for &(slot, index) in &live {
            self.turn_connection(clock, slot, index)?;
        }
        self.live = live;
        while let Some(transmit) = self.endpoint.poll_transmit(now, &mut self.buffer) {
            self.queue(&transmit)?;
        }
        if self.endpoint.next_timeout().is_some_and(|at| at <= now) {
            return Err("the endpoint's timer is still due after it was handled".to_owned());
        }
        Ok(())
    }

    fn turn_connection(&mut self, clock: Clock, slot: Slot, index: usize) -> Result<(), String> {
        // One timer may uncover another that is due, up to a limit.
        for _ in 0..TIMERS_AT_ONCE {
            let now = clock.instant();
            let Some(connection) = self.connection(index) else {
                return Ok(());
            };
            let due = connection.next_timeout().is_some_and(|at| at <= now);
            if due {
                connection.on_timeout(now);
            }
            self.exhaust_connection(clock, slot, index)?;
            let connection = self.connection(index);
            if connection
                .and_then(|it| it.next_timeout())
                .is_none_or(|at| at > now)
            {
                return Ok(());
            }
        }
        Err(format!(
            "connection {index} of {} has a timer that never rests",
            self.address
        ))
    }

    /// Handles all events, and sends all data, of a connection.
    fn exhaust_connection(&mut self, clock: Clock, slot: Slot, index: usize) -> Result<(), String> {
        for _ in 0..STEPS_AT_ONCE {
            let Some(peer) = self.peers.get_mut(index) else {
                return Ok(());
            };
            let Some(connection) = peer.connection.as_mut() else {
                return Ok(());
            };
            let alive = self.endpoint.service(slot, connection);
            peer.last_stats = connection.stats();
            if let Some(event) = connection.poll_event() {
                peer.on_event(clock, event)?;
            } else if !alive {
                peer.connection = None;
                peer.drained_at = Some(clock.now);
                self.slots.remove(&slot);
                return Ok(());
            } else if let Some(transmit) =
                connection.poll_transmit(clock.instant(), &mut self.buffer, TRAIN)
            {
                self.queue(&transmit)?;
            } else {
                return Ok(());
            }
        }
        Err("a connection has no end of events and datagrams at one instant".to_owned())
    }

    /// Returns the time of the next turn.
    pub(super) fn next_timeout(&self, clock: Clock) -> Option<Duration> {
        let connections = self.slots.values().filter_map(|&index| {
            self.peers
                .get(index)?
                .connection
                .as_ref()
                .and_then(Connection::next_timeout)
        });
        connections
            .chain(self.endpoint.next_timeout())
            .min()
            .map(|at| clock.since(at))
    }

    pub(super) fn take_outgoing(&mut self) -> Vec<Datagram> {
        std::mem::take(&mut self.outgoing)
    }

    /// Takes back an emptied list, to reuse its memory.
    pub(super) fn give_back(&mut self, outgoing: Vec<Datagram>) {
        self.outgoing = outgoing;
    }

    fn adopt(&mut self, clock: Clock, slot: Slot, connection: Connection, app: Box<dyn App>) {
        self.slots.insert(slot, self.peers.len());
        self.peers.push(Peer::new(clock.now, connection, app));
    }

    fn answer(&mut self, clock: Clock, incoming: Incoming) -> Result<(), String> {
        match (self.policy)(&incoming) {
            Answer::Retry => {
                let retried = self.endpoint.retry(clock.instant(), incoming);
                retried.map_err(|_| "a client was to retry that would not".to_owned())?;
            }
            Answer::Refuse => self.endpoint.refuse(incoming),
            Answer::Ignore => self.endpoint.ignore(incoming),
            Answer::Accept(setup, app) => {
                match self
                    .endpoint
                    .accept(clock.instant(), incoming, setup.as_ref())
                {
                    Ok((slot, connection)) => self.adopt(clock, slot, connection, app),
                    Err(AcceptError::Refused(reason)) => self.refused.push(reason),
                    Err(error) => return Err(error.to_string()),
                }
            }
        }
        Ok(())
    }

    /// Splits a transmission into datagrams.
    fn queue(&mut self, transmit: &Transmit) -> Result<(), String> {
        let bytes = self.buffer.get(..transmit.size).unwrap_or_default();
        let segment = transmit.segment_size.unwrap_or(transmit.size);
        if bytes.is_empty() || segment == 0 {
            return Err(format!("nothing to send in {transmit:?}"));
        }
        let Some(mut source) = self.socket(transmit.local.socket) else {
            return Err(format!("there is no socket for {transmit:?}"));
        };
        source.set_ip(transmit.local.ip.unwrap_or(source.ip()));
        let source = self.outside(source);
        self.outgoing
            .extend(bytes.chunks(segment).map(|payload| Datagram {
                ecn: transmit.ecn,
                ..Datagram::new(source, transmit.peer, payload.to_vec())
            }));
        Ok(())
    }
}

/// Name in the server's certificate.
pub(super) const SERVER_NAME: &str = "localhost";
