use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

#[cfg(test)]
mod tests;

/// Server names whose tickets are remembered.
const REMEMBERED_SERVERS: usize = 256;
/// A ticket is good for seven days at most (RFC 8446 §4.6.1).
const LONGEST_LIFETIME: Duration = Duration::from_hours(7 * 24);

/// The newest ticket of each server.
///
/// A ticket stays until a newer one replaces it, because s2n-tls as a server issues none on a
/// resumed connection; with single use every other handshake would be a full one.
#[derive(Default)]
pub(super) struct Tickets(Mutex<HashMap<String, Ticket>>);

struct Ticket {
    state: Zeroizing<Vec<u8>>,
    received: Instant,
    expires: Instant,
}

impl Tickets {
    /// Remembers a ticket, in place of the oldest one if there is no room.
    pub(super) fn insert(&self, name: &str, state: Vec<u8>, lifetime: Duration, now: Instant) {
        let expires = now + lifetime.min(LONGEST_LIFETIME);
        let ticket = Ticket {
            state: Zeroizing::new(state),
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

    /// A ticket that is still good.
    pub(super) fn get(&self, name: &str, now: Instant) -> Option<Zeroizing<Vec<u8>>> {
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tickets.get(name)?.expires <= now {
            tickets.remove(name);
            return None;
        }
        tickets.get(name).map(|ticket| ticket.state.clone())
    }
}
