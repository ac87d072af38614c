//! State that the handles and all workers of an endpoint share.

pub(super) mod mailbox;

mod arrivals;
mod census;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod hand_over;

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock, atomic::Ordering},
    task::{Poll, Waker},
};

use bytes::Bytes;
use hybriq_proto::stats::EndpointStats;
use hybriq_proto::{
    endpoint::{Incoming, Setup},
    random::{Random as _, prf::Prf},
    wire::{error::SystemError, limits::WAITING_INCOMING},
};
use tokio::{sync::watch, task::JoinHandle};

pub(super) use self::arrivals::Turned;
use self::{
    arrivals::Arrivals,
    mailbox::{Command, Mailbox},
};
use super::{
    admit::{
        admission::Admission,
        handshakes::{HandshakeCount, Handshakes},
    },
    connection::attempt::Promise,
};
use crate::{
    config::{Limits, random::SystemRandom},
    sync::{
        AtomicBool, AtomicUsize, Mutex,
        waiters::{Drain, Waited, Waiters, lock, wait_until, wake},
    },
    udp::Opened,
};

/// State that the handles and all workers of an endpoint share.
pub(crate) struct Shared {
    mailboxes: Box<[Arc<Mailbox>]>,
    /// Addresses of the sockets; connections start from the first.
    addresses: Mutex<Vec<SocketAddr>>,
    closed: AtomicBool,
    /// System error of a socket that failed permanently.
    failure: OnceLock<SystemError>,
    handles: AtomicUsize,
    /// Number of connections that were started from threads other than the workers' own.
    turn: AtomicUsize,
    arrivals: Mutex<Arrivals>,
    activity: Mutex<Activity>,
    /// Number of clients that have not completed their handshake, as of the last turn of each worker.
    unfinished: AtomicUsize,
    /// Number of ClientHellos that may wait for the application.
    backlog: usize,
    /// True if the operator limits clients.
    has_limits: bool,
    drain: Arc<Drain>,
    /// True once another process has taken over.
    succeeded: AtomicBool,
    /// True while this process receives from the sockets.
    receives: watch::Sender<bool>,
    /// Number of workers with clients that arrived before the successor and wait for a decision.
    deciding: AtomicUsize,
    /// Number of clients that the application has taken and not decided about.
    undecided: AtomicUsize,
    /// True once the endpoint is closed; tasks wait for changes.
    closing: watch::Sender<bool>,
    /// Number of connections that the close of the endpoint ended.
    cut_off: AtomicUsize,
    /// Each worker keeps a receiver as long as it has its sockets.
    working: watch::Sender<()>,
}

/// Number of connections that were requested and are not drained yet.
#[derive(Default)]
struct Activity {
    connections: usize,
    idle: Waiters,
}

impl Waited for Activity {
    type For = ();

    fn waiters(&mut self, (): ()) -> &mut Waiters {
        &mut self.idle
    }
}

impl Shared {
    pub(crate) fn new(
        mailboxes: Box<[Arc<Mailbox>]>,
        addresses: Vec<SocketAddr>,
        backlog: usize,
        limits: Limits,
        drain: Arc<Drain>,
    ) -> Arc<Self> {
        let mut secret = [0; 16];
        SystemRandom::new().fill(&mut secret);
        Arc::new(Self {
            mailboxes,
            addresses: Mutex::new(addresses),
            closed: AtomicBool::new(false),
            failure: OnceLock::new(),
            handles: AtomicUsize::new(1),
            turn: AtomicUsize::new(0),
            arrivals: Mutex::new(Arrivals::new(Admission::new(limits, Prf::new(secret)))),
            activity: Mutex::default(),
            unfinished: AtomicUsize::new(0),
            backlog: backlog.clamp(1, WAITING_INCOMING),
            has_limits: limits.connections.is_some()
                || limits.handshakes.is_some()
                || limits.per_network.is_some(),
            drain,
            succeeded: AtomicBool::new(false),
            receives: watch::Sender::new(true),
            deciding: AtomicUsize::new(0),
            undecided: AtomicUsize::new(0),
            closing: watch::Sender::new(false),
            cut_off: AtomicUsize::new(0),
            working: watch::Sender::new(()),
        })
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        lock(&self.addresses).clone()
    }

    pub(super) fn set_addresses(&self, addresses: Vec<SocketAddr>) {
        *lock(&self.addresses) = addresses;
    }

    /// Gives each worker another socket. The address becomes the endpoint's at once: datagrams wait
    /// in the sockets until the workers turn to them. Returns false if a worker has ended.
    pub(crate) fn rebind(&self, sockets: Vec<Opened>) -> bool {
        // Concurrent callers give all workers their sockets in the same order.
        let mut addresses = lock(&self.addresses);
        if let (Some(address), Some(first)) = (addresses.first_mut(), sockets.first()) {
            *address = first.local_address();
        }
        let mut workers = self.mailboxes.iter().zip(sockets);
        workers.all(|(mailbox, socket)| mailbox.push(Command::Rebind(Box::new(socket))))
    }

    /// Returns the number of workers.
    pub(crate) const fn workers(&self) -> usize {
        self.mailboxes.len()
    }

    /// Returns the mailboxes of all workers but one.
    pub(super) fn others(&self, worker: u8) -> impl Iterator<Item = &Arc<Mailbox>> {
        let others = self.mailboxes.iter().enumerate();
        others.filter_map(move |(index, mailbox)| (index != usize::from(worker)).then_some(mailbox))
    }

    /// Returns the counters of each worker.
    pub(crate) fn worker_stats(&self) -> Vec<EndpointStats> {
        self.mailboxes
            .iter()
            .map(|mailbox| mailbox.stats())
            .collect()
    }

    /// Counts a connection that was open when the endpoint was closed.
    pub(super) fn on_cut_off(&self) {
        self.cut_off.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of connections that were open when the endpoint was closed; final once no
    /// connection is left.
    pub(crate) fn cut_off(&self) -> usize {
        self.cut_off.load(Ordering::Relaxed)
    }

    /// Returns the number of connections that are not drained.
    pub(crate) fn open_connections(&self) -> usize {
        lock(&self.activity).connections
    }

    /// Returns true if no connection is left on any worker.
    pub(super) fn is_idle(&self) -> bool {
        lock(&self.activity).connections == 0
    }

    pub(super) fn mailbox(&self, worker: u8) -> Option<&Arc<Mailbox>> {
        self.mailboxes.get(usize::from(worker))
    }

    pub(crate) fn handshakes(&self) -> Vec<HandshakeCount> {
        let mut all = Handshakes::default();
        for mailbox in &self.mailboxes {
            mailbox.add_handshakes(&mut all);
        }
        all.into_counts()
    }

    pub(crate) fn stats(&self) -> EndpointStats {
        let mut sum = EndpointStats::default();
        for mailbox in &self.mailboxes {
            sum += mailbox.stats();
        }
        sum
    }

    /// Starts a connection on one of the workers.
    pub(crate) fn connect(
        &self,
        setup: Setup,
        peer: SocketAddr,
        server_name: String,
        promise: Promise,
    ) {
        let worker = worker_thread::worker_of(self).unwrap_or_else(|| {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            (turn % self.mailboxes.len().max(1)) as u8
        });
        self.start(
            worker,
            Command::Connect {
                setup,
                peer,
                server_name,
                promise,
            },
        );
    }

    /// Accepts a connection on the worker that received it.
    pub(crate) fn accept_incoming(
        &self,
        worker: u8,
        incoming: Incoming,
        setup: Option<Setup>,
        promise: Promise,
    ) {
        self.start(
            worker,
            Command::Accept {
                incoming,
                setup,
                promise,
            },
        );
    }

    fn start(&self, worker: u8, command: Command) {
        lock(&self.activity).connections += 1;
        let taken = self
            .mailbox(worker)
            .is_some_and(|mailbox| mailbox.push(command));
        if !taken {
            let mut wakes = Vec::new();
            self.on_ended(1, &mut wakes);
            wake(&mut wakes);
        }
    }

    /// Hands a decision about an [`Incoming`] to its worker, unless the worker has ended.
    pub(crate) fn decide(&self, worker: u8, command: Command) {
        if let Some(mailbox) = self.mailbox(worker) {
            mailbox.push(command);
        }
    }

    /// Starts a task next to a worker.
    pub(crate) fn spawn<F>(&self, worker: u8, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        match self.mailbox(worker) {
            Some(mailbox) => mailbox.tasks().spawn(task),
            None => tokio::spawn(task),
        }
    }

    /// Counts connections that are drained, or were never started.
    pub(super) fn on_ended(&self, count: usize, wakes: &mut Vec<Waker>) {
        let mut activity = lock(&self.activity);
        activity.connections = activity.connections.saturating_sub(count);
        if activity.connections > 0 {
            return;
        }
        activity.idle.wake_all(wakes);
        drop(activity);
        // Workers keep their sockets until none of them has a connection: without one of the
        // sockets, the system would give datagrams of the others to the wrong workers.
        if self.mailboxes.len() > 1 {
            for mailbox in &self.mailboxes {
                mailbox.push(Command::Recheck);
            }
        }
    }

    pub(crate) async fn idle(&self) {
        wait_until(&self.activity, (), |activity| match activity.connections {
            0 => Poll::Ready(()),
            _ => Poll::Pending,
        })
        .await;
    }

    /// Returns the number of clients that have not completed their handshake, as of the last turn of
    /// each worker.
    pub(super) fn unfinished(&self) -> usize {
        self.unfinished.load(Ordering::Relaxed)
    }

    /// Replaces a worker's share of that number.
    pub(super) fn set_unfinished(&self, before: usize, now: usize) {
        if now > before {
            self.unfinished.fetch_add(now - before, Ordering::Relaxed);
        } else if now < before {
            self.unfinished.fetch_sub(before - now, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Closes the endpoint because one of its sockets failed permanently.
    pub(super) fn on_failed(&self, reason: SystemError) {
        let _ = self.failure.set(reason);
        self.closed.store(true, Ordering::Release);
        self.closing.send_replace(true);
    }

    /// Returns the system error of a socket that failed permanently.
    pub(crate) fn failure(&self) -> Option<SystemError> {
        self.failure.get().copied()
    }

    pub(crate) fn close(&self, code: u64, reason: &Bytes) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        self.closing.send_replace(true);
        self.shut();
        for mailbox in &self.mailboxes {
            mailbox.push(Command::Close(code, reason.clone()));
        }
    }

    /// Returns a receiver that a worker drops after its sockets.
    pub(super) fn working(&self) -> watch::Receiver<()> {
        self.working.subscribe()
    }

    /// Waits until all workers have closed their sockets.
    pub(crate) async fn ended(&self) {
        self.working.closed().await;
    }

    /// Ends the workers of a closed endpoint, with their remaining connections.
    pub(crate) fn abandon(&self) {
        if self.is_closed() {
            for mailbox in &self.mailboxes {
                mailbox.push(Command::Abandon);
            }
        }
    }

    /// Replaces the setup of connections that are accepted from now on. Returns false if a worker has
    /// ended.
    pub(crate) fn set_server(&self, setup: &Setup) -> bool {
        let set = |mailbox: &Arc<Mailbox>| mailbox.push(Command::SetServer(setup.clone()));
        self.mailboxes
            .iter()
            .map(set)
            .fold(true, |all, one| all & one)
    }

    /// Returns true if another process has the sockets.
    pub(crate) fn has_successor(&self) -> bool {
        self.succeeded.load(Ordering::Acquire)
    }

    /// Records that this process receives from the sockets again.
    pub(crate) fn on_resumed(&self) {
        self.receives.send_replace(true);
    }

    /// Accepts no more clients once all workers have decided on those that arrived before the
    /// successor.
    pub(super) fn on_decided(&self, wakes: &mut Vec<Waker>) {
        if self.deciding.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.stop_accepting(wakes);
        }
    }

    /// Asks the applications of all connections to finish.
    pub(crate) fn begin_drain(&self) {
        self.drain.begin();
    }

    /// Accepts no more clients, and refuses those that wait.
    pub(crate) fn shut(&self) {
        let mut wakes = Vec::new();
        self.stop_accepting(&mut wakes);
        wake(&mut wakes);
    }

    pub(crate) fn on_handle_cloned(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn on_handle_dropped(&self) {
        if self.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shut();
            for mailbox in &self.mailboxes {
                mailbox.push(Command::Release);
            }
        }
    }

    /// Closes the endpoint after a worker ended.
    pub(super) fn on_worker_ended(&self, wakes: &mut Vec<Waker>) {
        self.closed.store(true, Ordering::Release);
        self.stop_accepting(wakes);
    }
}

/// The worker that the current thread belongs to.
pub(super) mod worker_thread {
    use std::cell::Cell;

    thread_local! {
        /// Address of the endpoint's shared state, and index of the worker of this thread.
        static CURRENT: Cell<Option<(usize, u8)>> = const { Cell::new(None) };
    }

    /// Notes that this thread belongs to a worker of an endpoint, identified by the address of its
    /// shared state.
    pub(in crate::worker) fn begin<T>(endpoint: &T, worker: u8) {
        CURRENT.set(Some((place(endpoint), worker)));
    }

    /// Returns the worker of an endpoint that this thread belongs to.
    pub(in crate::worker) fn worker_of<T>(endpoint: &T) -> Option<u8> {
        let (owner, worker) = CURRENT.get()?;
        (owner == place(endpoint)).then_some(worker)
    }

    fn place<T>(endpoint: &T) -> usize {
        std::ptr::from_ref(endpoint).addr()
    }
}
