//! The bidirectional streams of the peer, where they can belong to sessions of WebTransport.
//!
//! `h3` cannot give up a stream, so the first integer of each is read here.

use std::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use h3::{error::Code, quic::ConnectionErrorIncoming};
use hybriq::{RecvStream, SendStream};
use tokio::time::{Sleep, sleep};

use crate::adapter::{
    budget::Budget,
    openings::Openings,
    transport::Transport,
    varint,
    webtransport::{Arrived, BIDI, Sessions},
};

/// Largest number of bytes of a stream that are read before it is known to whom it belongs: room for the
/// fields of most requests. A stream of a session may wait for long with them.
const MOST: usize = 1024;

/// Streams whose first integers are not whole. The transport limits their number.
pub(crate) struct Bidis {
    opening: Openings<Opening>,
    /// Streams that begin in this turn.
    budget: Budget,
}

impl Default for Bidis {
    fn default() -> Self {
        Self {
            opening: Openings::default(),
            budget: Budget::new(),
        }
    }
}

struct Opening {
    send: SendStream,
    recv: RecvStream,
    head: BytesMut,
    /// End of the time in which its first integers have to arrive, once they were missing.
    late: Option<Pin<Box<Sleep>>>,
}

/// A stream for `h3`, with the bytes that were read from it.
pub(crate) struct Request {
    pub(crate) send: SendStream,
    pub(crate) recv: RecvStream,
    pub(crate) head: Bytes,
}

impl Request {
    /// Resets the stream, in both directions.
    pub(crate) fn refuse(mut self, code: u64) {
        self.send.reset(code);
        self.recv.stop(code);
    }
}

/// Beginning of a stream.
#[derive(Clone, Copy)]
enum Start {
    /// More bytes are needed.
    Unknown,
    Request,
    /// A stream of the session with this id, and the length of its header in bytes.
    Session(u64, usize),
}

impl Bidis {
    /// Returns the number of streams whose first integers are not whole.
    pub(crate) fn opening(&self) -> usize {
        self.opening.len()
    }

    /// Returns the next stream for `h3`. Gives streams of sessions to them.
    pub(crate) fn poll_accept(
        &mut self,
        transport: &mut Transport,
        sessions: &Sessions,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Request, ConnectionErrorIncoming>> {
        let time = sessions.limits().header_time;
        loop {
            ready!(self.budget.poll_turn(cx));
            let (opening, start) = match transport.poll_accept_bidi(cx) {
                Poll::Ready(Ok((send, recv))) => {
                    let mut opening = Opening {
                        send,
                        recv,
                        head: BytesMut::new(),
                        late: None,
                    };
                    // Most streams have come with their first bytes.
                    match opening.poll_start(&mut Context::from_waker(Waker::noop())) {
                        Start::Unknown => {
                            self.budget.step();
                            self.opening.add(opening);
                            continue;
                        }
                        start => (opening, start),
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    let polled = self
                        .opening
                        .poll(cx, |opening, cx| opening.poll_until(time, cx));
                    let Some(polled) = polled else {
                        return Poll::Pending;
                    };
                    polled
                }
            };
            let taken = opening.start(start, transport, sessions);
            if let Some(request) = taken.transpose() {
                return Poll::Ready(request);
            }
            self.budget.step();
        }
    }
}

impl Opening {
    /// Returns the beginning once it is known, and that there is none when it is late.
    fn poll_until(&mut self, time: Duration, cx: &mut Context<'_>) -> Option<Start> {
        match self.poll_start(cx) {
            Start::Unknown if self.is_late(time, cx) => Some(Start::Unknown),
            Start::Unknown => None,
            start => Some(start),
        }
    }

    /// Returns the stream if it is one for `h3`. Gives one of a session to it.
    fn start(
        self,
        start: Start,
        transport: &Transport,
        sessions: &Sessions,
    ) -> Result<Option<Request>, ConnectionErrorIncoming> {
        match start {
            Start::Unknown => self.refuse(),
            Start::Session(id, _) if id % 4 != 0 => {
                let error_code = Code::H3_ID_ERROR.value();
                let reason = b"a session of a stream that carries no request";
                transport.close(error_code, reason);
                return Err(ConnectionErrorIncoming::ApplicationClose { error_code });
            }
            Start::Session(id, len) => {
                let head = self.head.freeze().split_off(len);
                sessions.on_stream(id, Arrived::Bidi(self.send, self.recv, head));
            }
            Start::Request => {
                return Ok(Some(Request {
                    send: self.send,
                    recv: self.recv,
                    head: self.head.freeze(),
                }));
            }
        }
        Ok(None)
    }

    /// Returns true if the first integers did not arrive in time.
    fn is_late(&mut self, time: Duration, cx: &mut Context<'_>) -> bool {
        let late = self.late.get_or_insert_with(|| Box::pin(sleep(time)));
        late.as_mut().poll(cx).is_ready()
    }

    /// Resets the stream.
    fn refuse(mut self) {
        let code = Code::H3_REQUEST_INCOMPLETE.value();
        self.send.reset(code);
        self.recv.stop(code);
    }

    fn poll_start(&mut self, cx: &mut Context<'_>) -> Start {
        loop {
            match start(&self.head) {
                Start::Unknown => {}
                start => return start,
            }
            match self.recv.poll_read_start(cx, MOST) {
                Poll::Ready(Ok(Some(data))) => self.head.extend_from_slice(&data),
                // `h3` finds the fault.
                Poll::Ready(Ok(None) | Err(_)) => return Start::Request,
                Poll::Pending => return Start::Unknown,
            }
        }
    }
}

fn start(head: &[u8]) -> Start {
    let mut rest = head;
    match varint::read(&mut rest) {
        None => Start::Unknown,
        Some(BIDI) => match varint::read(&mut rest) {
            None => Start::Unknown,
            Some(session) => Start::Session(session, head.len() - rest.len()),
        },
        Some(_) => Start::Request,
    }
}
