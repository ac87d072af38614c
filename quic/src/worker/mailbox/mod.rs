//! How handles and other workers reach a worker.

use std::{
    mem,
    net::SocketAddr,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;

use super::{
    attempt::Promise,
    connection::{CallWorker, Migration, SharedConnection},
    stats::EndpointStats,
    waiters::{lock, set_waker},
};
use crate::udp::Socket;
use hybriq_proto::endpoint::{Arrival, Incoming, Setup};

/// Datagrams that may wait at a worker that another one handed them to.
const FOREIGN_DATAGRAMS: usize = 1024;

/// How handles and other workers reach a worker.
pub(crate) struct Mailbox {
    requests: Mutex<Requests>,
    stats: Mutex<EndpointStats>,
}

/// What waits for a worker.
#[derive(Default)]
pub(super) struct Requests {
    /// Connections that the application touched.
    pub(super) dirty: Vec<Arc<SharedConnection>>,
    /// What else the application wants.
    pub(super) commands: Vec<Command>,
    /// Datagrams that came to another worker's socket.
    pub(super) foreign: Vec<(Arrival, Vec<u8>)>,
    /// Set while the worker sleeps. Whoever takes it wakes the worker, once.
    waker: Option<Waker>,
    ended: bool,
}

/// What the application wants of a worker.
pub(crate) enum Command {
    /// Start a connection.
    Connect {
        /// What with.
        setup: Setup,
        /// Where to.
        peer: SocketAddr,
        /// Whom to expect there.
        server_name: String,
        /// Who waits for it.
        promise: Promise,
    },
    /// Accept a connection.
    Accept {
        /// Which.
        incoming: Incoming,
        /// What with, if not with the endpoint's own.
        setup: Option<Setup>,
        /// Who waits for it.
        promise: Promise,
    },
    /// Have a client prove its address.
    Retry(Incoming),
    /// Refuse a connection.
    Refuse(Incoming),
    /// Forget about a connection.
    Ignore(Incoming),
    /// Migrate a connection to a socket of its own.
    Migrate(Migration),
    /// Move all connections, and let new ones leave from there.
    Rebind(Socket),
    /// Close all connections and take no new ones.
    Close(u64, Bytes),
    /// The last handle of the endpoint is gone.
    Release,
}

impl Command {
    /// Returns true if it starts a handshake, which costs more than anything else.
    pub(super) const fn starts_handshake(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::Accept { .. })
    }
}

impl Requests {
    fn is_empty(&self) -> bool {
        self.dirty.is_empty() && self.commands.is_empty() && self.foreign.is_empty()
    }
}

impl Mailbox {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            requests: Mutex::default(),
            stats: Mutex::default(),
        })
    }

    /// Hands a command over; `false` when the worker has ended, and the command was dropped.
    pub(crate) fn push(&self, command: Command) -> bool {
        let mut requests = lock(&self.requests);
        if requests.ended {
            drop(requests);
            return false;
        }
        requests.commands.push(command);
        notify(requests.waker.take(), requests);
        true
    }

    /// Hands a datagram over that came to the wrong worker; `false` when it was dropped.
    pub(super) fn push_foreign(&self, arrival: Arrival, datagram: &[u8]) -> bool {
        let mut requests = lock(&self.requests);
        if requests.ended || requests.foreign.len() >= FOREIGN_DATAGRAMS {
            return false;
        }
        requests.foreign.push((arrival, datagram.to_vec()));
        notify(requests.waker.take(), requests);
        true
    }

    /// Whether something waits; if not, the task is woken when something does.
    pub(super) fn poll_requests(&self, cx: &Context<'_>) -> Poll<()> {
        let mut requests = lock(&self.requests);
        if requests.is_empty() {
            let replaced = set_waker(&mut requests.waker, cx);
            drop(requests);
            drop(replaced);
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }

    /// Takes everything that waits, in exchange for empty lists. `false` when there was nothing.
    pub(super) fn take(&self, taken: &mut Requests) -> bool {
        let mut requests = lock(&self.requests);
        if requests.is_empty() {
            return false;
        }
        mem::swap(&mut requests.dirty, &mut taken.dirty);
        mem::swap(&mut requests.commands, &mut taken.commands);
        mem::swap(&mut requests.foreign, &mut taken.foreign);
        true
    }

    /// Takes no more requests, if none waits.
    pub(super) fn try_end(&self) -> bool {
        let mut requests = lock(&self.requests);
        requests.ended |= requests.is_empty();
        requests.ended
    }

    /// Takes no more requests; gives what waits.
    pub(super) fn end(&self) -> Requests {
        let mut requests = lock(&self.requests);
        let waiting = mem::take(&mut *requests);
        requests.ended = true;
        waiting
    }

    pub(super) fn set_stats(&self, stats: EndpointStats) {
        *lock(&self.stats) = stats;
    }

    /// The worker's counters as of its last turn.
    pub(crate) fn stats(&self) -> EndpointStats {
        *lock(&self.stats)
    }
}

impl CallWorker for Mailbox {
    fn touch(&self, connection: Arc<SharedConnection>) {
        let mut requests = lock(&self.requests);
        if requests.ended {
            return;
        }
        requests.dirty.push(connection);
        notify(requests.waker.take(), requests);
    }

    fn migrate(&self, migration: Migration) -> bool {
        self.push(Command::Migrate(migration))
    }
}

/// Wakes the worker once the lock is released.
fn notify(waker: Option<Waker>, guard: std::sync::MutexGuard<'_, Requests>) {
    drop(guard);
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests;
