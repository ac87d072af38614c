//! One connection of quiche.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use quiche::{BufFactory, ConnectionId};

use super::{Ended, StreamError};
use crate::stacks::Traffic;

/// Number of a connection of an endpoint.
pub(super) type Number = u64;

/// Connection whose stream data is neither copied nor zeroed.
pub(super) type Quic = quiche::Connection<Shares>;

/// Buffers of quiche that share memory with those of the user.
#[derive(Clone, Debug, Default)]
pub struct Shares;

impl BufFactory for Shares {
    type Buf = Bytes;
    type DgramBuf = Bytes;

    fn buf_from_slice(bytes: &[u8]) -> Bytes {
        Bytes::copy_from_slice(bytes)
    }

    fn dgram_buf_from_slice(bytes: &[u8]) -> Bytes {
        Bytes::copy_from_slice(bytes)
    }
}

/// Tasks that wait for one event.
#[derive(Default)]
pub(super) struct Waiting(RefCell<Vec<Waker>>);

impl Waiting {
    pub(super) fn join(&self, cx: &Context<'_>) {
        let mut wakers = self.0.borrow_mut();
        if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            wakers.push(cx.waker().clone());
        }
    }

    pub(super) fn wake_all(&self) {
        let mut woken = self.0.take();
        woken.drain(..).for_each(Waker::wake);
        let mut wakers = self.0.borrow_mut();
        if wakers.is_empty() {
            // Its memory is used again.
            *wakers = woken;
        }
    }
}

/// State that an endpoint shares with its connections.
#[derive(Default)]
pub(super) struct Shared {
    /// Connections that may have something to send, or a new timer.
    dirty: RefCell<VecDeque<Number>>,
    /// Task that serves them.
    pump: RefCell<Option<Waker>>,
    /// Memory for received stream data.
    pub(super) received: RefCell<BytesMut>,
}

impl Shared {
    /// Makes this task serve the connections.
    pub(super) fn wait(&self, cx: &Context<'_>) {
        let pump = &mut *self.pump.borrow_mut();
        if !pump.as_ref().is_some_and(|it| it.will_wake(cx.waker())) {
            *pump = Some(cx.waker().clone());
        }
    }

    pub(super) fn next(&self) -> Option<Number> {
        self.dirty.borrow_mut().pop_front()
    }

    pub(super) fn wake(&self) {
        if let Some(pump) = &*self.pump.borrow() {
            pump.wake_by_ref();
        }
    }
}

/// Kind of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Both ends write.
    Bidi,
    /// Only the end that opened it writes.
    Uni,
}

/// A connection, shared by its endpoint and its users.
pub struct Line {
    pub(super) quic: RefCell<Quic>,
    pub(super) timer: Cell<Option<Instant>>,
    pub(super) readers: RefCell<HashMap<u64, Waker>>,
    pub(super) writers: RefCell<HashMap<u64, Waker>>,
    users: Waiting,
    /// Users that wait for room in the queue of datagrams.
    room: Waiting,
    pub(super) shared: Rc<Shared>,
    pub(super) number: Number,
    /// True if the endpoint is going to serve it.
    is_dirty: Cell<bool>,
    traffic: Cell<Traffic>,
    /// Destination id that the client chose at first.
    chosen: RefCell<Option<ConnectionId<'static>>>,
    /// Numbers of the next streams of either end: bidirectional, unidirectional.
    opened: [Cell<u64>; 2],
    accepted: [Cell<u64>; 2],
    /// Numbers above those of the peer's streams that were seen.
    seen: [Cell<u64>; 2],
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

impl Line {
    pub(super) fn new(quic: Quic, shared: Rc<Shared>, number: Number) -> Self {
        // RFC 9000 §2.1.
        let (ours, theirs) = if quic.is_server() { (1, 0) } else { (0, 1) };
        Self {
            quic: RefCell::new(quic),
            timer: Cell::default(),
            readers: RefCell::default(),
            writers: RefCell::default(),
            users: Waiting::default(),
            room: Waiting::default(),
            shared,
            number,
            is_dirty: Cell::default(),
            traffic: Cell::default(),
            chosen: RefCell::default(),
            opened: [Cell::new(ours), Cell::new(ours + 2)],
            accepted: [Cell::new(theirs), Cell::new(theirs + 2)],
            seen: Default::default(),
        }
    }

    /// Returns the connection. What a change of it makes ready to send goes out after
    /// [`Line::touch`].
    pub fn quic(&self) -> &RefCell<quiche::Connection<Shares>> {
        &self.quic
    }

    /// Returns the traffic of the connection.
    pub fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    pub(super) fn was_reached_as(&self, id: ConnectionId<'static>) {
        *self.chosen.borrow_mut() = Some(id);
    }

    /// Returns the ids that lead to the connection.
    pub(super) fn ids(&self) -> Vec<ConnectionId<'static>> {
        let quic = self.quic.borrow();
        let ids = quic.source_ids().map(|id| id.clone().into_owned());
        ids.chain(self.chosen.borrow().clone()).collect()
    }

    pub(super) fn receive(&self, datagram: &mut [u8], from: SocketAddr, to: SocketAddr) {
        self.count(0, datagram.len());
        let info = quiche::RecvInfo { from, to };
        // Errors in it show in the connection's state.
        let _ = self.quic.borrow_mut().recv(datagram, info);
    }

    /// Counts datagrams of the socket. quiche does not count those it cannot read, and some
    /// padding.
    pub(super) fn count(&self, sent: usize, received: usize) {
        self.traffic.set(self.traffic.get().with(sent, received));
    }

    /// Wakes everybody who may be able to continue after something was received.
    pub(super) fn wake(&self) {
        let is_over = self.ended().is_some();
        let mut woken: Vec<Waker> = Vec::new();
        let mut readers = self.readers.borrow_mut();
        for id in self.quic.borrow().readable() {
            let kind = usize::from(id & 2 != 0);
            if id % 4 == self.accepted[kind].get() % 4 {
                self.seen[kind].set(self.seen[kind].get().max(id + 1));
            }
            woken.extend(readers.remove(&id));
        }
        if is_over {
            woken.extend(readers.drain().map(|(_, waker)| waker));
            woken.extend(self.writers.take().into_values());
        }
        drop(readers);
        woken.into_iter().for_each(Waker::wake);
        self.users.wake_all();
        self.on_sent();
    }

    /// Wakes those who may be able to continue after something was sent.
    pub(super) fn on_sent(&self) {
        let mut writers = self.writers.borrow_mut();
        if !writers.is_empty() {
            let writable = self.quic.borrow().writable();
            let woken: Vec<_> = writable.filter_map(|id| writers.remove(&id)).collect();
            drop(writers);
            woken.into_iter().for_each(Waker::wake);
        }
        self.room.wake_all();
    }

    /// Makes the endpoint send.
    pub fn touch(&self) {
        if !self.is_dirty.replace(true) {
            self.shared.dirty.borrow_mut().push_back(self.number);
            self.shared.wake();
        }
    }

    /// Notes that the endpoint serves it now.
    pub(super) fn mark_served(&self) {
        self.is_dirty.set(false);
    }

    /// Closes the connection with an application's code.
    pub fn close(&self, code: u64) {
        // An error means that it is closed already.
        let _ = self.quic.borrow_mut().close(true, code, b"");
        self.touch();
    }

    /// Returns the reason for the end of the connection once it has ended.
    pub fn ended(&self) -> Option<Ended> {
        let quic = self.quic.borrow();
        (quic.is_draining() || quic.is_closed()).then(|| Ended::of(&quic))
    }

    /// Waits until `look` returns a value.
    pub async fn wait<T>(&self, look: impl FnMut() -> Option<T>) -> T {
        wait(&self.users, look).await
    }

    /// Opens a stream, once the peer allows it.
    pub async fn open(&self, kind: Kind) -> Result<u64, Ended> {
        self.wait(|| {
            if let Some(ended) = self.ended() {
                return Some(Err(ended));
            }
            let mut quic = self.quic.borrow_mut();
            let left = match kind {
                Kind::Bidi => quic.peer_streams_left_bidi(),
                Kind::Uni => quic.peer_streams_left_uni(),
            };
            let next = &self.opened[kind as usize];
            let id = next.get();
            // An empty write creates the stream.
            if left == 0 || quic.stream_send_zc(id, Bytes::new(), false).is_err() {
                return None;
            }
            next.set(id + 4);
            Some(Ok(id))
        })
        .await
    }

    /// Returns the peer's next stream. A stream with a higher number opens those below it too
    /// (RFC 9000 §3.2).
    pub async fn accept(&self, kind: Kind) -> Result<u64, Ended> {
        self.wait(|| {
            let next = &self.accepted[kind as usize];
            let id = next.get();
            if id < self.seen[kind as usize].get() {
                next.set(id + 4);
                return Some(Ok(id));
            }
            self.ended().map(Err)
        })
        .await
    }

    /// Sends a datagram (RFC 9221), once there is room for it.
    pub async fn send_datagram(&self, data: Bytes) -> Result<(), StreamError> {
        let sent = wait(&self.room, || {
            if let Some(ended) = self.ended() {
                return Some(Err(StreamError::Ended(ended)));
            }
            match self.quic.borrow_mut().dgram_send_buf(data.clone()) {
                Ok(()) => Some(Ok(())),
                Err(quiche::Error::Done) => None,
                Err(error) => Some(Err(StreamError::Other(error))),
            }
        });
        sent.await?;
        self.touch();
        Ok(())
    }

    /// Returns the peer's next datagram.
    pub async fn receive_datagram(&self) -> Result<Bytes, Ended> {
        self.wait(|| {
            if let Ok(datagram) = self.quic.borrow_mut().dgram_recv_buf() {
                return Some(Ok(datagram));
            }
            self.ended().map(Err)
        })
        .await
    }
}

/// Waits until `look` returns a value.
async fn wait<T>(waiting: &Waiting, mut look: impl FnMut() -> Option<T>) -> T {
    poll_fn(|cx| {
        if let Some(seen) = look() {
            return Poll::Ready(seen);
        }
        waiting.join(cx);
        Poll::Pending
    })
    .await
}
