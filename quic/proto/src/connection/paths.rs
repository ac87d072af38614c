//! Packets that come on another path than the one in use: when the peer moved, when it only asks,
//! and what we ask in return (RFC 9000 §8.2, §9).

use std::time::Instant;

use super::{Connection, Event, PathChange};
use crate::{
    config::PeerMigration,
    frame::{PathChallenge, PathResponse},
    limits,
    packet::Cid,
    path::{Address, Answered, Expanded, Path, Patience, Role},
    udp::Arrival,
};

/// Where the datagram came that is being taken, if not on the path in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elsewhere {
    at: Address,
    bytes: u64,
}

/// Which path something belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// The one in use.
    Active,
    /// The one in that place.
    Other(usize),
}

impl Connection {
    /// Notes which path a datagram came on, and says whether it may be taken at all.
    #[inline]
    pub(super) fn admit(&mut self, arrival: &Arrival, bytes: usize) -> bool {
        let at = Address {
            peer: arrival.peer,
            local: arrival.local,
        };
        self.elsewhere = None;
        if self.path.is_at(at) {
            self.path.on_received(bytes as u64);
            self.path.learn_local(arrival.local);
            return true;
        }
        self.admit_elsewhere(at, bytes as u64)
    }

    fn admit_elsewhere(&mut self, at: Address, bytes: u64) -> bool {
        if let Some(path) = self.paths.find_mut(at) {
            path.on_received(bytes);
        } else if !self.may_come_from(at) {
            return false;
        } else if self.is_active_socket(at) {
            return true;
        }
        self.elsewhere = Some(Elsewhere { at, bytes });
        true
    }

    /// Whether it is a client's path in use although its address changed under it: it takes what
    /// comes, and sends from where it did.
    fn is_active_socket(&self, at: Address) -> bool {
        let same_socket = at.local.socket == self.path.local().socket;
        self.side.is_client() && same_socket && at.peer == self.path.peer()
    }

    /// Whether what comes from an address that is not known is looked at. A server never moves, but
    /// to its preferred address, which the client knows before (RFC 9000 §9); a client does not
    /// before the handshake is confirmed. One that was asked not to move may be behind a NAT that
    /// forgot it: that changes nothing but the port.
    fn may_come_from(&self, at: Address) -> bool {
        if self.side.is_client() {
            // It may come late, or from a server that still asks whether we are there.
            return at.peer == self.path.peer() || at.peer == self.first_peer;
        }
        let may_move = self.config.migration.of_peer == PeerMigration::Allowed
            || at.peer.ip() == self.path.peer().ip()
            || self.is_preferred(at.local);
        self.state.is_confirmed() && may_move
    }

    /// Where the datagram in hand came, seen from the path in use that is another now.
    pub(super) fn still_elsewhere(&self, before: Address) -> Option<Elsewhere> {
        let at = self.elsewhere.map_or(before, |elsewhere| elsewhere.at);
        (!self.path.is_at(at)).then_some(Elsewhere { at, bytes: 0 })
    }

    /// Remembers the path of an authentic packet that came elsewhere, before its frames are looked
    /// at. `dcid` is the id of ours that it was sent to.
    pub(super) fn hear(&mut self, now: Instant, dcid: &Cid) {
        let Some(Elsewhere { at, bytes }) = self.elsewhere else {
            return;
        };
        if self.paths.position(at).is_some() || self.side.is_client() {
            return;
        }
        let Some(peer_cid) = self.peer_cid_for(dcid) else {
            return;
        };
        let mut path = Path::new(at.peer, at.local, limits::MIN_DATAGRAM as u16);
        path.on_received(bytes);
        path.peer_cid = peer_cid;
        path.validation.start(now, self.patience());
        self.add_path(path);
    }

    /// The peer's id for a new path. Where the peer goes on under the same id, so do we: it may not
    /// know that its address changed. Where it uses another, so must we (RFC 9000 §9.5), and without
    /// a spare one the path cannot be used.
    fn peer_cid_for(&mut self, dcid: &Cid) -> Option<u64> {
        if self.path.heard_by.is_none_or(|known| known == *dcid) {
            return Some(self.peer_cids.active_sequence());
        }
        let taken = self.peer_cids.take_for_path();
        if taken.is_none()
            && let Some(left) = self.paths.take_left()
        {
            // The peer replaces its id, and asks again meanwhile.
            self.drop_path(&left);
        }
        taken.map(|(sequence, _)| sequence)
    }

    pub(super) fn add_path(&mut self, path: Path) {
        if let Some(evicted) = self.paths.add(path) {
            self.drop_path(&evicted);
        }
    }

    /// Gives back what a path had that is forgotten, and tells whoever waits to move there.
    pub(super) fn drop_path(&mut self, path: &Path) {
        if path.role == Role::Candidate {
            let change = PathChange::of(path.address());
            self.events.push_back(Event::PathFailed(change));
        }
        let shared = |other: &Path| other.peer_cid == path.peer_cid;
        if !self.paths.iter().any(shared) {
            self.peer_cids.retire(path.peer_cid);
        }
    }

    /// A packet was taken that came elsewhere, with a number larger than all before and more than
    /// probing frames: the peer is there now (RFC 9000 §9.3).
    pub(super) fn on_peer_moved(&mut self, now: Instant, dcid: &Cid) {
        self.hear(now, dcid);
        let Some(place) = self.place_elsewhere().filter(|_| self.side.is_server()) else {
            return;
        };
        let Some(path) = self.paths.get_mut(place) else {
            return;
        };
        path.heard_by = Some(*dcid);
        let (local, is_validated) = (path.local(), path.is_validated());
        let was_preferred = self.is_preferred(self.path.local());
        match (was_preferred, self.is_preferred(local)) {
            // Whoever found the way to the preferred address stays there (RFC 9000 §9.6.2).
            (true, false) => {}
            // Our own address changes only once the new path is validated.
            (false, true) if !is_validated => {
                if let Some(path) = self.paths.get_mut(place) {
                    path.role = Role::Candidate;
                }
            }
            _ => self.use_path(now, place),
        }
    }

    /// Which path the packet in hand came on.
    fn came_on(&self) -> Option<Which> {
        match self.elsewhere {
            None => Some(Which::Active),
            Some(_) => self.place_elsewhere().map(Which::Other),
        }
    }

    fn place_elsewhere(&self) -> Option<usize> {
        self.paths.position(self.elsewhere?.at)
    }

    pub(super) fn path_mut(&mut self, which: Which) -> Option<&mut Path> {
        match which {
            Which::Active => Some(&mut self.path),
            Which::Other(place) => self.paths.get_mut(place),
        }
    }

    /// Queues the answer, on the path that the challenge came on (RFC 9000 §8.2.2).
    pub(super) fn on_path_challenge(&mut self, now: Instant, dcid: &Cid, challenge: PathChallenge) {
        // The packet may have brought the id that the path needs.
        self.hear(now, dcid);
        let path = self.came_on().and_then(|which| self.path_mut(which));
        if let Some(path) = path {
            path.on_challenge(&challenge);
        }
    }

    /// Takes an answer, whatever path it came on. One to nothing that was asked is of no use.
    pub(super) fn on_path_response(&mut self, now: Instant, response: PathResponse) {
        let answered = |path: &mut Path| path.validation.on_response(response.0);
        if let Some(answered) = answered(&mut self.path) {
            return self.on_answered(now, Which::Active, answered);
        }
        let mut others = self.paths.iter_mut().enumerate();
        let found = others.find_map(|(place, path)| Some((place, answered(path)?)));
        drop(others);
        if let Some((place, answered)) = found {
            self.on_answered(now, Which::Other(place), answered);
        }
    }

    fn on_answered(&mut self, now: Instant, which: Which, answered: Answered) {
        let (patience, kept) = (self.patience(), self.keep_time());
        let Some(path) = self.path_mut(which) else {
            return;
        };
        path.on_validated();
        if answered.expanded == Expanded::Short {
            // The peer is there; whether 1200 bytes are is still to be seen (RFC 9000 §8.2.1).
            path.validation.start(now, patience);
        }
        let role = path.role;
        match which {
            Which::Active => {
                let round_trip = now.saturating_duration_since(answered.sent_at);
                self.recovery.guess_rtt(round_trip);
                if answered.expanded == Expanded::Full {
                    self.on_active_validated(now + kept);
                }
            }
            Which::Other(place) if role == Role::Candidate => {
                if answered.expanded == Expanded::Full {
                    self.use_path(now, place);
                    let round_trip = now.saturating_duration_since(answered.sent_at);
                    self.recovery.guess_rtt(round_trip);
                }
            }
            // One that was left is not kept for longer, nor its id: the peer may need it to move on.
            Which::Other(_) if role == Role::Heard => {
                path.kept_until.get_or_insert(now + limits::PATH_LIFETIME);
            }
            Which::Other(_) => {}
        }
    }

    /// Nothing needs to be fallen back to any more.
    pub(super) fn on_active_validated(&mut self, forget_at: Instant) {
        for path in self.paths.iter_mut() {
            if path.role == Role::Fallback {
                path.role = Role::Heard;
                path.kept_until = Some(forget_at);
            }
        }
    }

    /// How long validations take that start now.
    pub(super) fn patience(&self) -> Patience {
        let unknown = 3 * self.config.flight.initial_rtt;
        Patience::new(self.pto(crate::packet::Space::Data), unknown)
    }

    /// How long a path is remembered that was left: time for what is under way on it.
    pub(super) fn keep_time(&self) -> std::time::Duration {
        3 * self.pto(crate::packet::Space::Data)
    }
}
