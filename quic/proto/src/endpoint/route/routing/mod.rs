//! Routing table from connection ids and addresses to connections.

use std::{hash::BuildHasher, net::SocketAddr};

use hashbrown::HashMap;

use super::parts::Parts;
use crate::{
    endpoint::Slot,
    random::prf::{KeyedHash, PlainHash},
    wire::packet::Cid,
};

/// Destination of a connection id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint) enum Target {
    /// A connection.
    Connection(Slot),
    /// A partial ClientHello, by its place in the table.
    Hello(usize),
    /// A complete ClientHello that waits for a decision.
    Waiting,
}

/// Finds the destination of a datagram by its destination connection id.
///
/// Our ids are unique. Ids that clients chose for their first Initial are not, so these are looked
/// up together with the address.
#[derive(Debug)]
pub(in crate::endpoint) struct Routing {
    /// Our ids, which are random: no peer can choose them.
    pub(in crate::endpoint) issued: Parts<Cid, Target, PlainHash>,
    pub(in crate::endpoint) initial: Parts<(Cid, SocketAddr), Target, KeyedHash>,
    /// Connections by peer address, if our ids are empty.
    pub(in crate::endpoint) addresses: HashMap<SocketAddr, Slot, KeyedHash>,
}

impl Routing {
    pub(in crate::endpoint) fn new(key: [u8; 16]) -> Self {
        Self {
            issued: Parts::new(PlainHash),
            initial: Parts::new(KeyedHash(key)),
            addresses: HashMap::with_hasher(KeyedHash(key)),
        }
    }

    pub(in crate::endpoint) fn find(&self, cid: &Cid) -> Option<Target> {
        self.issued.get(cid).copied()
    }

    pub(in crate::endpoint) fn find_initial(&self, cid: &Cid, peer: SocketAddr) -> Option<Target> {
        self.issued
            .get(cid)
            .or_else(|| self.initial.get(&(*cid, peer)))
            .copied()
    }

    /// Returns the ids in use, with the client's address for those that a client chose.
    pub(in crate::endpoint) fn targets(
        &self,
    ) -> impl Iterator<Item = (Cid, Option<SocketAddr>, Target)> + '_ {
        let issued = self.issued.iter();
        let initial = self.initial.iter();
        issued
            .map(|(cid, target)| (*cid, None, *target))
            .chain(initial.map(|((cid, peer), target)| (*cid, Some(*peer), *target)))
    }

    pub(in crate::endpoint) fn insert(&mut self, cid: Cid, target: Target) {
        self.issued.insert(cid, target);
    }

    pub(in crate::endpoint) fn remove(&mut self, cid: &Cid) {
        self.issued.remove(cid);
    }

    pub(in crate::endpoint) fn insert_initial(
        &mut self,
        cid: Cid,
        peer: SocketAddr,
        target: Target,
    ) {
        self.initial.insert((cid, peer), target);
    }

    pub(in crate::endpoint) fn remove_initial(&mut self, cid: &Cid, peer: SocketAddr) {
        self.initial.remove(&(*cid, peer));
    }

    pub(in crate::endpoint) fn find_address(&self, peer: SocketAddr) -> Option<Slot> {
        self.addresses.get(&peer).copied()
    }

    pub(in crate::endpoint) fn insert_address(&mut self, peer: SocketAddr, slot: Slot) {
        self.addresses.insert(peer, slot);
    }

    pub(in crate::endpoint) fn remove_address(&mut self, peer: SocketAddr) {
        self.addresses.remove(&peer);
        shrink(&mut self.addresses);
    }
}

/// Releases memory after a burst.
fn shrink<K: Eq + std::hash::Hash, V, S: BuildHasher>(map: &mut HashMap<K, V, S>) {
    if map.capacity() > 1024 && map.len() < map.capacity() / 8 {
        map.shrink_to(map.len() * 2);
    }
}

#[cfg(test)]
mod tests;
