//! Path measurements that a connection takes over from an earlier one and leaves to a later one
//! (RFC 9959).

use std::time::Instant;

use crate::{
    connection::{
        Connection,
        start::{ClientStart, ServerStart},
    },
    owners::congestion::careful_resume::Stage,
    remembered::known_path::{KnownPath, PathKey},
};

/// Keys under which the path is remembered.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::connection) struct PathKeys {
    /// Key of the peer's last connection.
    before: Option<PathKey>,
    /// Key for the next connection.
    after: Option<PathKey>,
}

impl PathKeys {
    pub(in crate::connection) fn of_client(start: &ClientStart<'_>) -> Self {
        if start.setup.transport.flight.careful_resume.is_none() {
            return Self::default();
        }
        let key = PathKey::of_server(start.server_name, start.peer.ip());
        Self {
            before: Some(key),
            after: Some(key),
        }
    }

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
        if let Some(known) = config.take(now, keys.before.as_ref(), &is_here) {
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
        if let Some(config) = &self.config.flight.careful_resume {
            if let (Some(key), Some(path)) = (self.memory.path_keys.after, self.known_path()) {
                config.put(now, key, path);
            }
        }
    }
}
