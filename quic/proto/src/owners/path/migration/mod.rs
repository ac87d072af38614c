//! Migration to another path, and back if it fails; a server's preferred address (RFC 9000 §9).

use std::{
    net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6},
    time::Instant,
};

use super::{
    Address, Answered, Consequence, Event, Expanded, Facts, Path, PathEvent, Paths, PeerCids,
    State, Switch,
    owner::{Elsewhere, Which},
};
use crate::wire::{
    error::MigrateError,
    frame::PathResponse,
    limits,
    udp::{Local, is_answerable},
};

/// Facts of the connection that decide whether a client may move (RFC 9000 §9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Standing {
    /// True if either end closed the connection.
    pub is_closed: bool,
    /// True if the handshake is confirmed.
    pub is_confirmed: bool,
    /// True if the server forbids moves while its first address is in use (RFC 9000 §18.2).
    pub is_disabled: bool,
}

impl<S> Paths<S> {
    /// Probes a path from another of our addresses, to move there once the peer answers.
    ///
    /// # Errors
    /// The connection may not move, or the peer has supplied no connection id for another path.
    pub fn migrate(
        &mut self,
        local: Local,
        standing: Standing,
        facts: &mut Facts<'_>,
    ) -> Result<(), MigrateError> {
        self.may_migrate(standing)?;
        let peer = self.active.peer();
        let at = Address { peer, local };
        if self.active.is_at(at) {
            // A request for the current address replaces an earlier request to move.
            self.drop_candidates(facts.cids, |path| path.local() == local);
            return Ok(());
        }
        let preferred = self.preferred_candidate();
        self.drop_candidates(facts.cids, |path| path.is_at(at));
        self.probe(at, facts)?;
        if let Some(peer) = preferred {
            // Both addresses of the server are tried from there, and the preferred one wins (RFC
            // 9000 §9.6.3). If there is no id for it, the other one remains.
            let _ = self.probe(Address { peer, local }, facts);
        }
        Ok(())
    }

    fn may_migrate(&self, standing: Standing) -> Result<(), MigrateError> {
        if standing.is_closed {
            return Err(MigrateError::Closed);
        }
        if self.side.is_server() {
            return Err(MigrateError::Server);
        }
        if !standing.is_confirmed {
            return Err(MigrateError::NotConfirmed);
        }
        if standing.is_disabled && !self.used_preferred() {
            return Err(MigrateError::Disabled);
        }
        Ok(())
    }

    /// Probes the server's preferred address, if its family is the one in use, to move there once
    /// it answers (RFC 9000 §9.6.1).
    pub fn seek(&mut self, preferred: Preferred, facts: &mut Facts<'_>) {
        let local = self.active.local();
        if let Some(peer) = preferred.of_family(self.active.peer()) {
            if peer != self.active.peer() && is_answerable(peer) {
                // Usually there is an id for it; otherwise the server's address stays in use.
                let _ = self.probe(Address { peer, local }, facts);
            }
        }
    }

    /// Leaves a local address that is gone: a client's connection continues from whichever address
    /// the system chooses, with its own id (RFC 9000 §9.5). Returns `None` if the connection does
    /// not send from there, or cannot move; before the handshake is confirmed, only the choice of
    /// the address is left to the system.
    pub fn leave_local(
        &mut self,
        gone: Address,
        is_confirmed: bool,
        facts: &mut Facts<'_>,
    ) -> Option<Switch<S>> {
        if self.side.is_server() || self.active.address() != gone {
            return None;
        }
        let at = Address {
            peer: gone.peer,
            local: Local {
                socket: gone.local.socket,
                ip: None,
            },
        };
        if !is_confirmed {
            self.active.local = at.local;
            self.first.local = at.local;
            return None;
        }
        let mut new = Path::validated(at, limits::MIN_DATAGRAM as u16);
        new.state = State::Active;
        new.validation.start(facts.now, facts.waits.patience);
        let old_cid = facts.cids.active().sequence;
        if let Some(spare) = facts.cids.take_spare() {
            if facts.cids.activate(spare.sequence) {
                new.peer_cid = spare.sequence;
            }
        }
        self.active = new;
        // If there is no spare id, the old one is in use, and stays.
        if !self.others.iter().any(|other| other.peer_cid == old_cid) {
            facts.cids.retire(old_cid);
        }
        self.paced_until = None;
        self.owes_ping = true;
        self.elsewhere = None;
        self.events.push_back(PathEvent::Changed(at));
        Some(Switch::OtherWay {
            left: gone,
            saved: None,
        })
    }

    /// Returns the preferred address that a client is about to move to.
    fn preferred_candidate(&self) -> Option<SocketAddr> {
        let in_use = self.active.peer();
        let mut candidates = self.others.iter().filter(|it| it.state == State::Candidate);
        let candidate = candidates.find(|path| path.peer() != in_use);
        candidate.map(Path::peer)
    }

    /// Forgets the candidates of earlier requests.
    fn drop_candidates(&mut self, cids: &mut dyn PeerCids, is_kept: impl Fn(&Path<S>) -> bool) {
        let is_dropped = |path: &Path<S>| path.state == State::Candidate && !is_kept(path);
        loop {
            let place = self.others.iter().position(is_dropped);
            let Some(place) = place else {
                return;
            };
            let here = self.active.local();
            // The connection already uses this local address on another path: nothing failed.
            match self.others.get_mut(place) {
                Some(path) if path.local() == here => {
                    path.state = State::Heard;
                    if let Some(path) = self.others.take(place) {
                        self.drop_path(&path, cids);
                    }
                }
                _ => self.on_event(place, Event::Superseded, cids),
            }
        }
    }

    /// Probes an address, to move there once the peer answers.
    pub(super) fn probe(&mut self, at: Address, facts: &mut Facts<'_>) -> Result<(), MigrateError> {
        if let Some(place) = self.others.position(at) {
            self.on_event(place, Event::Wanted, facts.cids);
            if let Some(path) = self.others.get_mut(place) {
                path.validation.stop();
                path.validation.start(facts.now, facts.waits.patience);
            }
            return Ok(());
        }
        let Some(spare) = facts.cids.take_spare() else {
            return Err(MigrateError::NoConnectionId);
        };
        let mut path = Path::validated(at, limits::MIN_DATAGRAM as u16);
        path.state = State::Candidate;
        path.peer_cid = spare.sequence;
        path.validation.start(facts.now, facts.waits.patience);
        self.add(path, facts.cids);
        Ok(())
    }

    /// Follows the peer to another address, after a non-probing packet from there with the largest
    /// number so far (RFC 9000 §9.3).
    pub fn on_peer_moved(
        &mut self,
        dcid: &crate::wire::packet::Cid,
        facts: &mut Facts<'_>,
    ) -> Option<Switch<S>> {
        self.on_packet_elsewhere(dcid, facts);
        let place = self.place_elsewhere().filter(|_| self.side.is_server())?;
        let path = self.others.get_mut(place)?;
        path.reached_by = Some(*dcid);
        let (local, is_validated) = (path.local(), path.is_validated());
        let was_preferred = self.is_preferred(self.active.local());
        match (was_preferred, self.is_preferred(local)) {
            // A client that reached the preferred address stays there (RFC 9000 §9.6.2).
            (true, false) => None,
            // Our own address changes only once the new path is validated.
            (false, true) if !is_validated => {
                self.on_event(place, Event::Wanted, facts.cids);
                None
            }
            _ => self.switch_to(place, facts),
        }
    }

    /// Takes the answer to a challenge, received on any path. Unsolicited answers are ignored.
    pub fn on_response(&mut self, response: PathResponse, facts: &mut Facts<'_>) -> Consequence<S> {
        if let Some(answered) = self.active.validation.on_response(response.0) {
            return self.on_answered(Which::Active, answered, facts);
        }
        let mut others = self.others.iter_mut().enumerate();
        let found = others.find_map(|(place, path)| {
            let answered = path.validation.on_response(response.0)?;
            Some((place, answered))
        });
        drop(others);
        found.map_or_else(Consequence::default, |(place, answered)| {
            self.on_answered(Which::Other(place), answered, facts)
        })
    }

    fn on_answered(
        &mut self,
        which: Which,
        answered: Answered,
        facts: &mut Facts<'_>,
    ) -> Consequence<S> {
        let mut outcome = Consequence::default();
        if answered.expanded == Expanded::Full {
            self.on_full_answer();
        }
        let Some(path) = self.path_mut(which) else {
            return outcome;
        };
        path.on_validated();
        if answered.expanded == Expanded::Short {
            // The address is valid, but it is not yet known whether the path carries 1200 bytes
            // (RFC 9000 §8.2.1).
            path.validation.start(facts.now, facts.waits.patience);
        }
        let round_trip = facts.now.saturating_duration_since(answered.sent_at);
        // A path that was left is not kept any longer, nor is its id: the peer may need the id to
        // move again.
        let event = Event::Answered(answered.expanded, facts.now + limits::PATH_LIFETIME);
        match (which, path.state.after(event)) {
            (Which::Active, _) => {
                outcome.round_trip = Some(round_trip);
                if answered.expanded == Expanded::Full {
                    self.on_active_validated(facts.now + facts.waits.keep);
                }
            }
            (Which::Other(place), Some(State::Active)) => {
                outcome.switch = self.switch_to(place, facts);
                outcome.round_trip = Some(round_trip);
            }
            (Which::Other(place), _) => self.on_event(place, event, facts.cids),
        }
        outcome
    }

    /// Releases the path to fall back to.
    fn on_active_validated(&mut self, until: Instant) {
        for path in self.others.iter_mut() {
            if let Some(state) = path.state.after(Event::ActiveValidated { until }) {
                path.state = state;
            }
        }
    }

    /// Releases the path to fall back to, in favour of one that was validated later.
    fn release_fallback(&mut self, until: Instant) {
        for path in self.others.iter_mut() {
            if let Some(state) = path.state.after(Event::Replaced { until }) {
                path.state = state;
            }
        }
    }

    /// Makes another path the one in use. Returns `None` if there is no connection id for it.
    fn switch_to(&mut self, place: usize, facts: &mut Facts<'_>) -> Option<Switch<S>> {
        let patience = facts.waits.patience;
        let kept = facts.now + facts.waits.keep;
        let mut new = self.others.take(place)?;
        let old_cid = facts.cids.active().sequence;
        if !take_up_cid(new.peer_cid, facts.cids) {
            self.drop_path(&new, facts.cids);
            return None;
        }
        new.state = State::Active;
        if !new.is_validated() {
            new.validation.start(facts.now, patience);
        }
        let mut old = std::mem::replace(&mut self.active, new);
        old.peer_cid = old_cid;
        let old_address = old.address();
        let switch = self.compare_with(&mut old);
        if self.side.is_server() && old.is_validated() {
            // An attacker may have moved the peer (RFC 9000 §9.3.3).
            old.validation.start(facts.now, patience);
        }
        let left = if self.active.is_validated() {
            self.on_active_validated(kept);
            Event::LeftForValidated { until: kept }
        } else {
            Event::LeftForUnvalidated
        };
        if let Some(state) = old.state.after(left) {
            old.state = state;
        }
        if old.is_validated() && old.state == State::Fallback {
            self.release_fallback(kept);
        }
        if old.is_validated() {
            self.add(old, facts.cids);
        } else {
            self.drop_path(&old, facts.cids);
        }
        self.paced_until = None;
        self.elsewhere = self.still_elsewhere(old_address);
        if self.side.is_client() {
            self.owes_ping = true;
            if self.used_preferred() {
                self.drop_candidates(facts.cids, |_| false);
            }
        }
        let at = self.active.address();
        self.events.push_back(PathEvent::Changed(at));
        Some(switch)
    }

    /// Compares the path in use with the previous one. Measurements of the previous path do not
    /// apply to the new one, unless both lead the same way (RFC 9000 §9.4).
    fn compare_with(&mut self, old: &mut Path<S>) -> Switch<S> {
        let saved = self.active.saved.take();
        if self.active.resembles(old) {
            self.active.take_mtu(old);
            self.active.mtu_mut().on_left();
            return Switch::SameWay;
        }
        old.mtu_mut().on_left();
        Switch::OtherWay {
            left: old.address(),
            saved,
        }
    }

    /// Saves the state of the path that was in use before, unless the path is forgotten.
    pub fn save_left(&mut self, left: Address, known: S) {
        if let Some(path) = self.others.last_mut().filter(|path| path.address() == left) {
            path.saved = Some(Box::new(known));
        }
    }

    /// Returns where the current datagram came from, relative to the new path in use.
    fn still_elsewhere(&self, before: Address) -> Option<Elsewhere> {
        let at = self.elsewhere.map_or(before, |elsewhere| elsewhere.at);
        (!self.active.is_at(at)).then_some(Elsewhere { at, bytes: 0 })
    }

    /// Returns the time at which something is due on any path.
    #[inline]
    pub fn next_timeout(&self) -> Option<Instant> {
        let own = self.active.validation.next_timeout();
        if self.others.is_empty() {
            return own;
        }
        own.into_iter().chain(self.others.next_timeout()).min()
    }

    /// Handles expired timers.
    pub fn on_timeout(&mut self, facts: &mut Facts<'_>) -> Consequence<S> {
        let now = facts.now;
        let mut outcome = Consequence::default();
        if self.active.validation.on_timeout(now) {
            outcome = self.on_active_failed(facts);
        }
        let mut place = 0;
        while let Some(path) = self.others.get_mut(place) {
            let at = path.address();
            if path.validation.on_timeout(now) {
                self.on_event(place, Event::Unanswered, facts.cids);
            }
            if self.is_still(place, at) {
                self.on_event(place, Event::Tick(now), facts.cids);
            }
            if self.is_still(place, at) {
                place += 1;
            }
        }
        outcome
    }

    fn is_still(&mut self, place: usize, at: Address) -> bool {
        let path = self.others.get_mut(place);
        path.is_some_and(|path| path.address() == at)
    }

    /// Returns to the last path that was validated (RFC 9000 §9.3.2). Without one, the peer is
    /// unreachable.
    fn on_active_failed(&mut self, facts: &mut Facts<'_>) -> Consequence<S> {
        let mut outcome = Consequence::default();
        let failed = self.active.address();
        if let Some(place) = self.others.position_of(State::Fallback) {
            self.active.on_failed();
            outcome.switch = self.switch_to(place, facts);
            if self.active.address() == failed {
                // No connection id is left for the old path.
                outcome.is_end = true;
                return outcome;
            }
            self.active.validation.stop();
            self.events.push_back(PathEvent::Failed(failed));
        } else {
            outcome.is_end = !self.active.is_validated();
        }
        outcome
    }
}

/// Switches to this id of the peer, or to another if this one was retired.
fn take_up_cid(sequence: u64, cids: &mut dyn PeerCids) -> bool {
    cids.activate(sequence)
        || cids
            .take_spare()
            .is_some_and(|spare| cids.activate(spare.sequence))
}

/// Preferred addresses of a server.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Preferred {
    /// Address for IPv4.
    pub v4: Option<SocketAddrV4>,
    /// Address for IPv6.
    pub v6: Option<SocketAddrV6>,
}

impl Preferred {
    /// Returns the address of the family in use, because the other family may not be reachable from
    /// here. Dual-stack sockets write IPv4 addresses as IPv6.
    pub(in crate::owners::path) fn of_family(self, in_use: SocketAddr) -> Option<SocketAddr> {
        let is_v4 = in_use.ip().to_canonical().is_ipv4();
        match in_use {
            SocketAddr::V4(_) => self.v4.map(SocketAddr::V4),
            SocketAddr::V6(_) if is_v4 => self.v4.map(|v4| {
                let ip = IpAddr::V6(v4.ip().to_ipv6_mapped());
                SocketAddr::new(ip, v4.port())
            }),
            SocketAddr::V6(_) => self.v6.map(SocketAddr::V6),
        }
    }
}

#[cfg(test)]
mod tests;
