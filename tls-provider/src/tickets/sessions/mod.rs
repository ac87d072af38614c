//! Sessions that a server stores for its tickets, for 0-RTT.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use zeroize::Zeroizing;

use crate::Lineage;

#[cfg(test)]
mod tests;

/// Maximum number of sessions. One takes about 400 bytes without a client certificate, so that a
/// full store takes 6.5 MB.
pub(crate) const CAPACITY: usize = 16 * 1024;
/// Maximum number of bytes of all sessions and their contexts, because client certificates can be
/// long.
const MAX_BYTES: usize = 16 << 20;
/// Lifetime of a ticket that names a session, as rustls announces it.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// Digest of how clients are asked for certificates.
///
/// A session resumes only where clients are asked in the same way. A resumed client presents no
/// certificate, so otherwise a client without one could pass where it is required.
pub(crate) type Audience = [u8; 16];

/// The sessions of the tickets of a server that accepts 0-RTT data.
///
/// Each ticket is removed at its first use, under one lock, so that a replayed first flight is
/// never accepted (RFC 8446 §8.1). A full store drops the oldest session, whose client then does a
/// full handshake.
pub(crate) struct Sessions {
    by_age: Mutex<ByAge>,
    capacity: usize,
}

type Id = [u8; 32];

#[derive(Default)]
struct ByAge {
    places: HashMap<Id, u64>,
    /// Sessions in insertion order; used ones are `None`.
    order: VecDeque<(Id, Option<Session>)>,
    /// Number of the first entry of `order`.
    first: u64,
    bytes: usize,
}

pub(crate) struct Session {
    pub(crate) lineage: Lineage,
    pub(crate) audience: Audience,
    pub(crate) context: Arc<[u8]>,
    pub(crate) scope: Arc<[u8]>,
    pub(crate) value: Zeroizing<Vec<u8>>,
    pub(crate) since: Instant,
}

impl Session {
    /// Counts the bytes. The tickets of one handshake share context and scope, which are counted
    /// for each ticket.
    fn bytes(&self) -> usize {
        let beside = self.context.len().saturating_add(self.scope.len());
        self.value.len().saturating_add(beside)
    }

    fn is_good(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) < LIFETIME
    }
}

impl Sessions {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            by_age: Mutex::default(),
            capacity,
        }
    }

    fn with<T>(&self, body: impl FnOnce(&mut ByAge) -> T) -> T {
        body(&mut self.by_age.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stores a session; returns false if it cannot be stored.
    pub(crate) fn put(&self, id: &[u8], session: Session) -> bool {
        let Ok(id) = Id::try_from(id) else {
            return false;
        };
        if session.bytes() > MAX_BYTES {
            return false;
        }
        self.with(|by_age| {
            if by_age.places.contains_key(&id) {
                return false;
            }
            let place = by_age.first.wrapping_add(by_age.order.len() as u64);
            by_age.bytes = by_age.bytes.saturating_add(session.bytes());
            by_age.places.insert(id, place);
            by_age.order.push_back((id, Some(session)));
            while by_age.order.len() > self.capacity || by_age.bytes > MAX_BYTES {
                by_age.drop_first();
            }
            true
        })
    }

    /// Reads a session that is stored and valid.
    pub(crate) fn peek<T>(
        &self,
        id: &[u8],
        now: Instant,
        look: impl FnOnce(&Session) -> T,
    ) -> Option<T> {
        let id = Id::try_from(id).ok()?;
        self.with(|by_age| {
            let place = *by_age.places.get(&id)?;
            let session = by_age.at(place)?.as_ref()?;
            session.is_good(now).then(|| look(session))
        })
    }

    /// Removes a session permanently if it is valid and wanted.
    pub(crate) fn take(
        &self,
        id: &[u8],
        now: Instant,
        wanted: impl FnOnce(&Session) -> bool,
    ) -> Option<Session> {
        let id = Id::try_from(id).ok()?;
        self.with(|by_age| {
            let place = *by_age.places.get(&id)?;
            if !wanted(by_age.at(place)?.as_ref()?) {
                return None;
            }
            by_age.places.remove(&id);
            let session = by_age.at(place)?.take()?;
            by_age.bytes = by_age.bytes.saturating_sub(session.bytes());
            while by_age.order.front().is_some_and(|(_, rest)| rest.is_none()) {
                by_age.drop_first();
            }
            session.is_good(now).then_some(session)
        })
    }
}

impl ByAge {
    fn at(&mut self, place: u64) -> Option<&mut Option<Session>> {
        let index = usize::try_from(place.checked_sub(self.first)?).ok()?;
        self.order.get_mut(index).map(|(_, session)| session)
    }

    fn drop_first(&mut self) {
        let Some((id, session)) = self.order.pop_front() else {
            return;
        };
        self.first = self.first.wrapping_add(1);
        if let Some(session) = session {
            self.bytes = self.bytes.saturating_sub(session.bytes());
            self.places.remove(&id);
        }
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}
