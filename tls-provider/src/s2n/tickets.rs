use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use crate::{KeyExchange, Lineage};

#[cfg(test)]
mod tests;

/// Server names whose tickets are remembered.
const REMEMBERED_SERVERS: usize = 256;
/// A ticket is good for seven days at most (RFC 8446 §4.6.1).
const LONGEST_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// The newest ticket of each server.
///
/// A ticket stays until a newer one replaces it, because s2n-tls as a server issues none on a
/// resumed connection; with single use every other handshake would be a full one.
#[derive(Default)]
pub(super) struct Tickets(Mutex<HashMap<String, Ticket>>);

/// What resuming a session takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) bytes: Zeroizing<Vec<u8>>,
    pub(super) lineage: Lineage,
    /// What the transport bound it to.
    pub(super) scope: Arc<[u8]>,
}

struct Ticket {
    state: State,
    received: Instant,
    expires: Instant,
}

impl Tickets {
    /// Remembers a ticket, in place of the oldest one if there is no room.
    pub(super) fn insert(&self, name: &str, state: State, lifetime: Duration, now: Instant) {
        let expires = now + lifetime.min(LONGEST_LIFETIME);
        let ticket = Ticket {
            state,
            received: now,
            expires,
        };
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tickets.len() >= REMEMBERED_SERVERS && !tickets.contains_key(name) {
            let oldest = tickets.iter().min_by_key(|(_, ticket)| ticket.received);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                tickets.remove(&oldest);
            }
        }
        tickets.insert(name.to_owned(), ticket);
    }

    /// A ticket of this scope that is still good and that a policy lets resume.
    pub(super) fn get(
        &self,
        name: &str,
        (policy, scope): (&KeyExchange, &[u8]),
        now: Instant,
    ) -> Option<State> {
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tickets.get(name)?.expires <= now {
            tickets.remove(name);
            return None;
        }
        let state = &tickets.get(name)?.state;
        (*state.scope == *scope && state.lineage.may_resume(policy)).then(|| state.clone())
    }
}
