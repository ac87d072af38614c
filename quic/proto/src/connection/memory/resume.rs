//! Path measurements that a connection takes over from an earlier one and leaves to a later one
//! (RFC 9959).

use std::time::Instant;

use crate::{
    connection::{Connection, start::ServerStart},
    owners::congestion::careful_resume::Stage,
    remembered::{
        known_path::{KnownPath, PathKey},
        saved_path::SavedPath,
    },
};

/// Keys under which a server remembers the path.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::connection) struct PathKeys {
    /// Key of the peer's last connection.
    before: Option<PathKey>,
    /// Key for the next connection.
    after: Option<PathKey>,
}

impl PathKeys {
    pub(in crate::connection) fn of_server(start: &ServerStart<'_>) -> Self {
        let enabled = &start.setup.transport.flight.careful_resume;
        let ticket = enabled.as_ref().and_then(|_| start.client_hello.ticket());
        Self {
            before: ticket.map(PathKey::of_ticket),
            after: None,
        }
    }
}

impl Connection {
    /// Resumes a remembered path when the handshake is complete. A ticket that was not accepted
    /// proves nothing.
    pub(in crate::connection) fn resume_path(&mut self, now: Instant) {
        let tickets = self.handshake.take_tickets();
        let Some(config) = &self.config.flight.careful_resume else {
            return;
        };
        let resumed = self.agreed.outcome.as_ref().is_some_and(|it| it.resumed);
        let keys = &mut self.memory.path_keys;
        if !self.side.is_client() {
            keys.before = keys.before.filter(|_| resumed);
            let issued = hybriq_tls::issued_ticket(&tickets).map(PathKey::of_ticket);
            // s2n-tls issues no ticket on a resumed connection: the client uses the old one again.
            keys.after = issued.or(keys.before);
        }
        let (local, peer) = (
            self.paths.active().local().ip,
            self.paths.active().peer().ip(),
        );
        let is_here = |known: &KnownPath| known.is_between(local, peer);
        let of_server = || {
            let known = self.memory.server.as_ref()?;
            let (time, lifetime) = (known.server.memory().time(now), config.lifetime());
            known
                .server
                .change(now, |record| record.take_path(time, lifetime, &is_here))
        };
        let given = config.take(now, keys.before.as_ref(), &is_here);
        if let Some(known) = given.or_else(of_server) {
            self.recovery.resume(known.observed);
        }
    }

    /// Returns the measurements of the path if careful resume is on and they are reliable.
    pub fn known_path(&self) -> Option<KnownPath> {
        Some(KnownPath {
            observed: self.recovery.observed()?,
            peer: self.paths.active().peer().ip(),
            local: self.paths.active().local().ip,
        })
    }

    /// Returns the stage of careful resume.
    pub const fn resume_stage(&self) -> Stage {
        self.recovery.resume_stage()
    }

    /// Stores the measurements for the next connection.
    pub(in crate::connection) fn remember_path(&self, now: Instant) {
        let Some(config) = &self.config.flight.careful_resume else {
            return;
        };
        let Some(path) = self.known_path() else {
            return;
        };
        if let Some(key) = self.memory.path_keys.after {
            config.put(now, key, path);
        }
        if let Some(known) = &self.memory.server {
            let path = SavedPath::new(path, known.server.memory().time(now));
            known.server.change(now, |record| record.put_path(&path));
        }
    }
}
