//! State that the handles and all workers of an endpoint share.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    task::{Poll, Waker},
};

use bytes::Bytes;

use super::{
    attempt::Promise,
    mailbox::{Command, Mailbox},
    stats::EndpointStats,
    waiters::{Waited, Waiters, lock, wait_until, wake},
};
use crate::{
    sync::{AtomicBool, AtomicUsize, Mutex},
    udp::{self, Socket},
};
use hybriq_proto::{
    endpoint::{Incoming, Setup},
    limits,
};

/// State that the handles and all workers of an endpoint share.
pub(crate) struct Shared {
    mailboxes: Box<[Arc<Mailbox>]>,
    /// Addresses of the sockets; connections start from the first.
    addresses: Mutex<Vec<SocketAddr>>,
    /// Options of new sockets.
    options: udp::Options,
    closed: AtomicBool,
    handles: AtomicUsize,
    /// Index of the worker that starts the next connection.
    turn: AtomicUsize,
    arrivals: Mutex<Arrivals>,
    activity: Mutex<Activity>,
}

/// Queue of ClientHellos that wait for the application, each with its worker.
struct Arrivals {
    waiting: VecDeque<(u8, Incoming)>,
    accepting: Waiters,
    open: bool,
}

/// Number of connections that were requested and are not drained yet.
#[derive(Default)]
struct Activity {
    connections: usize,
    idle: Waiters,
}

impl Waited for Arrivals {
    type For = ();

    fn waiters(&mut self, (): ()) -> &mut Waiters {
        &mut self.accepting
    }
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
        options: udp::Options,
    ) -> Arc<Self> {
        Arc::new(Self {
            mailboxes,
            addresses: Mutex::new(addresses),
            options,
            closed: AtomicBool::new(false),
            handles: AtomicUsize::new(1),
            turn: AtomicUsize::new(0),
            arrivals: Mutex::new(Arrivals {
                waiting: VecDeque::new(),
                accepting: Waiters::default(),
                open: true,
            }),
            activity: Mutex::default(),
        })
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        lock(&self.addresses).clone()
    }

    pub(crate) const fn options(&self) -> udp::Options {
        self.options
    }

    pub(super) fn set_addresses(&self, addresses: Vec<SocketAddr>) {
        *lock(&self.addresses) = addresses;
    }

    /// Gives the worker another socket. Returns false if the worker has ended.
    pub(crate) fn rebind(&self, socket: Socket) -> bool {
        let mailbox = self.mailbox(0);
        mailbox.is_some_and(|mailbox| mailbox.push(Command::Rebind(socket)))
    }

    pub(super) fn mailbox(&self, worker: u8) -> Option<&Arc<Mailbox>> {
        self.mailboxes.get(usize::from(worker))
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
        let worker = self.turn.fetch_add(1, Ordering::Relaxed) % self.mailboxes.len().max(1);
        self.start(
            worker as u8,
            Command::Connect {
                setup,
                peer,
                server_name,
                promise,
            },
        );
    }

    /// Accepts a connection on the worker it came to.
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

    /// Hands a decision about an [`Incoming`] to its worker, unless that has ended.
    pub(crate) fn decide(&self, worker: u8, command: Command) {
        if let Some(mailbox) = self.mailbox(worker) {
            mailbox.push(command);
        }
    }

    /// Counts connections that are drained, or were never started.
    pub(super) fn on_ended(&self, count: usize, wakes: &mut Vec<Waker>) {
        let mut activity = lock(&self.activity);
        activity.connections = activity.connections.saturating_sub(count);
        if activity.connections == 0 {
            activity.idle.wake_all(wakes);
        }
    }

    pub(crate) async fn idle(&self) {
        wait_until(&self.activity, (), |activity| match activity.connections {
            0 => Poll::Ready(()),
            _ => Poll::Pending,
        })
        .await;
    }

    /// Waits for the next ClientHello and its worker; `None` once the endpoint is closed.
    pub(crate) async fn accept(&self) -> Option<(u8, Incoming)> {
        wait_until(&self.arrivals, (), |arrivals| {
            match arrivals.waiting.pop_front() {
                Some(arrival) => Poll::Ready(Some(arrival)),
                None if arrivals.open => Poll::Pending,
                None => Poll::Ready(None),
            }
        })
        .await
    }

    /// Queues a ClientHello for the application. Returns it if too many wait.
    pub(super) fn on_incoming(
        &self,
        worker: u8,
        incoming: Incoming,
        wakes: &mut Vec<Waker>,
    ) -> Option<Incoming> {
        let mut arrivals = lock(&self.arrivals);
        if !arrivals.open || arrivals.waiting.len() >= limits::WAITING_INCOMING {
            return Some(incoming);
        }
        arrivals.waiting.push_back((worker, incoming));
        arrivals.accepting.wake_one(wakes);
        None
    }

    /// Accepts no more clients, and refuses those that wait.
    pub(super) fn stop_accepting(&self, wakes: &mut Vec<Waker>) {
        let waiting = {
            let mut arrivals = lock(&self.arrivals);
            arrivals.open = false;
            arrivals.accepting.wake_all(wakes);
            std::mem::take(&mut arrivals.waiting)
        };
        for (worker, incoming) in waiting {
            self.decide(worker, Command::Refuse(incoming));
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn close(&self, code: u64, reason: &Bytes) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        self.shut();
        for mailbox in &self.mailboxes {
            mailbox.push(Command::Close(code, reason.clone()));
        }
    }

    fn shut(&self) {
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
