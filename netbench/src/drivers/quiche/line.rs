//! One connection of quiche.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use quiche::ConnectionId;

use crate::drivers::wakers::Wakers;
use crate::drivers::{Role, Traffic, failures};
use crate::outcome::{Failed, Kind};

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

/// A connection, shared by its endpoint and its users.
pub(super) struct Line {
    pub(super) quic: RefCell<quiche::Connection>,
    pub(super) timer: Cell<Option<Instant>>,
    pub(super) readers: RefCell<HashMap<u64, Waker>>,
    pub(super) writers: RefCell<HashMap<u64, Waker>>,
    users: Arc<Wakers>,
    dirty: Rc<Dirty>,
    number: Number,
    pub(super) traffic: Cell<Traffic>,
    /// Destination id that the client chose at first.
    chosen: RefCell<Option<ConnectionId<'static>>>,
    /// Numbers of the next streams of either end: bidirectional, unidirectional.
    opened: [Cell<u64>; 2],
    accepted: [Cell<u64>; 2],
}

pub(super) const BIDI: usize = 0;
pub(super) const UNI: usize = 1;

impl Line {
    pub(super) fn new(
        quic: quiche::Connection,
        dirty: Rc<Dirty>,
        number: Number,
        role: Role,
    ) -> Self {
        // RFC 9000 §2.1.
        let (ours, theirs) = match role {
            Role::Client => (0, 1),
            Role::Server => (1, 0),
        };
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
    pub(super) fn touch(&self) {
        self.dirty.touch(self.number);
    }

    pub(super) fn close(&self, code: u64) {
        // An error means that it is closed already.
        let _ = self.quic.borrow_mut().close(true, code, b"");
        self.touch();
    }

    /// Returns the outcome of the connection once it has ended.
    pub(super) fn ended(&self) -> Option<Result<(), Failed>> {
        let quic = self.quic.borrow();
        if !quic.is_draining() && !quic.is_closed() {
            return None;
        }
        let error = quic.peer_error().or(quic.local_error());
        Some(match error {
            Some(error) if error.is_app && error.error_code == 0 => Ok(()),
            Some(error) => {
                let reason = String::from_utf8_lossy(&error.reason);
                Err(if error.is_app {
                    Failed::new(Kind::Application(error.error_code), reason)
                } else {
                    failures::transport(error.error_code, reason)
                })
            }
            None if quic.is_timed_out() => Err(Failed::new(Kind::Timeout, "nothing came")),
            None => Err(Failed::new(Kind::Reset, "the peer lost the connection")),
        })
    }

    /// Returns the failure of operations after the end of the connection.
    pub(super) fn over(&self) -> Option<Failed> {
        let closed = || Failed::new(Kind::Reset, "the connection is closed");
        self.ended().map(|ended| ended.err().unwrap_or_else(closed))
    }

    /// Waits until `look` returns a value.
    pub(super) async fn wait<T>(&self, mut look: impl FnMut(&Context<'_>) -> Option<T>) -> T {
        poll_fn(|cx| {
            if let Some(seen) = look(cx) {
                return Poll::Ready(seen);
            }
            let _ = self.users.join(cx);
            Poll::Pending
        })
        .await
    }

    /// Opens a stream, once the peer allows it.
    pub(super) async fn open(&self, kind: usize) -> Result<u64, Failed> {
        self.wait(|_| {
            if let Some(failed) = self.over() {
                return Some(Err(failed));
            }
            let mut quic = self.quic.borrow_mut();
            let left = match kind {
                BIDI => quic.peer_streams_left_bidi(),
                _ => quic.peer_streams_left_uni(),
            };
            let id = self.opened[kind].get();
            // An empty write creates the stream.
            if left == 0 || quic.stream_send(id, b"", false).is_err() {
                return None;
            }
            self.opened[kind].set(id + 4);
            Some(Ok(id))
        })
        .await
    }

    /// Returns the peer's next stream; `None` if the peer closed without an error.
    pub(super) async fn accept(&self, kind: usize) -> Result<Option<u64>, Failed> {
        self.wait(|_| {
            let id = self.accepted[kind].get();
            let quic = self.quic.borrow();
            // A stream with a higher number opens those below it too (RFC 9000 §3.2).
            if quic
                .readable()
                .any(|other| other >= id && other % 4 == id % 4)
            {
                self.accepted[kind].set(id + 4);
                return Some(Ok(Some(id)));
            }
            drop(quic);
            self.ended().map(|ended| ended.map(|()| None))
        })
        .await
    }
}
