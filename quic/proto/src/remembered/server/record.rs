//! The record of one server.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use zeroize::Zeroizing;

use crate::{
    remembered::{known_path::KnownPath, origin::OriginRecord, saved_path::SavedPath},
    wire::{limits, packet::Version},
};

/// What a client remembers of a server: the QUIC version of the last connection, tokens for the next
/// ones, the downgrade alarm and the key-exchange group of each port, what the paths to it carried,
/// TLS sessions that can be resumed, alternative services, and the settings of HTTP/3.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ServerRecord {
    pub(super) version: Option<Version>,
    /// Tokens, each valid in one version (RFC 9369 §5), the newest last.
    pub(super) tokens: Vec<(Version, Bytes)>,
    /// Records by port, the one that changed last at the end.
    pub(super) origins: Vec<(u16, OriginRecord)>,
    /// Paths between different addresses, the newest last.
    pub(super) paths: Vec<SavedPath>,
    /// Sessions of different policies, the newest last.
    pub(super) sessions: Vec<Session>,
    /// Alternative services by port, the one that changed last at the end.
    pub(super) alternatives: Vec<(u16, Bytes)>,
    /// Settings of HTTP/3 on the last connection, empty if they are unknown.
    pub(super) settings: Bytes,
}

/// A TLS session, for clients with one policy.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) policy: [u8; 16],
    pub(super) bytes: Zeroizing<Vec<u8>>,
}

impl ServerRecord {
    /// Number of tokens that are kept; a new one replaces the oldest.
    pub const TOKENS: usize = 4;

    /// Number of ports that are kept; a new one replaces the one that changed longest ago among those
    /// that are not pinned. If all are pinned, it is not kept.
    pub const PORTS: usize = 64;

    /// Number of paths that are kept; a new one replaces the oldest.
    pub const PATHS: usize = 4;

    /// Number of TLS sessions that are kept, each for clients of another policy; a new one replaces the
    /// oldest.
    pub const SESSIONS: usize = 4;

    /// Bytes of the largest TLS session that is kept.
    pub const SESSION_LEN: usize = 16 * 1024;

    /// Number of ports whose alternative services are kept; a new one replaces the one that changed longest
    /// ago.
    pub const ALTERNATIVES: usize = 4;

    /// Bytes of the largest alternative services of a port that are kept.
    pub const ALTERNATIVES_LEN: usize = 2048;

    /// Bytes of the largest settings of HTTP/3 that are kept.
    pub const SETTINGS_LEN: usize = 1024;

    /// Returns the QUIC version of the last connection.
    pub const fn version(&self) -> Option<Version> {
        self.version
    }

    /// Returns the number of tokens.
    pub fn tokens(&self) -> usize {
        self.tokens.len()
    }

    /// Returns the number of TLS sessions.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the alternative services of a port (RFC 7838), in the form that the client of HTTP gave them.
    pub fn alternatives(&self, port: u16) -> Option<&[u8]> {
        let mut known = self.alternatives.iter();
        known.find(|(of, _)| *of == port).map(|(_, bytes)| &**bytes)
    }

    /// Stores the alternative services of a port instead of earlier ones, or none if there are no bytes. More than
    /// [`ALTERNATIVES_LEN`](Self::ALTERNATIVES_LEN) bytes are ignored.
    pub fn put_alternatives(&mut self, port: u16, bytes: &[u8]) {
        self.alternatives.retain(|(of, _)| *of != port);
        if !bytes.is_empty() && bytes.len() <= Self::ALTERNATIVES_LEN {
            let value = (port, Bytes::copy_from_slice(bytes));
            push(&mut self.alternatives, Self::ALTERNATIVES, value);
        }
    }

    /// Returns the settings of HTTP/3 on the last connection, by which 0-RTT data is sent (RFC 9114 §7.2.4.2), in the
    /// form that the client of HTTP gave them.
    pub fn settings(&self) -> Option<&[u8]> {
        (!self.settings.is_empty()).then_some(&self.settings)
    }

    /// Stores the settings of HTTP/3, or that they are unknown if there are no bytes or more than
    /// [`SETTINGS_LEN`](Self::SETTINGS_LEN).
    pub fn put_settings(&mut self, bytes: &[u8]) {
        self.settings = match bytes.len() {
            1..=Self::SETTINGS_LEN => Bytes::copy_from_slice(bytes),
            _ => Bytes::new(),
        };
    }

    /// Returns the paths that were measured, the newest last.
    pub fn paths(&self) -> &[SavedPath] {
        &self.paths
    }

    /// Returns the ports, each with its group and its downgrade alarm.
    pub fn ports(&self) -> impl Iterator<Item = (u16, OriginRecord)> + '_ {
        self.origins.iter().copied()
    }

    /// Returns the group and the downgrade alarm of a port.
    pub fn port(&self, port: u16) -> OriginRecord {
        let mut origins = self.origins.iter();
        let found = origins.find(|(known, _)| *known == port);
        found.map(|(_, record)| *record).unwrap_or_default()
    }

    /// Returns true if the server has to be post-quantum at this time, on one of its ports.
    pub fn is_pinned(&self, now: SystemTime) -> bool {
        self.origins.iter().any(|(_, record)| record.is_pinned(now))
    }

    /// Returns true if nothing is remembered that matters at this time.
    pub fn is_empty(&self, now: SystemTime) -> bool {
        self.has_only_ports() && self.origins.iter().all(|(_, record)| record.is_empty(now))
    }

    /// Returns true if [`keep_pins`](Self::keep_pins) would change nothing.
    pub fn has_only_pins(&self, now: SystemTime) -> bool {
        self.has_only_ports() && self.origins.iter().all(|(_, record)| record.is_pinned(now))
    }

    /// Returns true if nothing is remembered but what belongs to ports.
    fn has_only_ports(&self) -> bool {
        let Self {
            version,
            tokens,
            origins: _,
            paths,
            sessions,
            alternatives,
            settings,
        } = self;
        version.is_none()
            && tokens.is_empty()
            && paths.is_empty()
            && sessions.is_empty()
            && alternatives.is_empty()
            && settings.is_empty()
    }

    /// Forgets all but the ports that have to be post-quantum at this time: for stores that are full.
    pub fn keep_pins(&mut self, now: SystemTime) {
        let mut origins = std::mem::take(&mut self.origins);
        origins.retain(|(_, record)| record.is_pinned(now));
        *self = Self {
            origins,
            ..Self::default()
        };
    }

    /// Forgets that a port has to be post-quantum.
    pub fn unpin(&mut self, port: u16) {
        for (_, record) in self.origins.iter_mut().filter(|(known, _)| *known == port) {
            record.unpin();
        }
        self.origins
            .retain(|(_, record)| *record != OriginRecord::default());
    }

    /// Stores the newest TLS session for clients of a policy, replacing an older one. A session of
    /// more than [`SESSION_LEN`](Self::SESSION_LEN) bytes is dropped.
    pub fn put_session(&mut self, policy: [u8; 16], bytes: &[u8]) {
        self.sessions.retain(|session| session.policy != policy);
        if !bytes.is_empty() && bytes.len() <= Self::SESSION_LEN {
            let bytes = Zeroizing::new(bytes.to_vec());
            push(
                &mut self.sessions,
                Self::SESSIONS,
                Session { policy, bytes },
            );
        }
    }

    /// Removes the TLS session for clients of a policy and returns it.
    pub fn take_session(&mut self, policy: [u8; 16]) -> Option<Vec<u8>> {
        let mut sessions = self.sessions.iter();
        let place = sessions.position(|session| session.policy == policy)?;
        let mut session = self.sessions.remove(place);
        Some(std::mem::take(&mut *session.bytes))
    }

    pub(crate) const fn set_version(&mut self, version: Version) {
        self.version = Some(version);
    }

    /// Stores a token for connections of one version. One so large that it would crowd out the
    /// ClientHello is dropped, and so is one that is stored already.
    pub(crate) fn put_token(&mut self, version: Version, token: Bytes) {
        let fits = !token.is_empty() && token.len() <= limits::TOKEN_LEN;
        let token = (version, token);
        if fits && !self.tokens.contains(&token) {
            push(&mut self.tokens, Self::TOKENS, token);
        }
    }

    /// Removes the newest token for a version, which is valid for longest, and returns it: each is for
    /// one connection.
    pub(crate) fn take_token(&mut self, version: Version) -> Option<Bytes> {
        let place = self.tokens.iter().rposition(|(of, _)| *of == version)?;
        Some(self.tokens.remove(place).1)
    }

    /// Changes the record of a port.
    pub(crate) fn change_port(
        &mut self,
        now: SystemTime,
        port: u16,
        change: impl FnOnce(&mut OriginRecord),
    ) {
        let mut record = self.port(port);
        self.origins.retain(|(known, _)| *known != port);
        change(&mut record);
        if record.is_empty(now) {
            return;
        }
        if self.origins.len() >= Self::PORTS {
            let mut origins = self.origins.iter();
            let Some(place) = origins.position(|(_, record)| !record.is_pinned(now)) else {
                return;
            };
            self.origins.remove(place);
        }
        self.origins.push((port, record));
    }

    /// Stores what a path carried, replacing what was measured between the same addresses. An impossible
    /// path is dropped, so that it never spoils the bytes of the memory.
    pub(crate) fn put_path(&mut self, path: &SavedPath) {
        let Ok(path) = SavedPath::from_bytes(&path.to_bytes()) else {
            return;
        };
        let known = path.known();
        let is_other = |of: &SavedPath| !of.known().is_between(known.local, known.peer);
        self.paths.retain(is_other);
        push(&mut self.paths, Self::PATHS, path);
    }

    /// Removes a path that may be the current one and returns it, so that no other connection uses it at
    /// the same time. One that is too old is removed too, but not returned.
    pub(crate) fn take_path(
        &mut self,
        now: SystemTime,
        lifetime: Duration,
        is_here: &dyn Fn(&KnownPath) -> bool,
    ) -> Option<KnownPath> {
        let place = self.paths.iter().rposition(|path| is_here(&path.known()))?;
        let path = self.paths.remove(place);
        let is_fresh = path.age(now).is_some_and(|age| age < lifetime);
        is_fresh.then(|| path.known())
    }
}

/// Appends a value to a list of at most `most`; the first one makes room.
fn push<T>(list: &mut Vec<T>, most: usize, value: T) {
    if list.len() >= most {
        list.remove(0);
    }
    list.push(value);
}

impl fmt::Debug for ServerRecord {
    /// Shows no secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerRecord")
            .field("version", &self.version)
            .field("tokens", &self.tokens.len())
            .field("ports", &self.origins)
            .field("paths", &self.paths)
            .field("sessions", &self.sessions.len())
            .field("alternatives", &self.alternatives.len())
            .field("settings", &self.settings.len())
            .finish()
    }
}
