//! Connections, shared by their worker and the application's handles.

pub(super) mod attempt;
pub(super) mod migrate;
pub(super) mod table;

mod census;
mod handle;
mod leaving;
mod moves;
mod watch;

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    task::{Poll, Waker},
};

use bytes::Bytes;
use hashbrown::HashMap;
use hybriq_proto::{
    connection::{Connection, Event},
    endpoint::Slot,
    owners::{
        datagrams::DatagramEvent,
        streams::{Direction, StreamEvent, StreamId},
    },
    wire::error::{By, ConnectionError},
};
use tracing::Span;

use self::{
    leaving::Leaving,
    moves::Move,
    watch::{Watches, fates::Fates},
};
use crate::sync::{
    AtomicBool, AtomicUsize, Mutex, MutexGuard,
    tasks::Tasks,
    waiters::{Drain, Waited, Waiters, lock, wake},
};
use crate::worker::meter::trace::{PathEvent, Reported};
pub(crate) use handle::{Handle, Polling, Rejected};
pub(crate) use watch::{Ended, StreamWatch};

/// Calls from a connection to its worker.
pub(super) trait CallWorker: Send + Sync {
    /// Puts a connection into the queue of those that may have something to send.
    fn touch(&self, connection: Arc<SharedConnection>);

    /// Asks for the migration of a connection. Returns false if the worker has ended.
    fn migrate(&self, migration: Migration) -> bool;

    /// Returns the runtime of the worker and the tasks on it.
    fn tasks(&self) -> &Tasks;

    /// Returns the signal that the endpoint drains.
    fn drain(&self) -> &Drain;
}

/// The application's request to migrate a connection to its own socket.
pub(crate) struct Migration {
    pub(super) connection: Arc<SharedConnection>,
    /// Number of the request.
    pub(super) request: u64,
    /// Address that the socket is bound to.
    pub(super) address: SocketAddr,
}

/// A connection, shared by its worker and the application's handles.
pub(crate) struct SharedConnection {
    /// Slot in the worker's connections.
    pub(super) slot: Slot,
    /// Span in which the connection's events are recorded, and the application's may be.
    pub(crate) span: Span,
    worker: Arc<dyn CallWorker>,
    /// True while the connection waits in the worker's queue.
    dirty: AtomicBool,
    /// True until a client's first flight that waits for data may be sent without any.
    holds_first_flight: AtomicBool,
    handles: AtomicUsize,
    state: Mutex<State>,
}

/// State behind the lock of a connection.
pub(crate) struct State {
    /// The protocol.
    pub(crate) core: Connection,
    /// Error that ended the connection for the application.
    pub(crate) closed: Option<ConnectionError>,
    /// Local address on the path in use.
    pub(crate) local_address: Option<SocketAddr>,
    /// Code and reason of a close that the worker, which has the clock, must still start.
    close: Option<(u64, Bytes)>,
    /// State towards the application's handles.
    leaving: Leaving,
    /// Migration that the application asked for.
    pub(crate) moving: Move,
    waiters: [Waiters; WaitFor::ALL.len()],
    /// Send streams that have a handle. The limits of open streams bound their number.
    pub(crate) sends: HashMap<StreamId, SendSide>,
    /// Receive streams whose reader has waited, each with its waker. The reader removes its entry
    /// when it takes the end of the stream, or is dropped earlier.
    pub(crate) recvs: HashMap<StreamId, Option<Waker>>,
    /// Sending parts that futures watch.
    pub(crate) watches: Watches,
    /// Datagrams whose fate is awaited.
    pub(crate) fates: Fates,
}

/// Events that handles and their futures can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitFor {
    /// The peer's permission to open a stream.
    Open(Direction),
    /// A stream that the peer opens.
    Accept(Direction),
    /// A datagram from the peer.
    Datagram,
    /// Room in the queue of datagrams to send.
    DatagramRoom,
    /// The outcome of a migration.
    Migration,
    /// The end of the connection.
    End,
}

impl WaitFor {
    const ALL: [Self; 8] = [
        Self::Open(Direction::Bidi),
        Self::Open(Direction::Uni),
        Self::Accept(Direction::Bidi),
        Self::Accept(Direction::Uni),
        Self::Datagram,
        Self::DatagramRoom,
        Self::Migration,
        Self::End,
    ];

    const fn index(self) -> usize {
        match self {
            Self::Open(Direction::Bidi) => 0,
            Self::Open(Direction::Uni) => 1,
            Self::Accept(Direction::Bidi) => 2,
            Self::Accept(Direction::Uni) => 3,
            Self::Datagram => 4,
            Self::DatagramRoom => 5,
            Self::Migration => 6,
            Self::End => 7,
        }
    }
}

/// Tasks that wait on a send stream, and how the peer ended it.
#[derive(Default)]
pub(crate) struct SendSide {
    /// Task that writes.
    pub(crate) writer: Option<Waker>,
    /// Task that waits for the end of the stream.
    pub(crate) watcher: Option<Waker>,
    /// How the stream ended before it was delivered.
    pub(crate) ended: Ended,
}

impl SharedConnection {
    pub(super) fn new(
        slot: Slot,
        span: Span,
        worker: Arc<dyn CallWorker>,
        core: Connection,
    ) -> Arc<Self> {
        Arc::new(Self {
            slot,
            span,
            worker,
            dirty: AtomicBool::new(false),
            holds_first_flight: AtomicBool::new(false),
            handles: AtomicUsize::new(0),
            state: Mutex::new(State {
                core,
                closed: None,
                local_address: None,
                close: None,
                leaving: Leaving::No,
                moving: Move::default(),
                waiters: Default::default(),
                sends: HashMap::new(),
                recvs: HashMap::new(),
                watches: Watches::default(),
                fates: Fates::default(),
            }),
        })
    }

    /// Locks the state. The lock is never held while waiting, waking or in a system call.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Returns the lock itself, for [`wait_until`](crate::sync::waiters::wait_until).
    pub(crate) fn state(&self) -> &Mutex<State> {
        &self.state
    }

    /// Tells the worker that there may be something to send.
    pub(crate) fn touch(self: &Arc<Self>) {
        if !self.dirty.swap(true, Ordering::AcqRel) {
            self.worker.touch(self.clone());
        }
    }

    /// Keeps the first flight until there is data for it, or the application waits. Called before
    /// the application has the connection.
    pub(super) fn hold_first_flight(&self) {
        self.holds_first_flight.store(true, Ordering::Relaxed);
    }

    /// Sends the first flight at once.
    fn let_first_flight_go(&self) {
        self.holds_first_flight.store(false, Ordering::Relaxed);
    }

    /// Returns true if the first flight waits for data.
    pub(super) fn holds_first_flight(&self) -> bool {
        self.holds_first_flight.load(Ordering::Acquire)
    }

    /// Lets the first flight go without data, because the application waits for something.
    #[inline]
    pub(crate) fn send_first_flight(self: &Arc<Self>) {
        if self.holds_first_flight() && self.holds_first_flight.swap(false, Ordering::AcqRel) {
            self.touch();
        }
    }

    /// Marks the connection as taken out of the queue, so that a later change queues it again.
    pub(super) fn clear_dirty(&self) {
        self.dirty.store(false, Ordering::Release);
    }

    /// Asks the worker to migrate the connection. Returns false if the worker has ended.
    pub(crate) fn migrate(self: &Arc<Self>, request: u64, address: SocketAddr) -> bool {
        self.worker.migrate(Migration {
            connection: self.clone(),
            request,
            address,
        })
    }

    /// Returns the runtime of the worker and the tasks on it.
    pub(crate) fn tasks(&self) -> &Tasks {
        self.worker.tasks()
    }

    /// Returns the signal that the endpoint drains.
    pub(crate) fn drain(&self) -> &Drain {
        self.worker.drain()
    }

    /// Handles the drop of the last handle: closes the connection without an error, once the streams
    /// that were finished have arrived.
    fn leave(self: &Arc<Self>) {
        let code = self.lock().leave();
        match code {
            Some(code) => self.close(code, Bytes::new()),
            None => self.touch(),
        }
    }

    /// Closes the connection for the application at once; the worker tells the peer.
    pub(crate) fn close(self: &Arc<Self>, code: u64, reason: Bytes) {
        let mut wakes = Vec::new();
        let first = self.lock().close(code, reason, &mut wakes);
        wake(&mut wakes);
        if first {
            self.touch();
        }
    }
}

impl Waited for State {
    type For = WaitFor;

    fn waiters(&mut self, what: WaitFor) -> &mut Waiters {
        &mut self.waiters[what.index()]
    }
}

impl State {
    /// Returns why the connection is over.
    pub(crate) fn poll_closed(&mut self) -> Poll<ConnectionError> {
        match &self.closed {
            Some(error) => Poll::Ready(error.clone()),
            None => Poll::Pending,
        }
    }

    /// Returns the next datagram of the peer. Datagrams that arrived before the connection ended
    /// are still returned.
    pub(crate) fn poll_recv_datagram(&mut self) -> Poll<Result<Option<Bytes>, ConnectionError>> {
        if let Some(data) = self.core.datagrams().recv() {
            return Poll::Ready(Ok(Some(data)));
        }
        self.poll_clean_end()
    }

    fn poll_clean_end<T>(&self) -> Poll<Result<Option<T>, ConnectionError>> {
        match &self.closed {
            Some(error) if self.core.application_codes().is_clean(error) => Poll::Ready(Ok(None)),
            Some(error) => Poll::Ready(Err(error.clone())),
            None => Poll::Pending,
        }
    }

    /// Opens the next stream.
    pub(crate) fn poll_open(
        &mut self,
        direction: Direction,
    ) -> Poll<Result<StreamId, ConnectionError>> {
        if let Some(error) = &self.closed {
            return Poll::Ready(Err(error.clone()));
        }
        let Some(id) = self.core.streams().open(direction) else {
            return Poll::Pending;
        };
        self.sends.insert(id, SendSide::default());
        Poll::Ready(Ok(id))
    }

    /// Returns the next stream of the peer. Streams that arrived before the connection ended are
    /// still returned.
    pub(crate) fn poll_accept(
        &mut self,
        direction: Direction,
    ) -> Poll<Result<Option<StreamId>, ConnectionError>> {
        if let Some(id) = self.core.streams().accept(direction) {
            if direction == Direction::Bidi {
                self.sends.insert(id, SendSide::default());
            }
            return Poll::Ready(Ok(Some(id)));
        }
        self.poll_clean_end()
    }

    /// Forgets the streams that were opened early, because the server refused them. All waiting
    /// tasks are woken, and handles of these streams have no effect from now on.
    fn on_early_data_rejected(&mut self, wakes: &mut Vec<Waker>) {
        for waiters in &mut self.waiters {
            waiters.wake_all(wakes);
        }
        for (_, side) in self.sends.drain() {
            wakes.extend(side.writer);
            wakes.extend(side.watcher);
        }
        wakes.extend(self.recvs.drain().filter_map(|(_, waker)| waker));
        self.watches.forget_all(wakes);
    }

    /// Closes the connection. Returns false if it was already over.
    pub(super) fn close(&mut self, code: u64, reason: Bytes, wakes: &mut Vec<Waker>) -> bool {
        if self.closed.is_some() {
            return false;
        }
        self.close = Some((code, reason.clone()));
        self.end(
            ConnectionError::Application {
                by: By::Local,
                code,
                reason,
            },
            wakes,
        );
        true
    }

    /// Takes the code and reason of a close that must still be started.
    pub(super) fn take_close(&mut self) -> Option<(u64, Bytes)> {
        self.close.take()
    }

    /// Ends the connection for the application, and wakes all tasks that wait.
    pub(super) fn end(&mut self, error: ConnectionError, wakes: &mut Vec<Waker>) {
        self.closed.get_or_insert(error);
        for waiters in &mut self.waiters {
            waiters.wake_all(wakes);
        }
        for side in self.sends.values_mut() {
            wakes.extend(side.writer.take());
            wakes.extend(side.watcher.take());
        }
        wakes.extend(self.recvs.values_mut().filter_map(Option::take));
        self.watches.wake_all(wakes);
        if let Some(error) = &self.closed {
            self.fates.end(error, wakes);
        }
    }

    /// Takes the core's events and adds the tasks to wake to `wakes`. Returns the events to report.
    pub(super) fn take_events(&mut self, wakes: &mut Vec<Waker>) -> Reported {
        let mut reported = Reported::default();
        while let Some(event) = self.core.poll_event() {
            match event {
                Event::HandshakeComplete => {
                    reported.handshake = self.core.handshake().cloned();
                }
                Event::EarlyDataRejected => self.on_early_data_rejected(wakes),
                Event::PathChanged(change) => {
                    reported.paths.push(PathEvent::Changed(change));
                    self.on_path_changed(change, wakes);
                }
                Event::PathFailed(change) => {
                    reported.paths.push(PathEvent::Failed(change));
                    self.on_path_failed(change, wakes);
                }
                Event::Closed(error) => self.end(error, wakes),
                Event::Stream(event) => self.on_stream_event(event, wakes),
                Event::Datagram(event) => self.on_datagram_event(event, wakes),
                // Nobody waits for the others.
                _ => {}
            }
        }
        reported
    }

    /// Takes only the events of streams and datagrams, which sending can cause.
    pub(super) fn take_stream_events(&mut self, wakes: &mut Vec<Waker>) {
        while let Some(event) = self.core.streams().poll_event() {
            self.on_stream_event(event, wakes);
        }
        while let Some(event) = self.core.datagrams().poll_event() {
            self.on_datagram_event(event, wakes);
        }
    }

    fn on_datagram_event(&mut self, event: DatagramEvent, wakes: &mut Vec<Waker>) {
        let what = match event {
            DatagramEvent::Readable => WaitFor::Datagram,
            DatagramEvent::Writable => WaitFor::DatagramRoom,
            DatagramEvent::Fate { tag, fate } => return self.fates.tell(tag, fate, wakes),
            _ => return,
        };
        self.waiters(what).wake_one(wakes);
    }

    fn on_stream_event(&mut self, event: StreamEvent, wakes: &mut Vec<Waker>) {
        match event {
            StreamEvent::Opened(direction) => {
                self.waiters(WaitFor::Accept(direction)).wake_one(wakes);
            }
            StreamEvent::Available(direction) => {
                self.waiters(WaitFor::Open(direction)).wake_one(wakes);
            }
            StreamEvent::Readable(id) => {
                wakes.extend(self.recvs.get_mut(&id).and_then(Option::take));
            }
            StreamEvent::Writable(id) => {
                wakes.extend(self.sends.get_mut(&id).and_then(|side| side.writer.take()));
            }
            StreamEvent::Stopped { id, code } => {
                self.on_send_ended(id, Ended::Stopped(code), wakes);
            }
            StreamEvent::Expired(id) => self.on_send_ended(id, Ended::Expired, wakes),
            StreamEvent::Acknowledged(id) => {
                wakes.extend(self.sends.get_mut(&id).and_then(|side| side.watcher.take()));
                self.watches.on_all_acknowledged(id, wakes);
            }
            StreamEvent::Delivered { id, acknowledged } => {
                self.watches.on_delivered(id, acknowledged, wakes);
            }
            _ => {}
        }
    }
}
