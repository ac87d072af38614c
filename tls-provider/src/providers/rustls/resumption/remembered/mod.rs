//! A client's memory of servers: their tickets.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use ::rustls::NamedGroup;
use ::rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls_pki_types::ServerName;

use crate::providers::rustls::locals::ticket_facts::{self, Found};
use crate::{KeyExchange, Lineage};

#[cfg(test)]
mod tests;

/// Maximum number of servers that are remembered.
const SERVERS: usize = 256;
/// Maximum number of tickets for one server. Each is used once.
const TICKETS: usize = 8;

/// Tickets of servers that a client remembers between connections.
pub(in crate::providers::rustls) struct Memory<T = Tls13ClientSessionValue>(Mutex<Servers<T>>);

struct Servers<T> {
    by_name: HashMap<ServerName<'static>, Server<T>>,
    /// Counter of changes, to find the server that changed longest ago.
    clock: u64,
}

struct Server<T> {
    /// Tickets, the newest last.
    tickets: VecDeque<Ticket<T>>,
    changed: u64,
}

struct Ticket<T> {
    value: T,
    lineage: Lineage,
    alpn: Arc<[u8]>,
    /// Context that the transport bound the ticket to.
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

    /// Takes the newest ticket of this scope, and of this lineage if one is given, that a policy
    /// allows to resume.
    fn take(
        &self,
        name: &ServerName<'static>,
        policy: &KeyExchange,
        scope: &[u8],
        lineage: Option<Lineage>,
    ) -> Option<Ticket<T>> {
        self.with(|servers| {
            let tickets = &mut servers.by_name.get_mut(name)?.tickets;
            let at = tickets.iter().rposition(|ticket| {
                *ticket.scope == *scope
                    && ticket.lineage.may_resume(policy)
                    && lineage.is_none_or(|wanted| wanted == ticket.lineage)
            })?;
            tickets.remove(at)
        })
    }
}

impl Memory {
    /// Returns true if a ticket of this server allows 0-RTT data under a policy.
    pub(in crate::providers::rustls) fn has_early(
        &self,
        name: &ServerName<'_>,
        policy: &KeyExchange,
    ) -> bool {
        self.with(|servers| {
            let server = servers.by_name.get(&name.to_owned());
            server.is_some_and(|server| {
                server.tickets.iter().any(|ticket| {
                    ticket.value.max_early_data_size() > 0 && ticket.lineage.may_resume(policy)
                })
            })
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
            tickets: VecDeque::new(),
            changed: clock,
        });
        server.changed = clock;
        server
    }
}

/// The memory as used by one configuration.
pub(in crate::providers::rustls) struct Remembered {
    pub(in crate::providers::rustls) memory: Arc<Memory>,
    pub(in crate::providers::rustls) policy: KeyExchange,
    pub(in crate::providers::rustls) tickets: Use,
}

/// How the sessions of a configuration use tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::providers::rustls) enum Use {
    /// They ignore tickets.
    Ignore,
    /// They store tickets that arrive, for other sessions.
    Store,
    /// They store them, and resume.
    Resume,
}

impl fmt::Debug for Remembered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remembered").finish_non_exhaustive()
    }
}

impl ClientSessionStore for Remembered {
    /// Remembers nothing: the request is not authenticated yet when rustls notes it. The transport
    /// remembers the group of a completed handshake.
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    /// Returns the group whose share the transport wants first.
    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        ticket_facts::shares().first.map(|group| group.0.into())
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, name: ServerName<'static>, value: Tls13ClientSessionValue) {
        let issue = ticket_facts::issue();
        let lineage = issue.lineage.filter(|_| self.tickets != Use::Ignore);
        if let Some(lineage) = lineage {
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
        if self.tickets != Use::Resume {
            return None;
        }
        let wanted = ticket_facts::issue();
        let ticket = self
            .memory
            .take(name, &self.policy, &wanted.scope, wanted.resumes)?;
        ticket_facts::found(Found {
            lineage: ticket.lineage,
            params: ticket.value.quic_params(),
            alpn: ticket.alpn,
        });
        Some(ticket.value)
    }
}
