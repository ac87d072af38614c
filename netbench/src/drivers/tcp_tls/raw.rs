//! A connection whose bytes are its only stream: a close_notify ends the stream, a RST resets it,
//! and the connection is closed once both directions have ended.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};

use super::session::{Session, failure};
use super::shared::Shared;
use crate::drivers::{Answer, Connection, Halves, Negotiated, Reader, Role, Stats, Writer};
use crate::system::outcome::{Failed, Kind};

/// Maximum number of bytes read at once: two records.
const CHUNK: usize = 32 * 1024;

pub(super) struct Raw {
    session: Session,
    role: Role,
    taken: Cell<bool>,
    /// Code with which this end closed the connection.
    closed: Cell<Option<u64>>,
}

impl Raw {
    pub(super) fn over(session: Session, role: Role) -> Rc<dyn Connection> {
        Rc::new(Self {
            session,
            role,
            taken: Cell::new(false),
            closed: Cell::new(None),
        })
    }

    fn stream(&self) -> (Box<dyn Writer>, Box<dyn Reader>) {
        let writer = RawWriter {
            tls: self.session.tls.clone(),
            over: false,
        };
        let reader = RawReader {
            tls: self.session.tls.clone(),
            buffer: BytesMut::new(),
        };
        (Box::new(writer), Box::new(reader))
    }

    fn poll_closed(&self, cx: &Context<'_>) -> Poll<Result<(), Failed>> {
        let mut tls = self.session.tls.0.borrow_mut();
        if let Some(code) = self.closed.get() {
            // An absent peer need not be told.
            let _ = ready!(tls.poll_finish(cx));
            return Poll::Ready(match code {
                0 => Ok(()),
                code => Err(Failed::new(Kind::Application(code), "closed by this end")),
            });
        }
        ready!(tls.poll_peer_finished(cx)).map_err(failure)?;
        if !tls.has_finished() {
            tls.socket.wait(cx);
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

fn only_one<T>() -> Result<T, Failed> {
    Err(Failed::other(
        "this connection was set up for one bidirectional stream of its client",
    ))
}

impl Connection for Raw {
    fn established(&self) -> Answer<'_, Negotiated> {
        Box::pin(self.session.established())
    }

    fn open_bidi(&self) -> Answer<'_, Halves> {
        Box::pin(async {
            if self.role == Role::Server || self.taken.replace(true) {
                return only_one();
            }
            Ok(self.stream())
        })
    }

    fn open_uni(&self) -> Answer<'_, Box<dyn Writer>> {
        Box::pin(async { only_one() })
    }

    fn accept_bidi(&self) -> Answer<'_, Option<Halves>> {
        Box::pin(async {
            if self.role == Role::Server && !self.taken.replace(true) {
                return Ok(Some(self.stream()));
            }
            self.closed().await.map(|()| None)
        })
    }

    fn accept_uni(&self) -> Answer<'_, Option<Box<dyn Reader>>> {
        Box::pin(async { self.closed().await.map(|()| None) })
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
        self.closed.set(self.closed.get().or(Some(code)));
        let mut tls = self.session.tls.0.borrow_mut();
        if code != 0 {
            // There is no room for a code.
            tls.abort("closed by this end");
        }
        tls.socket.wake_all();
    }

    fn closed(&self) -> Answer<'_, ()> {
        Box::pin(poll_fn(|cx| self.poll_closed(cx)))
    }
}

struct RawWriter {
    tls: Shared,
    over: bool,
}

impl Writer for RawWriter {
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), Failed>> {
        if data.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let written = ready!(self.tls.0.borrow_mut().poll_write(cx, data)).map_err(failure)?;
        data.advance(written);
        Poll::Ready(Ok(()))
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        let finished = ready!(self.tls.0.borrow_mut().poll_finish(cx));
        self.over = true;
        Poll::Ready(finished.map_err(failure))
    }

    fn reset(&mut self, _: u64) {
        if !std::mem::replace(&mut self.over, true) {
            let mut tls = self.tls.0.borrow_mut();
            tls.abort("the stream was given up");
        }
    }
}

impl Drop for RawWriter {
    fn drop(&mut self) {
        self.reset(0);
    }
}

struct RawReader {
    tls: Shared,
    buffer: BytesMut,
}

impl Reader for RawReader {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, Failed>> {
        self.buffer.resize(max.min(CHUNK), 0);
        let read = ready!(self.tls.0.borrow_mut().poll_read(cx, &mut self.buffer));
        let read = read.map_err(failure)?;
        Poll::Ready(Ok((read > 0).then(|| self.buffer.split_to(read).freeze())))
    }
}
