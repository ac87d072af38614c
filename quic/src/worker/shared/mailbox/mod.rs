//! Messages to a worker from handles and other workers.

use std::{
    io, mem,
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use hybriq_proto::stats::EndpointStats;
use hybriq_proto::{
    endpoint::{Arrival, Incoming, Setup},
    stats::census::Census,
    wire::error::SystemError,
};
use hybriq_tls::{Provider, Side};
use tokio::sync::oneshot;

use crate::{
    restart::{Claimed, relay::Reason},
    sync::{
        Mutex, MutexGuard,
        tasks::Tasks,
        waiters::{Drain, lock, set_waker},
    },
    udp::{Handle, Opened},
    worker::{
        admit::handshakes::{HandshakeOutcome, Handshakes},
        connection::{CallWorker, Migration, SharedConnection, attempt::Promise},
    },
};

/// Largest number of datagrams from other workers that may wait.
const FOREIGN_DATAGRAMS: usize = 1024;

/// Queue of messages to a worker from handles and other workers.
pub(crate) struct Mailbox {
    requests: Mutex<Requests>,
    stats: Mutex<EndpointStats>,
    handshakes: Mutex<Handshakes>,
    tasks: Tasks,
    drain: Arc<Drain>,
}

/// Messages waiting for a worker.
#[derive(Default)]
pub(in crate::worker) struct Requests {
    /// Connections that the application touched.
    pub(in crate::worker) dirty: Vec<Arc<SharedConnection>>,
    /// Commands of the application.
    pub(in crate::worker) commands: Vec<Command>,
    /// Datagrams that were received by another worker's socket.
    pub(in crate::worker) foreign: Vec<Passed>,
    /// Waker of the worker while it sleeps. Whoever takes it must wake it, once.
    pub(in crate::worker) waker: Option<Waker>,
    pub(in crate::worker) ended: bool,
}

/// A datagram that another worker received.
pub(in crate::worker) struct Passed {
    pub(in crate::worker) arrival: Arrival,
    pub(in crate::worker) datagram: Vec<u8>,
    pub(in crate::worker) reason: Reason,
}

/// Command of the application to a worker.
#[cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    expect(dead_code, reason = "other systems cannot hand endpoints over")
)]
pub(crate) enum Command {
    /// Start a connection.
    Connect {
        /// Configuration.
        setup: Setup,
        /// Address of the server.
        peer: SocketAddr,
        /// Name of the server.
        server_name: String,
        /// Promise to the task that waits for the outcome.
        promise: Promise,
    },
    /// Accept a connection.
    Accept {
        /// The ClientHello.
        incoming: Incoming,
        /// Configuration, if not the endpoint's own.
        setup: Option<Setup>,
        /// Promise to the task that waits for the outcome.
        promise: Promise,
    },
    /// Send a Retry, so that the client proves its address.
    Retry(Incoming),
    /// Refuse a connection for this reason.
    Refuse(Incoming, &'static str),
    /// Drop a ClientHello without an answer.
    Ignore(Incoming),
    /// Migrate a connection to its own socket.
    Migrate(Migration),
    /// Move all connections to this socket, and start new ones from it.
    Rebind(Box<Opened>),
    /// Accept connections with another setup from now on.
    SetServer(Setup),
    /// Prepare for this provider's handshakes when there is time.
    Prepare(Arc<dyn Provider>),
    /// Send the sockets that the worker was made with.
    Lend(oneshot::Sender<io::Result<Vec<Handle>>>),
    /// Receive from this relay from now on instead of the sockets, and send the clients whose
    /// handshake is not finished.
    GiveWay(Handle, oneshot::Sender<Vec<Claimed>>),
    /// End without waiting for the peers of closed connections.
    Abandon,
    /// Receive from the sockets again: there is no successor.
    GoOn,
    /// Finish with the clients that arrived before the successor.
    Succeeded,
    /// Send what the worker holds.
    Census(oneshot::Sender<Census>),
    /// Close all connections and take no new ones.
    Close(u64, Bytes),
    /// End all connections: a socket of the endpoint failed permanently.
    Fail(SystemError),
    /// Handle the drop of the endpoint's last handle.
    Release,
    /// Check whether anything is left to do: no worker has connections left.
    Recheck,
}

impl Command {
    /// Returns true if the command starts a handshake, which costs more than any other.
    pub(in crate::worker) const fn starts_handshake(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::Accept { .. })
    }
}

impl Requests {
    /// Returns the number of messages.
    pub(in crate::worker) fn len(&self) -> usize {
        self.dirty.len() + self.commands.len() + self.foreign.len()
    }

    fn is_empty(&self) -> bool {
        self.dirty.is_empty() && self.commands.is_empty() && self.foreign.is_empty()
    }
}

impl Mailbox {
    pub(crate) fn new(drain: Arc<Drain>) -> Arc<Self> {
        Arc::new(Self {
            requests: Mutex::default(),
            stats: Mutex::default(),
            handshakes: Mutex::default(),
            tasks: Tasks::default(),
            drain,
        })
    }

    /// Adds a command. Returns false if the worker has ended, and drops the command.
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

    /// Adds a datagram that another worker received. Returns false if it was dropped.
    pub(in crate::worker) fn push_foreign(
        &self,
        arrival: Arrival,
        datagram: &[u8],
        reason: Reason,
    ) -> bool {
        let mut requests = lock(&self.requests);
        if requests.ended || requests.foreign.len() >= FOREIGN_DATAGRAMS {
            return false;
        }
        requests.foreign.push(Passed {
            arrival,
            datagram: datagram.to_vec(),
            reason,
        });
        notify(requests.waker.take(), requests);
        true
    }

    /// Returns ready if something waits. If not, the task is woken later.
    pub(in crate::worker) fn poll_requests(&self, cx: &Context<'_>) -> Poll<()> {
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

    /// Takes everything that waits, in exchange for empty lists. Returns false if nothing waits.
    pub(in crate::worker) fn take(&self, taken: &mut Requests) -> bool {
        let mut requests = lock(&self.requests);
        if requests.is_empty() {
            return false;
        }
        mem::swap(&mut requests.dirty, &mut taken.dirty);
        mem::swap(&mut requests.commands, &mut taken.commands);
        mem::swap(&mut requests.foreign, &mut taken.foreign);
        true
    }

    /// Closes the mailbox if nothing waits. Returns true if it is closed.
    pub(in crate::worker) fn try_end(&self) -> bool {
        let mut requests = lock(&self.requests);
        requests.ended |= requests.is_empty();
        requests.ended
    }

    /// Closes the mailbox and returns its contents.
    pub(in crate::worker) fn end(&self) -> Requests {
        let mut requests = lock(&self.requests);
        let waiting = mem::take(&mut *requests);
        requests.ended = true;
        waiting
    }

    pub(in crate::worker) fn set_stats(&self, stats: &EndpointStats) {
        *lock(&self.stats) = *stats;
    }

    pub(in crate::worker) fn count_handshake(&self, role: Side, outcome: HandshakeOutcome) {
        lock(&self.handshakes).count(role, outcome);
    }

    /// Adds the worker's handshakes to those of others.
    pub(in crate::worker) fn add_handshakes(&self, to: &mut Handshakes) {
        to.merge(&lock(&self.handshakes));
    }

    /// Counts what waits for the worker, and the tasks next to it.
    pub(in crate::worker) fn census(&self, census: &mut Census) {
        let Self {
            requests,
            stats: _,
            handshakes: _,
            tasks,
            drain: _,
        } = self;
        lock(requests).census(census);
        census.add("tasks next to the workers", tasks.running(), 0);
    }

    /// Returns the runtime of the worker and the tasks on it.
    pub(crate) const fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Returns the worker's counters as of its last turn.
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

    fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    fn drain(&self) -> &Drain {
        &self.drain
    }
}

/// Wakes the worker once the lock is released.
fn notify(waker: Option<Waker>, guard: MutexGuard<'_, Requests>) {
    drop(guard);
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests;
