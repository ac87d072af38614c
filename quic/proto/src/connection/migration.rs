//! Moving to another path, and back where it leads nowhere (RFC 9000 §9).

use std::time::Instant;

use super::{Connection, Event, PathChange};
use crate::{
    congestion,
    error::{ConnectionError, MigrateError},
    limits,
    path::{Address, Path, Role},
    recovery::{self, PathState},
    udp::Local,
};

impl Connection {
    /// Moves a client to another of its addresses: the new path is asked for, and used once the
    /// server answered on it ([`Event::PathChanged`]). If it does not answer the connection stays
    /// where it is ([`Event::PathFailed`]).
    ///
    /// # Errors
    /// See [`MigrateError`].
    pub fn migrate(&mut self, now: Instant, local: Local) -> Result<(), MigrateError> {
        self.may_migrate()?;
        let peer = self.path.peer();
        let at = Address { peer, local };
        if self.path.is_at(at) {
            // Staying is a wish as well.
            self.drop_candidates(|path| path.local() == local);
            return Ok(());
        }
        let preferred = self.preferred_candidate();
        self.drop_candidates(|path| path.is_at(at));
        self.probe_path(now, at)?;
        if let Some(peer) = preferred {
            // Both ways to the server are tried from there, and the preferred one wins (RFC 9000
            // §9.6.3). Without an id for it there is still the other.
            let _ = self.probe_path(now, Address { peer, local });
        }
        Ok(())
    }

    /// Only the last wish counts.
    fn drop_candidates(&mut self, is_kept: impl Fn(&Path) -> bool) {
        let is_dropped = |path: &Path| path.role == Role::Candidate && !is_kept(path);
        loop {
            let place = self.paths.iter().position(is_dropped);
            let Some(place) = place else {
                return;
            };
            // Who is there already, if by another way to the server, has its will.
            match self.paths.get_mut(place) {
                Some(path) if path.local() == self.path.local() => path.role = Role::Heard,
                _ => {}
            }
            self.forget(place);
        }
    }

    fn may_migrate(&self) -> Result<(), MigrateError> {
        if self.state.is_closed() {
            return Err(MigrateError::Closed);
        }
        if self.side.is_server() {
            return Err(MigrateError::Server);
        }
        if !self.state.is_confirmed() {
            return Err(MigrateError::NotConfirmed);
        }
        let params = self.peer_params.as_ref();
        if params.is_some_and(|params| params.disable_active_migration) && !self.used_preferred() {
            return Err(MigrateError::Disabled);
        }
        Ok(())
    }

    /// Asks whether the server is to be reached that way, to move there.
    pub(super) fn probe_path(&mut self, now: Instant, at: Address) -> Result<(), MigrateError> {
        let patience = self.patience();
        if let Some(path) = self.paths.find_mut(at) {
            path.role = Role::Candidate;
            path.kept_until = None;
            path.validation.stop();
            path.validation.start(now, patience);
            return Ok(());
        }
        let Some((peer_cid, _)) = self.peer_cids.take_for_path() else {
            return Err(MigrateError::NoConnectionId);
        };
        let size = limits::MIN_DATAGRAM as u16;
        let mut path = Path::validated(at.peer, at.local, size);
        path.role = Role::Candidate;
        path.peer_cid = peer_cid;
        path.validation.start(now, patience);
        self.add_path(path);
        Ok(())
    }

    /// Our end of the path in use.
    pub const fn local(&self) -> Local {
        self.path.local()
    }

    /// Whether something is or may be sent from there: a socket is needed as long as it is.
    pub fn uses(&self, socket: crate::udp::SocketId) -> bool {
        let mut others = self.paths.iter();
        self.path.local().socket == socket || others.any(|path| path.local().socket == socket)
    }

    /// Makes another path the one in use.
    pub(super) fn use_path(&mut self, now: Instant, place: usize) {
        let (patience, kept) = (self.patience(), self.keep_time());
        let Some(mut new) = self.paths.take(place) else {
            return;
        };
        let old_cid = self.peer_cids.active_sequence();
        if !self.take_up_cid(new.peer_cid) {
            return self.drop_path(&new);
        }
        (new.role, new.kept_until) = (Role::Heard, None);
        if !new.is_validated() {
            new.validation.start(now, patience);
        }
        let mut old = std::mem::replace(&mut self.path, new);
        old.peer_cid = old_cid;
        let old_address = old.address();
        self.change_recovery(now, &mut old);
        if self.side.is_server() && old.is_validated() {
            // It may be an attacker who moved the peer (RFC 9000 §9.3.3).
            old.validation.start(now, patience);
        }
        if self.path.is_validated() {
            old.role = Role::Heard;
            old.kept_until = Some(now + kept);
            self.on_active_validated(now + kept);
        } else if old.is_validated() {
            (old.role, old.kept_until) = (Role::Fallback, None);
        }
        if old.is_validated() {
            self.add_path(old);
        } else {
            self.drop_path(&old);
        }
        self.paced_until = None;
        self.elsewhere = self.still_elsewhere(old_address);
        if self.side.is_client() {
            self.announces = true;
            if self.used_preferred() {
                self.drop_candidates(|_| false);
            }
        }
        self.header_bits.on_new_path();
        let change = PathChange::of(self.path.address());
        self.events.push_back(Event::PathChanged(change));
    }

    /// Uses that id of the peer's from now on, or another if it was retired.
    fn take_up_cid(&mut self, sequence: u64) -> bool {
        let cids = &mut self.peer_cids;
        cids.activate(sequence)
            || cids
                .take_for_path()
                .is_some_and(|(sequence, _)| cids.activate(sequence))
    }

    /// What was learned of the old path says nothing of the new one, unless they lead the same way
    /// (RFC 9000 §9.4).
    fn change_recovery(&mut self, now: Instant, old: &mut Path) {
        if self.path.resembles(old) {
            self.path.take_mtu(old);
            self.path.mtu_mut().on_left();
            self.path.saved = None;
            self.recovery.follow_path();
            return;
        }
        let saved = self.path.saved.take();
        let state = saved.map_or_else(|| self.unknown_path(now), |saved| *saved);
        old.saved = Some(Box::new(self.recovery.change_path(state)));
        old.mtu_mut().on_left();
        self.resume_mtu();
    }

    fn unknown_path(&mut self, now: Instant) -> PathState {
        let datagram_size = self.path.datagram_size();
        let initial_rtt = self.config.flight.initial_rtt;
        let controller = self.config.flight.congestion.start(&congestion::Start {
            now,
            datagram_size,
            initial_rtt,
            seed: self.paths.draw(),
        });
        let config = recovery::Config {
            side: self.side,
            initial_rtt,
            datagram_size,
            controller,
            skip_seed: None,
            ecn: self.config.flight.ecn,
            pacing: self.config.flight.pacing,
        };
        PathState::new(now, config)
    }

    /// When something is due on any path.
    #[inline]
    pub(super) fn next_path_timeout(&self) -> Option<Instant> {
        let own = self.path.validation.next_timeout();
        if self.paths.is_empty() {
            return own;
        }
        own.into_iter().chain(self.paths.next_timeout()).min()
    }

    /// Handles what is due.
    pub(super) fn on_path_timeout(&mut self, now: Instant) {
        if self.path.validation.on_timeout(now) {
            self.on_active_failed(now);
        }
        let mut place = 0;
        while let Some(path) = self.paths.get_mut(place) {
            let failed = path.validation.on_timeout(now);
            let unwanted = match path.role {
                Role::Fallback => false,
                Role::Heard => failed && !path.is_validated(),
                Role::Candidate => failed,
            };
            let expired = path.kept_until.is_some_and(|until| until <= now);
            if unwanted || expired {
                self.forget(place);
            } else {
                place += 1;
            }
        }
    }

    fn forget(&mut self, place: usize) {
        if let Some(path) = self.paths.take(place) {
            self.drop_path(&path);
        }
    }

    /// The path in use leads nowhere: back to the last that did (RFC 9000 §9.3.2). Where there is
    /// none, nobody is left to talk to.
    fn on_active_failed(&mut self, now: Instant) {
        let failed = self.path.address();
        if let Some(place) = self.paths.position_of(Role::Fallback) {
            self.path.on_failed();
            self.use_path(now, place);
            if self.path.address() == failed {
                // There was no connection id left to go back with.
                return self.end_quietly(now, ConnectionError::TimedOut);
            }
            self.path.validation.stop();
            let change = PathChange::of(failed);
            self.events.push_back(Event::PathFailed(change));
        } else if !self.path.is_validated() {
            self.end_quietly(now, ConnectionError::TimedOut);
        }
    }
}
