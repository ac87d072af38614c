//! A client's memory of servers: tickets, and the group that each asked for.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use ::rustls::NamedGroup;
use ::rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls_pki_types::ServerName;

use super::chain::{self, Found};
use crate::{Group, KeyExchange, Lineage};

#[cfg(test)]
mod tests;

/// Maximum number of servers that are remembered.
const SERVERS: usize = 256;
/// Maximum number of tickets for one server. Each is used once.
const TICKETS: usize = 8;

/// Tickets and groups of servers that a client remembers between connections.
pub(super) struct Memory<T = Tls13ClientSessionValue>(Mutex<Servers<T>>);

struct Servers<T> {
    by_name: HashMap<ServerName<'static>, Server<T>>,
    /// Counter of changes, to find the server that changed longest ago.
    clock: u64,
}

struct Server<T> {
    hint: Option<NamedGroup>,
    /// Tickets, the newest last.
    tickets: VecDeque<Ticket<T>>,
    changed: u64,
}

struct Ticket<T> {
    value: T,
    lineage: Lineage,
    alpn: Arc<[u8]>,
    /// Context that the transport bound it to.
    scope: Arc<[u8]>,
}

impl<T> Default for Memory<T> {
    fn default() -> Self {
        Self(Mutex::new(Servers {
            by_name: HashMap::new(),
            clock: 0,
        }))
    }
}

impl<T> Memory<T> {
    fn with<R>(&self, body: impl FnOnce(&mut Servers<T>) -> R) -> R {
        body(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn insert(&self, name: ServerName<'static>, ticket: Ticket<T>) {
        self.with(|servers| {
            let tickets = &mut servers.change(name).tickets;
            if tickets.len() >= TICKETS {
                tickets.pop_front();
            }
            tickets.push_back(ticket);
        });
    }

    /// Takes the newest ticket of this scope that a policy lets resume.
    fn take(
        &self,
        name: &ServerName<'static>,
        policy: &KeyExchange,
        scope: &[u8],
    ) -> Option<Ticket<T>> {
        self.with(|servers| {
            let tickets = &mut servers.by_name.get_mut(name)?.tickets;
            let at = tickets
                .iter()
                .rposition(|ticket| *ticket.scope == *scope && ticket.lineage.may_resume(policy))?;
            tickets.remove(at)
        })
    }
}

impl<T> Servers<T> {
    /// Returns the entry of a server, which replaces the oldest if there is no room.
    fn change(&mut self, name: ServerName<'static>) -> &mut Server<T> {
        self.clock = self.clock.wrapping_add(1);
        if self.by_name.len() >= SERVERS && !self.by_name.contains_key(&name) {
            let oldest = self.by_name.iter().min_by_key(|(_, server)| server.changed);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.by_name.remove(&oldest);
            }
        }
        let clock = self.clock;
        let server = self.by_name.entry(name).or_insert_with(|| Server {
            hint: None,
            tickets: VecDeque::new(),
            changed: clock,
        });
        server.changed = clock;
        server
    }
}

/// The memory, as one configuration uses it.
pub(super) struct Remembered {
    pub(super) memory: Arc<Memory>,
    pub(super) policy: KeyExchange,
    /// True if sessions use tickets. All sessions store them.
    pub(super) resumes: bool,
}

impl fmt::Debug for Remembered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remembered").finish_non_exhaustive()
    }
}

impl ClientSessionStore for Remembered {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.memory
            .with(|servers| servers.change(name).hint = Some(group));
    }

    /// Returns the group that a server asked for last time. Its request was not authenticated when
    /// it was noted, so it may save a round trip but never replaces a post-quantum first flight by
    /// a classical one.
    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        let hint = self
            .memory
            .with(|servers| servers.by_name.get(name)?.hint)?;
        let first = self.policy.groups().first().copied();
        let post_quantum = |group: Group| group.is_post_quantum();
        (post_quantum(Group(hint.into())) || !first.is_some_and(post_quantum)).then_some(hint)
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, name: ServerName<'static>, value: Tls13ClientSessionValue) {
        let issue = chain::issue();
        if let Some(lineage) = issue.lineage {
            let alpn = issue.context;
            let ticket = Ticket {
                value,
                lineage,
                alpn,
                scope: issue.scope,
            };
            self.memory.insert(name, ticket);
        }
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        if !self.resumes {
            return None;
        }
        let ticket = self
            .memory
            .take(name, &self.policy, &chain::issue().scope)?;
        chain::found(Found {
            lineage: ticket.lineage,
            params: ticket.value.quic_params(),
            alpn: ticket.alpn,
        });
        Some(ticket.value)
    }
}
