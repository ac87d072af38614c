//! A connection with any number of streams, by yamux.
//!
//! yamux has neither unidirectional streams nor codes, and cannot distinguish a stream's end from
//! its loss. So a stream begins with a byte for its kind, and its data comes in chunks:
//!
//! ```text
//!   kind │ length, bytes │ length, bytes │ … │ END or LOST        kind: BIDI, UNI
//!   kind │ code                                                   kind: CLOSE
//! ```

use std::future::poll_fn;
use std::rc::Rc;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::pump::Pump;
use super::session::Session;
use super::stream::{self, BIDI, State, Stream, UNI};
use crate::drivers::{Answer, Connection, Halves, Negotiated, Reader, Role, Stats, Writer};
use crate::system::outcome::Failed;

pub(super) struct Multiplexed {
    session: Session,
    state: Rc<State>,
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
