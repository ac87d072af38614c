//! One connection of quiche.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Instant;

use bytes::Bytes;
use quiche::ConnectionId;

use super::{Ended, StreamError};
use crate::stacks::Traffic;
use crate::stacks::wakers::Wakers;

/// Number of a connection of an endpoint.
pub(super) type Number = u64;

/// Connections that may have something to send, or a new timer.
#[derive(Default)]
pub(super) struct Dirty {
    pub(super) numbers: RefCell<VecDeque<Number>>,
    /// Task that serves them.
    pub(super) pump: Arc<Wakers>,
}

impl Dirty {
    /// Makes the endpoint serve a connection.
    pub(super) fn touch(&self, number: Number) {
        self.numbers.borrow_mut().push_back(number);
        self.pump.wake_all();
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
    pub(super) quic: RefCell<quiche::Connection>,
    pub(super) timer: Cell<Option<Instant>>,
    pub(super) readers: RefCell<HashMap<u64, Waker>>,
    pub(super) writers: RefCell<HashMap<u64, Waker>>,
    users: Arc<Wakers>,
    dirty: Rc<Dirty>,
    number: Number,
    traffic: Cell<Traffic>,
    /// Destination id that the client chose at first.
    chosen: RefCell<Option<ConnectionId<'static>>>,
    /// Numbers of the next streams of either end: bidirectional, unidirectional.
    opened: [Cell<u64>; 2],
    accepted: [Cell<u64>; 2],
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

impl Line {
    pub(super) fn new(quic: quiche::Connection, dirty: Rc<Dirty>, number: Number) -> Self {
        // RFC 9000 §2.1.
        let (ours, theirs) = if quic.is_server() { (1, 0) } else { (0, 1) };
        Self {
            quic: RefCell::new(quic),
            timer: Cell::default(),
            readers: RefCell::default(),
            writers: RefCell::default(),
            users: Arc::default(),
            dirty,
            number,
            traffic: Cell::default(),
            chosen: RefCell::default(),
            opened: [Cell::new(ours), Cell::new(ours + 2)],
            accepted: [Cell::new(theirs), Cell::new(theirs + 2)],
        }
    }

    /// Returns the connection. What a change of it makes ready to send goes out after
    /// [`Line::touch`].
    pub fn quic(&self) -> &RefCell<quiche::Connection> {
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

    /// Wakes everybody who may be able to continue.
    pub(super) fn wake(&self) {
        let quic = self.quic.borrow();
        let over = quic.is_draining() || quic.is_closed();
        let readers = &mut self.readers.borrow_mut();
        let woken: Vec<_> = if over {
            readers.drain().map(|(_, waker)| waker).collect()
        } else {
            quic.readable()
                .filter_map(|id| readers.remove(&id))
                .collect()
        };
        drop(quic);
        let writers = std::mem::take(&mut *self.writers.borrow_mut());
        for waker in woken.into_iter().chain(writers.into_values()) {
            waker.wake();
        }
        self.users.wake_all();
    }

    /// Makes the endpoint send.
    pub fn touch(&self) {
        self.dirty.touch(self.number);
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
    pub async fn wait<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        poll_fn(|cx| {
            if let Some(seen) = look() {
                return Poll::Ready(seen);
            }
            let _ = self.users.join(cx);
            Poll::Pending
        })
        .await
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
            if left == 0 || quic.stream_send(id, b"", false).is_err() {
                return None;
            }
            next.set(id + 4);
            Some(Ok(id))
        })
        .await
    }

    /// Returns the peer's next stream.
    pub async fn accept(&self, kind: Kind) -> Result<u64, Ended> {
        self.wait(|| {
            let next = &self.accepted[kind as usize];
            let id = next.get();
            let quic = self.quic.borrow();
            // A stream with a higher number opens those below it too (RFC 9000 §3.2).
            if quic
                .readable()
                .any(|other| other >= id && other % 4 == id % 4)
            {
                next.set(id + 4);
                return Some(Ok(id));
            }
            drop(quic);
            self.ended().map(Err)
        })
        .await
    }

    /// Sends a datagram (RFC 9221), once there is room for it.
    pub async fn send_datagram(&self, data: &[u8]) -> Result<(), StreamError> {
        let sent = self.wait(|| {
            if let Some(ended) = self.ended() {
                return Some(Err(StreamError::Ended(ended)));
            }
            match self.quic.borrow_mut().dgram_send(data) {
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
                return Some(Ok(Bytes::copy_from_slice(datagram.as_ref())));
            }
            self.ended().map(Err)
        })
        .await
    }
}
