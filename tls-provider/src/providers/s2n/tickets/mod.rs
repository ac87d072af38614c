//! A client's sessions, between connections and in the application's store.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use zeroize::Zeroizing;

use crate::{KeyExchange, Lineage, SessionKey, SessionStore};

#[cfg(test)]
mod tests;

/// Longest lifetime of a ticket (RFC 8446 §4.6.1).
const LONGEST_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// First bytes of a stored session. Sessions that begin differently are of another version or
/// provider.
const MAGIC: &[u8] = b"hybriq s2n-tls 1\n";
const CLASSICAL: u8 = 0;
const POST_QUANTUM: u8 = 1;

/// The newest ticket of each server.
///
/// A ticket stays until a newer one replaces it, because an s2n-tls server issues none on a resumed
/// connection; if tickets were used only once, every other handshake would be a full one.
#[derive(Clone)]
pub(super) struct Tickets {
    store: Arc<dyn SessionStore>,
    policy: [u8; 16],
}

/// A session that can be resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) bytes: Zeroizing<Vec<u8>>,
    pub(super) lineage: Lineage,
    /// Context that the transport bound the session to.
    pub(super) scope: Arc<[u8]>,
}

/// What a ticket must be good for.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) policy: &'a KeyExchange,
    pub(super) scope: &'a [u8],
}

impl Tickets {
    /// Makes the tickets of clients with a policy.
    pub(super) fn new(store: Arc<dyn SessionStore>, policy: [u8; 16]) -> Self {
        Self { store, policy }
    }

    const fn key<'a>(&self, server_name: &'a str) -> SessionKey<'a> {
        SessionKey {
            server_name,
            policy: self.policy,
        }
    }

    /// Stores a ticket, replacing an older one for the same server.
    pub(super) fn insert(&self, name: &str, state: &State, lifetime: Duration, now: SystemTime) {
        let expires = now + lifetime.min(LONGEST_LIFETIME);
        if let Some(session) = encode(state, expires) {
            self.store.put(self.key(name), &session);
        }
    }

    /// Returns a ticket of this scope that is still valid and that a policy allows to resume.
    pub(super) fn get(&self, name: &str, wanted: Wanted<'_>, now: SystemTime) -> Option<State> {
        let state = self.peek(name, now)?;
        let matches = *state.scope == *wanted.scope && state.lineage.may_resume(wanted.policy);
        matches.then_some(state)
    }

    /// Returns the ticket for a server, of any scope, that is still valid.
    pub(super) fn peek(&self, name: &str, now: SystemTime) -> Option<State> {
        let session = Zeroizing::new(self.store.take(self.key(name))?);
        let (state, expires) = decode(&session)?;
        if expires <= now {
            return None;
        }
        self.store.put(self.key(name), &session);
        Some(state)
    }
}

fn encode(state: &State, expires: SystemTime) -> Option<Zeroizing<Vec<u8>>> {
    let expires = expires.duration_since(UNIX_EPOCH).ok()?.as_secs();
    let scope_len = u16::try_from(state.scope.len()).ok()?;
    let len = MAGIC.len() + 11 + state.scope.len() + state.bytes.len();
    let mut session = Zeroizing::new(Vec::with_capacity(len));
    session.extend_from_slice(MAGIC);
    session.push(match state.lineage {
        Lineage::Classical => CLASSICAL,
        Lineage::PostQuantum => POST_QUANTUM,
    });
    session.extend_from_slice(&expires.to_be_bytes());
    session.extend_from_slice(&scope_len.to_be_bytes());
    session.extend_from_slice(&state.scope);
    session.extend_from_slice(&state.bytes);
    Some(session)
}

fn decode(session: &[u8]) -> Option<(State, SystemTime)> {
    let (lineage, rest) = session.strip_prefix(MAGIC)?.split_first()?;
    let lineage = match *lineage {
        CLASSICAL => Lineage::Classical,
        POST_QUANTUM => Lineage::PostQuantum,
        _ => return None,
    };
    let (expires, rest) = rest.split_first_chunk()?;
    let expires = UNIX_EPOCH.checked_add(Duration::from_secs(u64::from_be_bytes(*expires)))?;
    let (scope_len, rest) = rest.split_first_chunk()?;
    let (scope, bytes) = rest.split_at_checked(u16::from_be_bytes(*scope_len).into())?;
    let state = State {
        bytes: Zeroizing::new(bytes.to_vec()),
        lineage,
        scope: scope.into(),
    };
    Some((state, expires))
}
