use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Poll, Waker},
};

use bytes::Bytes;
use hashbrown::HashMap;

use super::{
    link::{Command, Link},
    moves::Move,
    waiters::{Waiters, lock, wake},
};
use hybriq_proto::{
    agreement::Handshake,
    error::{By, ConnectionError},
};
use hybriq_proto::{
    connection::{Connection, Event},
    datagrams::DatagramEvent,
    endpoint::Slot,
    streams::{Direction, StreamEvent, StreamId},
};

/// A connection as its worker and the application's handles share it.
pub(crate) struct Cell {
    /// Its place in its worker's table.
    pub(super) slot: Slot,
    link: Arc<Link>,
    /// Whether it already waits in the worker's queue.
    dirty: AtomicBool,
    handles: AtomicUsize,
    state: Mutex<State>,
}

/// What the lock guards.
pub(crate) struct State {
    /// The protocol.
    pub(crate) core: Connection,
    /// Why it is over, once it is over for the application.
    pub(crate) closed: Option<ConnectionError>,
    /// What the peer is still to be told: only the worker has a clock.
    close: Option<(u64, Bytes)>,
    /// Who waits in [`Handle::closed`](crate::Connection::closed).
    pub(crate) closing: Waiters,
    /// Where it is to move to.
    pub(crate) moving: Move,
    opening: [Waiters; 2],
    accepting: [Waiters; 2],
    /// Who waits for a datagram.
    pub(crate) datagram_readers: Waiters,
    /// Who waits for room for one.
    pub(crate) datagram_writers: Waiters,
    /// Send streams that have a handle.
    pub(crate) sends: HashMap<StreamId, SendSide>,
    /// Receive streams that have a handle, and who reads them.
    pub(crate) recvs: HashMap<StreamId, Option<Waker>>,
}

/// The handle is of a stream that never was, since the server refused 0-RTT data.
pub(crate) struct Rejected;

/// Who waits on a send stream.
#[derive(Default)]
pub(crate) struct SendSide {
    /// Who writes.
    pub(crate) writer: Option<Waker>,
    /// Who waits for the stream's end.
    pub(crate) watcher: Option<Waker>,
}

impl Cell {
    pub(super) fn new(slot: Slot, link: Arc<Link>, core: Connection) -> Arc<Self> {
        Arc::new(Self {
            slot,
            link,
            dirty: AtomicBool::new(false),
            handles: AtomicUsize::new(0),
            state: Mutex::new(State {
                core,
                closed: None,
                close: None,
                closing: Waiters::default(),
                moving: Move::default(),
                opening: Default::default(),
                accepting: Default::default(),
                datagram_readers: Waiters::default(),
                datagram_writers: Waiters::default(),
                sends: HashMap::new(),
                recvs: HashMap::new(),
            }),
        })
    }

    /// What the lock guards. Never held while waiting, waking or in a system call.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The lock itself, for [`wait_until`](super::waiters::wait_until).
    pub(crate) fn state(&self) -> &Mutex<State> {
        &self.state
    }

    /// Tells the worker that there may be something to send.
    pub(crate) fn touch(self: &Arc<Self>) {
        if !self.dirty.swap(true, Ordering::AcqRel) {
            self.link.push_dirty(self.clone());
        }
    }

    /// The worker looks at it from now on: later changes announce themselves again.
    pub(super) fn clear_dirty(&self) {
        self.dirty.store(false, Ordering::Release);
    }

    /// Asks the worker to move it; the wish has that number. `false`: there is no worker.
    pub(crate) fn migrate(self: &Arc<Self>, wish: u64, address: SocketAddr) -> bool {
        self.link.push(Command::Migrate {
            cell: self.clone(),
            wish,
            address,
        })
    }

    /// Closes it for the application at once; the worker tells the peer.
    pub(crate) fn close(self: &Arc<Self>, code: u64, reason: Bytes) {
        let mut wakes = Vec::new();
        let first = self.lock().close(code, reason, &mut wakes);
        wake(&mut wakes);
        if first {
            self.touch();
        }
    }
}

impl State {
    /// Who waits to open a stream.
    pub(crate) fn opening(&mut self, direction: Direction) -> &mut Waiters {
        let [bidi, uni] = &mut self.opening;
        match direction {
            Direction::Bidi => bidi,
            Direction::Uni => uni,
        }
    }

    /// Who waits for the peer to open a stream.
    pub(crate) fn accepting(&mut self, direction: Direction) -> &mut Waiters {
        let [bidi, uni] = &mut self.accepting;
        match direction {
            Direction::Bidi => bidi,
            Direction::Uni => uni,
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
        if direction == Direction::Bidi {
            self.recvs.insert(id, None);
        }
        Poll::Ready(Ok(id))
    }

    /// The next stream of the peer. Those that came before the connection ended are still handed
    /// out.
    pub(crate) fn poll_accept(
        &mut self,
        direction: Direction,
    ) -> Poll<Result<Option<StreamId>, ConnectionError>> {
        if let Some(id) = self.core.streams().accept(direction) {
            self.recvs.insert(id, None);
            if direction == Direction::Bidi {
                self.sends.insert(id, SendSide::default());
            }
            return Poll::Ready(Ok(Some(id)));
        }
        match &self.closed {
            Some(error) if error.is_clean() => Poll::Ready(Ok(None)),
            Some(error) => Poll::Ready(Err(error.clone())),
            None => Poll::Pending,
        }
    }

    /// The streams opened so far never were: everybody who waits learns it, and their handles touch
    /// nothing any more.
    fn on_early_data_rejected(&mut self, wakes: &mut Vec<Waker>) {
        self.datagram_readers.wake_all(wakes);
        self.datagram_writers.wake_all(wakes);
        for waiters in self.opening.iter_mut().chain(&mut self.accepting) {
            waiters.wake_all(wakes);
        }
        for (_, side) in self.sends.drain() {
            wakes.extend(side.writer);
            wakes.extend(side.watcher);
        }
        wakes.extend(self.recvs.drain().filter_map(|(_, waker)| waker));
    }

    /// Closes it, if it was open.
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

    /// What the peer is still to be told.
    pub(super) fn take_close(&mut self) -> Option<(u64, Bytes)> {
        self.close.take()
    }

    /// It is over: everybody who waits is woken.
    pub(super) fn end(&mut self, error: ConnectionError, wakes: &mut Vec<Waker>) {
        self.closed.get_or_insert(error);
        self.closing.wake_all(wakes);
        self.moving.waiters.wake_all(wakes);
        self.datagram_readers.wake_all(wakes);
        self.datagram_writers.wake_all(wakes);
        for waiters in self.opening.iter_mut().chain(&mut self.accepting) {
            waiters.wake_all(wakes);
        }
        for side in self.sends.values_mut() {
            wakes.extend(side.writer.take());
            wakes.extend(side.watcher.take());
        }
        wakes.extend(self.recvs.values_mut().filter_map(Option::take));
    }

    /// Takes the core's events: who they wake goes to `wakes`. Gives the outcome of the handshake
    /// when it became complete.
    pub(super) fn take_events(&mut self, wakes: &mut Vec<Waker>) -> Option<Arc<Handshake>> {
        let mut complete = None;
        while let Some(event) = self.core.poll_event() {
            match event {
                Event::HandshakeComplete => {
                    complete = self
                        .core
                        .handshake()
                        .map(|handshake| Arc::new(handshake.clone()));
                }
                Event::EarlyDataRejected => self.on_early_data_rejected(wakes),
                Event::EarlyDataReady | Event::HandshakeConfirmed => {}
                Event::PathChanged(change) => self.on_path_changed(change, wakes),
                Event::PathFailed(change) => self.on_path_failed(change, wakes),
                Event::Closed(error) => self.end(error, wakes),
                Event::Stream(event) => self.on_stream_event(event, wakes),
                Event::Datagram(event) => self.on_datagram_event(event, wakes),
            }
        }
        complete
    }

    /// Takes the events of streams and datagrams alone: those that follow from sending.
    pub(super) fn take_stream_events(&mut self, wakes: &mut Vec<Waker>) {
        while let Some(event) = self.core.streams().poll_event() {
            self.on_stream_event(event, wakes);
        }
        while let Some(event) = self.core.datagrams().poll_event() {
            self.on_datagram_event(event, wakes);
        }
    }

    fn on_datagram_event(&mut self, event: DatagramEvent, wakes: &mut Vec<Waker>) {
        match event {
            DatagramEvent::Readable => self.datagram_readers.wake_all(wakes),
            DatagramEvent::Writable => self.datagram_writers.wake_all(wakes),
        }
    }

    fn on_stream_event(&mut self, event: StreamEvent, wakes: &mut Vec<Waker>) {
        match event {
            StreamEvent::Opened(direction) => self.accepting(direction).wake_all(wakes),
            StreamEvent::Available(direction) => self.opening(direction).wake_all(wakes),
            StreamEvent::Readable(id) => {
                wakes.extend(self.recvs.get_mut(&id).and_then(Option::take));
            }
            StreamEvent::Writable(id) => {
                wakes.extend(self.sends.get_mut(&id).and_then(|side| side.writer.take()));
            }
            StreamEvent::Stopped { id, .. } => {
                if let Some(side) = self.sends.get_mut(&id) {
                    wakes.extend(side.writer.take());
                    wakes.extend(side.watcher.take());
                }
            }
            StreamEvent::Acknowledged(id) => {
                wakes.extend(self.sends.get_mut(&id).and_then(|side| side.watcher.take()));
            }
        }
    }
}

/// An application's share in a connection: the last one to go closes it with code 0.
pub(crate) struct Handle {
    cell: Arc<Cell>,
    /// Whether 0-RTT data was refused when it was made: it is for the streams since.
    refused: bool,
}

impl Handle {
    /// For the streams from now on.
    pub(super) fn new(cell: Arc<Cell>) -> Self {
        let refused = cell.lock().core.is_early_data_refused();
        Self::of(cell, refused)
    }

    /// A handle for early data, if the connection is to carry some.
    pub(super) fn early(cell: &Arc<Cell>) -> Option<Self> {
        let state = cell.lock();
        let early = state.closed.is_none() && state.core.may_use_early();
        let refused = state.core.is_early_data_refused();
        drop(state);
        early.then(|| Self::of(cell.clone(), refused))
    }

    fn of(cell: Arc<Cell>, refused: bool) -> Self {
        cell.handles.fetch_add(1, Ordering::Relaxed);
        Self { cell, refused }
    }

    /// Whether the streams of this handle still are. The protocol says so itself: it may know of a
    /// refusal whose event nobody took yet.
    pub(crate) fn check(&self, state: &State) -> Result<(), Rejected> {
        if self.refused == state.core.is_early_data_refused() {
            Ok(())
        } else {
            Err(Rejected)
        }
    }

    /// Locks for an operation on a stream of this handle.
    pub(crate) fn lock_stream(&self) -> Result<MutexGuard<'_, State>, Rejected> {
        let state = self.lock();
        self.check(&state)?;
        Ok(state)
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        Self::of(self.cell.clone(), self.refused)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.cell.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.cell.close(0, Bytes::new());
        }
    }
}

impl std::ops::Deref for Handle {
    type Target = Arc<Cell>;

    fn deref(&self) -> &Arc<Cell> {
        &self.cell
    }
}
