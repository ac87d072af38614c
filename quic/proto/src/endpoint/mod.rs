//! One worker's share of an endpoint, without I/O: routes datagrams to connections by their ids,
//! assembles ClientHellos, and answers packets that need no connection.

mod admit;
mod answer;
mod census;
mod hello;
mod route;
mod start;
mod worst_case;

#[cfg(test)]
mod tests;

use std::{net::SocketAddr, time::Instant};

use hybriq_tls::ConfigError;
use slab::Slab;

use self::{
    admit::admission::Admission,
    answer::{answers::Answers, reset_answers::ResetLimit, resets::Resets},
    hello::{early_packets::EarlyPackets, table::HelloTable},
    route::{
        claims::{Claims, is_first_flight},
        ids::Ids,
        routing::{Routing, Target},
    },
};
pub use self::{
    admit::replay::{SpentTokens, TokenRecord},
    hello::table::Incoming,
    route::{
        Slot,
        claims::{Claim, Newcomers},
        generations::{Generations, Place},
        ids::StatelessReset,
    },
    worst_case::WorstCaseMemory,
};
pub use super::connection::{AddressProof, FirstFlight, FlightLimit, Setup};
use super::{
    connection::{Connection, Need},
    random::Random,
    stats::{DropReason, EndpointStats},
};
pub use crate::wire::udp::{Arrival, Local, SocketId, Transmit};
use crate::{
    owners::cids::ResetKey,
    wire::{
        error::ConnectionError,
        limits,
        packet::{Cid, Kind, Packets, Version, header_bits::Grease},
    },
};

/// Outcome of a datagram.
#[derive(Debug)]
#[non_exhaustive]
pub enum Routed<'d> {
    /// The packets belong to this connection: pass them to [`Connection::on_packets`].
    Connection(Slot, Packets<'d>),
    /// The datagram completed a ClientHello: a client wants to connect.
    Incoming(Box<Incoming>),
    /// The datagram belongs to the worker with this index, if it exists.
    Foreign(u8, &'d mut [u8]),
    /// The datagram belongs to a worker of an earlier process.
    Earlier(Place, &'d mut [u8]),
    /// The datagram, without an id of ours, may be the stateless reset of a connection of any other
    /// worker, also of earlier processes: pass it to all of them ([`Endpoint::on_stray`]).
    Stray(&'d mut [u8]),
    /// The datagram was processed; there may be something to transmit.
    Consumed,
    /// The datagram was useless, and counted as dropped.
    Dropped(DropReason),
}

/// Reason why an incoming connection could not be accepted.
///
/// Exhaustive: a driver must report each.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// The TLS configuration is invalid.
    #[error(transparent)]
    Tls(#[from] ConfigError),
    /// The client was refused and informed.
    #[error(transparent)]
    Refused(ConnectionError),
}

/// Reason why no connection was started.
///
/// Exhaustive: a driver must report each.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The TLS configuration is invalid.
    #[error(transparent)]
    Tls(#[from] ConfigError),
    /// A connection to that address exists, and with empty connection ids there can be no second
    /// one.
    #[error("without connection ids there can be only one connection to {0}")]
    AddressInUse(SocketAddr),
}

/// State of a connection apart from its ids.
#[derive(Debug)]
struct Entry {
    initial: Option<(Cid, SocketAddr)>,
    /// True for an accepted connection whose handshake is not complete.
    handshaking: bool,
    /// Address by which it is found if connection ids are empty.
    address: Option<SocketAddr>,
}

/// One worker's share of an endpoint.
pub struct Endpoint {
    ids: Ids,
    random: Box<dyn Random>,
    server: Option<Setup>,
    routing: Routing,
    resets: Resets,
    reset_limit: ResetLimit,
    stray_limit: ResetLimit,
    connections: Slab<Entry>,
    hellos: HelloTable,
    early: EarlyPackets,
    waiting: usize,
    /// Number of clients in `waiting` that did not prove their address.
    waiting_unproven: usize,
    backlog: usize,
    /// True while the caller has room only for clients that proved their address.
    crowded: bool,
    handshaking: usize,
    admission: Admission,
    answers: Answers,
    stats: EndpointStats,
    /// Clients with an unfinished handshake at other endpoints of the same address.
    unfinished_elsewhere: usize,
    /// Clients whose handshake an earlier process finishes.
    claims: Claims,
    newcomers: Newcomers,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Creates an endpoint without connections. `worker` is written into the connection ids that it
    /// issues. Without `server` every ClientHello is dropped.
    pub fn new(worker: u8, mut random: Box<dyn Random>, server: Option<Setup>) -> Self {
        let mut key = || {
            let mut key = [0; 16];
            random.fill(&mut key);
            key
        };
        let (routing, known_tokens, early) = (key(), key(), EarlyPackets::new(key()));
        let claims = Claims::new(key());
        Self {
            ids: Ids::new(worker, ResetKey::derived(known_tokens)),
            random,
            server,
            routing: Routing::new(routing),
            resets: Resets::new(known_tokens),
            reset_limit: ResetLimit::default(),
            stray_limit: ResetLimit::default(),
            connections: Slab::new(),
            hellos: HelloTable::default(),
            early,
            waiting: 0,
            waiting_unproven: 0,
            crowded: false,
            backlog: limits::WAITING_INCOMING,
            handshaking: 0,
            admission: Admission::default(),
            answers: Answers::default(),
            stats: EndpointStats::default(),
            unfinished_elsewhere: 0,
            claims,
            newcomers: Newcomers::Welcome,
        }
    }

    /// Replaces the setup of connections that are accepted from now on.
    pub fn set_server(&mut self, setup: Setup) {
        self.server = Some(setup);
    }

    /// Routes one datagram.
    pub fn on_datagram<'d>(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        datagram: &'d mut [u8],
    ) -> Routed<'d> {
        self.admission.at(now);
        let routed = self.route(now, arrival, datagram);
        if let Routed::Dropped(reason) = routed {
            self.stats.on_dropped(reason);
        }
        routed
    }

    fn route<'d>(&mut self, now: Instant, arrival: &Arrival, datagram: &'d mut [u8]) -> Routed<'d> {
        let Ok(packets) = Packets::read(datagram, self.ids.len()) else {
            return Routed::Dropped(DropReason::Malformed);
        };
        let dcid = packets.dcid();
        if self.ids.is_zero_length() && dcid.is_some_and(|dcid| dcid.is_empty()) {
            return match self.routing.find_address(arrival.peer) {
                Some(slot) => Routed::Connection(slot, packets),
                None => Routed::Dropped(DropReason::UnknownConnection),
            };
        }
        // Packets of a connection are left to its paths, so that this check costs them nothing.
        let is_short = packets.kind() == Some(Kind::OneRtt);
        if !is_short && !arrival.is_answerable() {
            return Routed::Dropped(DropReason::ImpossibleSource);
        }
        if let Some(ids) = packets.ids_of_unknown_version() {
            return self.on_unknown_version(arrival, packets.bytes().len(), ids);
        }
        // Only versions that we do not support may have longer ids (RFC 8999 §5.3, RFC 9000 §17.2),
        // and Version Negotiation itself is never answered (§6.1).
        let Some(dcid) = dcid else {
            return Routed::Dropped(DropReason::Malformed);
        };
        if !is_short {
            return self.route_long(now, arrival, packets, &dcid);
        }
        match self.routing.find(&dcid) {
            Some(Target::Connection(slot)) => Routed::Connection(slot, packets),
            Some(_) => Routed::Dropped(DropReason::TooEarly),
            None => {
                let token = packets.reset_token();
                match token.and_then(|token| self.resets.find(&token)) {
                    Some(slot) => Routed::Connection(slot, packets),
                    None => self.on_stranger(now, arrival, packets, &dcid),
                }
            }
        }
    }

    fn route_long<'d>(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        packets: Packets<'d>,
        dcid: &Cid,
    ) -> Routed<'d> {
        let kind = packets.kind();
        let initial = packets
            .fields()
            .filter(|fields| fields.kind == Kind::Initial)
            .filter(|_| packets.has_quic_bit() || self.takes_greased());
        match (self.routing.find_initial(dcid, arrival.peer), initial) {
            (Some(Target::Connection(slot)), _) => Routed::Connection(slot, packets),
            (Some(Target::Hello(place)), Some(_)) => {
                self.on_more_hello(now, arrival, place, packets)
            }
            // Packets coalesced with an Initial are dropped too: a client repeats its whole first
            // flight.
            (Some(_), _) => self.keep_early(now, arrival, dcid, packets),
            (None, _) if self.claims.has(now, dcid, arrival.peer) && is_first_flight(kind) => {
                self.claimed(dcid, arrival.peer, packets)
            }
            (None, Some(fields)) if !self.accepts(fields.version) => {
                let ids = [fields.dcid.as_bytes(), fields.scid.as_bytes()];
                self.on_unknown_version(arrival, packets.bytes().len(), ids)
            }
            (None, Some(_)) if self.may_be_ours(dcid, packets.bytes().len()) => {
                self.on_first_hello(now, arrival, packets)
            }
            (None, _)
                if kind == Some(Kind::ZeroRtt) && self.server.is_some() && dcid.len() >= 8 =>
            {
                self.keep_early(now, arrival, dcid, packets)
            }
            (None, _) if kind == Some(Kind::Handshake) => {
                self.on_stranger_in_handshake(now, arrival, packets, dcid)
            }
            (None, _) => self.elsewhere(dcid, packets),
        }
    }

    /// Returns true if a server accepts a client's first packets without the QUIC bit, as the
    /// client may have learned in an earlier connection (RFC 9287 §3.1).
    fn takes_greased(&self) -> bool {
        let grease = self
            .server
            .as_ref()
            .map(|setup| setup.transport.free_bits.grease);
        grease == Some(Grease::On)
    }

    /// Returns true if connections may start in this version.
    fn accepts(&self, version: Option<Version>) -> bool {
        self.server.as_ref().is_none_or(|setup| {
            version.is_some_and(|version| setup.transport.spoken.versions.contains(version))
        })
    }

    /// Returns true if an Initial packet may start a connection (RFC 9000 §7.2, §14.1).
    fn may_be_ours(&self, dcid: &Cid, len: usize) -> bool {
        self.server.is_some()
            && self.newcomers == Newcomers::Welcome
            && dcid.len() >= 8
            && len >= limits::MIN_DATAGRAM
    }

    /// Routes a packet with an unknown id to the worker that it may belong to.
    fn elsewhere<'d>(&self, dcid: &Cid, packets: Packets<'d>) -> Routed<'d> {
        match self.ids.other_owner(dcid) {
            Some(owner) => owner.routed(packets),
            None => Routed::Dropped(DropReason::UnknownConnection),
        }
    }

    fn on_unknown_version(
        &mut self,
        arrival: &Arrival,
        len: usize,
        ids: [&[u8]; 2],
    ) -> Routed<'static> {
        let Some(setup) = self.server.as_ref().filter(|_| len >= limits::MIN_DATAGRAM) else {
            return Routed::Dropped(DropReason::UnknownVersion);
        };
        let versions = setup.transport.spoken.versions;
        let mut random = [0; 4];
        self.random.fill(&mut random);
        let random = u32::from_be_bytes(random);
        if !self
            .answers
            .version_negotiation(arrival, ids, versions, random)
        {
            return Routed::Dropped(DropReason::Overload);
        }
        self.stats.version_negotiations += 1;
        Routed::Consumed
    }

    /// Performs the requests of a connection: issues and retires connection ids, and forgets a
    /// drained connection. Must be called after each use of the connection. Returns false if it is
    /// drained: its slot is free and it may be dropped.
    pub fn service(&mut self, slot: Slot, connection: &mut Connection) -> bool {
        while let Some(need) = connection.poll_need() {
            match need {
                Need::Cids => {
                    connection.issue_cids(|| self.issue());
                }
                Need::Token(ip) => {
                    let version = connection.version().number();
                    let token = self.admission.new_token(ip, version, &mut *self.random);
                    connection.issue_token(ip, token);
                }
                Need::Issued(cid) => self.routing.insert(cid, Target::Connection(slot)),
                Need::Retired(cid) => self.routing.remove(&cid),
                Need::Restart => self.restart(slot, connection),
                Need::Drained => {
                    self.forget(slot, connection);
                    return false;
                }
            }
        }
        self.resets.set(slot, connection.cids().reset_tokens());
        if !connection.is_handshaking() {
            self.on_handshake_over(slot);
        }
        true
    }

    /// Restarts a connection after Version Negotiation, under new ids.
    fn restart(&mut self, slot: Slot, connection: &mut Connection) {
        for cid in connection.cids().local() {
            self.routing.remove(&cid);
        }
        let local_cid = self.new_cid();
        let mut dcid = [0; limits::INITIAL_DCID_LEN];
        self.random.fill(&mut dcid);
        connection.restart(local_cid, Cid::from(dcid), self.new_seed());
        if !self.ids.is_zero_length() {
            self.routing.insert(local_cid, Target::Connection(slot));
        }
    }

    fn on_handshake_over(&mut self, slot: Slot) {
        if let Some(entry) = self.connections.get_mut(slot.0 as usize) {
            if entry.handshaking {
                entry.handshaking = false;
                self.handshaking = self.handshaking.saturating_sub(1);
            }
        }
    }

    fn forget(&mut self, slot: Slot, connection: &Connection) {
        self.on_handshake_over(slot);
        self.resets.set(slot, std::iter::empty());
        for cid in connection.cids().local() {
            self.routing.remove(&cid);
        }
        let entry = self.connections.try_remove(slot.0 as usize);
        if let Some((dcid, peer)) = entry.as_ref().and_then(|entry| entry.initial) {
            self.routing.remove_initial(&dcid, peer);
        }
        if let Some(peer) = entry.and_then(|entry| entry.address) {
            self.routing.remove_address(peer);
        }
        if self.connections.is_empty() {
            self.connections.shrink_to_fit();
        }
    }

    /// Writes a datagram that belongs to no connection, if one is due.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<Transmit> {
        if let Some(transmit) = self.answers.poll(out) {
            return Some(transmit);
        }
        self.acknowledge_partial_hello(now, out)
    }

    /// Returns the time at which [`Endpoint::on_timeout`] must be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        let timers = [self.hellos.next_timeout(), self.early.next_timeout()];
        timers.into_iter().flatten().min()
    }

    /// Handles expired timers. [`Endpoint::poll_transmit`] may have something to send afterwards.
    pub fn on_timeout(&mut self, now: Instant) {
        while let Some(hello) = self.hellos.pop_expired(now) {
            self.forget_routes(&hello);
        }
        self.early.on_timeout(now);
    }

    /// Returns the counters.
    pub fn stats(&self) -> EndpointStats {
        let mut stats = self.stats;
        stats += self.admission.stats;
        stats.partial_hellos = self.hellos.len() as u64;
        stats.early_clients = self.early.clients() as u64;
        stats.waiting_incoming = self.waiting as u64;
        stats.connections = self.connections.len() as u64;
        stats.handshaking = self.handshaking as u64;
        stats.retrying = u64::from(self.admission.is_load_high());
        stats
    }
}
