//! A connection with any number of streams, by yamux.
//!
//! yamux knows neither unidirectional streams, nor codes, and cannot tell a stream's end from its
//! loss. So a stream begins with a byte that says what it is, and its bytes come in chunks:
//!
//! ```text
//!   kind │ length, bytes │ length, bytes │ … │ END or LOST        kind: BIDI, UNI
//!   kind │ code                                                   kind: CLOSE
//! ```

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::pump::Pump;
use super::session::Session;
use super::stream::{self, Abandoned, Both, Stream};
use crate::drivers::wakers::Wakers;
use crate::drivers::{Answer, Connection, Halves, Negotiated, Reader, Role, Stats, Writer};
use crate::outcome::{Failed, Kind};

pub(super) const BIDI: u8 = 0;
pub(super) const UNI: u8 = 1;
pub(super) const CLOSE: u8 = 2;

pub(super) struct Multiplexed {
    session: Session,
    state: Rc<State>,
}

/// What users of a connection and its [`Pump`] share.
#[derive(Default)]
pub(super) struct State {
    pub(super) bidi: RefCell<VecDeque<Both>>,
    pub(super) uni: RefCell<VecDeque<Box<dyn Reader>>>,
    /// Who waits for a new stream.
    pub(super) wanted: RefCell<VecDeque<oneshot::Sender<Stream>>>,
    /// Halves of streams that were given up, of which the peer has to be told.
    pub(super) abandoned: RefCell<Vec<Abandoned>>,
    /// The code this end closes it with.
    pub(super) close: Cell<Option<u64>>,
    /// How it ended.
    pub(super) ended: RefCell<Option<Result<(), Failed>>>,
    /// Who waits for the pump.
    pub(super) users: Arc<Wakers>,
    /// The pump.
    pub(super) pump: Arc<Wakers>,
}

impl State {
    /// Waits for one from a queue. `None`: the peer closed without an error.
    fn poll_next<T>(
        &self,
        cx: &Context<'_>,
        queue: &RefCell<VecDeque<T>>,
    ) -> Poll<Result<Option<T>, Failed>> {
        if let Some(next) = queue.borrow_mut().pop_front() {
            return Poll::Ready(Ok(Some(next)));
        }
        self.poll_ended(cx).map_ok(|()| None)
    }

    fn poll_ended(&self, cx: &Context<'_>) -> Poll<Result<(), Failed>> {
        if let Some(ended) = &*self.ended.borrow() {
            return Poll::Ready(ended.clone());
        }
        let _ = self.users.join(cx);
        Poll::Pending
    }

    /// Why a stream of this connection ended without saying so.
    pub(super) fn lost(&self) -> Failed {
        match &*self.ended.borrow() {
            Some(Err(failed)) => failed.clone(),
            _ => Failed::new(Kind::Reset, "the peer gave up the stream"),
        }
    }
}

impl Multiplexed {
    pub(super) fn begin(session: Session, role: Role) -> Rc<dyn Connection> {
        let state = Rc::<State>::default();
        let mut pump = Pump::new(session.tls.clone(), Rc::clone(&state), role);
        tokio::task::spawn_local(poll_fn(move |cx| pump.poll(cx)));
        Rc::new(Self { session, state })
    }

    async fn open(&self) -> Result<Stream, Failed> {
        let (to, opened) = oneshot::channel();
        self.state.wanted.borrow_mut().push_back(to);
        self.state.pump.wake_all();
        opened.await.map_err(|_| self.state.lost())
    }
}

impl Connection for Multiplexed {
    fn established(&self) -> Answer<'_, Negotiated> {
        Box::pin(self.session.established())
    }

    fn open_bidi(&self) -> Answer<'_, Halves> {
        Box::pin(async { Ok(stream::both(self.open().await?, Some(BIDI), &self.state)) })
    }

    fn open_uni(&self) -> Answer<'_, Box<dyn Writer>> {
        Box::pin(async { Ok(stream::both(self.open().await?, Some(UNI), &self.state).0) })
    }

    fn accept_bidi(&self) -> Answer<'_, Option<Halves>> {
        Box::pin(poll_fn(|cx| self.state.poll_next(cx, &self.state.bidi)))
    }

    fn accept_uni(&self) -> Answer<'_, Option<Box<dyn Reader>>> {
        Box::pin(poll_fn(|cx| self.state.poll_next(cx, &self.state.uni)))
    }

    fn send_datagram(&self, _: Bytes) -> Answer<'_, ()> {
        Box::pin(async { Err(Failed::other(super::NO_DATAGRAMS)) })
    }

    fn receive_datagram(&self) -> Answer<'_, Option<Bytes>> {
        Box::pin(async { self.closed().await.map(|()| None) })
    }

    fn stats(&self) -> Stats {
        self.session.stats()
    }

    fn server_name(&self) -> Option<String> {
        self.session.server_name()
    }

    fn has_ticket(&self) -> bool {
        self.session.has_ticket()
    }

    fn close(&self, code: u64) {
        let close = &self.state.close;
        close.set(close.get().or(Some(code)));
        self.state.pump.wake_all();
    }

    fn closed(&self) -> Answer<'_, ()> {
        Box::pin(poll_fn(|cx| self.state.poll_ended(cx)))
    }
}

impl Drop for Multiplexed {
    fn drop(&mut self) {
        self.close(0);
    }
}
