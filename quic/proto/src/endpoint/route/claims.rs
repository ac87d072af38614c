//! Clients in the middle of a handshake with an earlier process. Their packets carry ids that the
//! client chose, so that only the earlier process can tell whose they are: it names these clients
//! when it hands the address over.

use std::{net::SocketAddr, time::Instant};

use hashbrown::HashMap;

use super::{ids::Owner, routing::Target};
use crate::{
    endpoint::{Endpoint, Place, Routed},
    random::prf::KeyedHash,
    wire::packet::{Cid, Kind, Packets},
};

/// A connection id in use by a client that has not finished its handshake with a process.
///
/// Exhaustive: a process must hand over every field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// Connection id.
    pub dcid: Cid,
    /// Address of the client, if it chose the id: ids that clients choose are not unique.
    pub peer: Option<SocketAddr>,
}

/// Claims of earlier processes.
#[derive(Debug)]
pub(in crate::endpoint) struct Claims {
    pub(in crate::endpoint) places: HashMap<Claim, (Place, Instant), KeyedHash>,
    /// Time at which the last of them expires.
    pub(in crate::endpoint) until: Option<Instant>,
}

impl Claims {
    pub(in crate::endpoint) fn new(key: [u8; 16]) -> Self {
        Self {
            places: HashMap::with_hasher(KeyedHash(key)),
            until: None,
        }
    }

    fn insert(&mut self, claim: Claim, place: Place, until: Instant) {
        self.places.insert(claim, (place, until));
        self.until = self.until.max(Some(until));
    }

    /// Returns true if an earlier process claims the client.
    pub(in crate::endpoint) fn has(&mut self, now: Instant, dcid: &Cid, peer: SocketAddr) -> bool {
        match self.until {
            None => false,
            Some(until) if until <= now => {
                self.until = None;
                self.places = HashMap::with_hasher(self.places.hasher().clone());
                false
            }
            Some(_) => self.find(dcid, peer).is_some_and(|(_, until)| until > now),
        }
    }

    fn find(&self, dcid: &Cid, peer: SocketAddr) -> Option<(Place, Instant)> {
        let find = |peer| self.places.get(&Claim { dcid: *dcid, peer }).copied();
        find(Some(peer)).or_else(|| find(None))
    }

    /// Forgets the claims of a process that has ended.
    pub(in crate::endpoint) fn forget(&mut self, generation: u8) {
        self.places
            .retain(|_, (place, _)| place.generation != generation);
    }
}

/// Returns true for packets of a client's first flight, which may carry an id that the client chose.
pub(in crate::endpoint) fn is_first_flight(kind: Option<Kind>) -> bool {
    matches!(kind, Some(Kind::Initial | Kind::ZeroRtt))
}

impl Owner {
    /// Returns the destination of packets of this owner.
    pub(in crate::endpoint) fn routed(self, packets: Packets<'_>) -> Routed<'_> {
        match self {
            Self::Worker(worker) => Routed::Foreign(worker, packets.into_bytes()),
            Self::Earlier(place) => Routed::Earlier(place, packets.into_bytes()),
        }
    }
}

impl Endpoint {
    /// Returns the connection ids with which first packets for this process may arrive: those of
    /// all clients that have not finished their handshake, and those of connections that this end
    /// started. A later process must leave these packets to this one.
    pub fn claims(&self) -> Vec<Claim> {
        let open = |target: &Target| match target {
            Target::Connection(slot) => self
                .connections
                .get(slot.0 as usize)
                .is_some_and(|entry| entry.handshaking || entry.initial.is_none()),
            Target::Hello(_) | Target::Waiting => true,
        };
        self.routing
            .targets()
            .filter(|(_, _, target)| open(target))
            .map(|(dcid, peer, _)| Claim { dcid, peer })
            .collect()
    }

    /// Leaves a client to an earlier process until this time.
    pub fn add_claim(&mut self, claim: Claim, place: Place, until: Instant) {
        self.claims.insert(claim, place, until);
    }

    /// Returns the claims of earlier processes that have not ended.
    pub fn earlier_claims(
        &self,
        now: Instant,
    ) -> impl Iterator<Item = (Claim, Place, Instant)> + '_ {
        let all = self.claims.places.iter();
        all.map(|(claim, (place, until))| (*claim, *place, *until))
            .filter(move |(_, _, until)| *until > now)
    }

    /// Sets how to treat clients that are not known yet.
    pub const fn set_newcomers(&mut self, newcomers: Newcomers) {
        self.newcomers = newcomers;
    }

    /// Returns the number of clients whose ClientHello is incomplete or awaits a decision.
    pub fn undecided(&self) -> usize {
        self.hellos.len() + self.waiting
    }

    /// Routes packets of a client to the earlier process that claims it.
    pub(in crate::endpoint) fn claimed<'d>(
        &self,
        dcid: &Cid,
        peer: SocketAddr,
        packets: Packets<'d>,
    ) -> Routed<'d> {
        match self.claims.find(dcid, peer) {
            Some((place, _)) => Owner::Earlier(place).routed(packets),
            None => self.elsewhere(dcid, packets),
        }
    }
}

/// How to treat clients that are not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Newcomers {
    /// Their ClientHello is collected, if there is a server.
    Welcome,
    /// Their packets are dropped: a later process takes them.
    Ignored,
}
