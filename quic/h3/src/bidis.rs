//! The bidirectional streams of the peer, where they can belong to sessions of WebTransport.
//!
//! `h3` cannot give up a stream, so the first integer of each is read here.

use std::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use h3::{error::Code, quic::ConnectionErrorIncoming};
use hybriq::{RecvStream, SendStream};
use tokio::time::{Sleep, sleep};

use crate::{
    transport::Transport,
    varint,
    webtransport::{Arrived, BIDI, Sessions},
};

/// Streams whose first integers are not whole. The transport limits their number.
#[derive(Default)]
pub(crate) struct Bidis(Vec<Opening>);

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

/// Beginning of a stream.
enum Start {
    /// More bytes are needed.
    Unknown,
    Request,
    /// A stream of the session, behind a header of so many bytes.
    Session(u64, usize),
}

impl Bidis {
    /// Returns the next stream for `h3`. Gives streams of sessions to them.
    pub(crate) fn poll_accept(
        &mut self,
        transport: &mut Transport,
        sessions: &Sessions,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Request, ConnectionErrorIncoming>> {
        loop {
            match transport.poll_accept_bidi(cx) {
                Poll::Ready(Ok((send, recv))) => self.0.push(Opening {
                    send,
                    recv,
                    head: BytesMut::new(),
                    late: None,
                }),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => break,
            }
        }
        let mut index = 0;
        while let Some(opening) = self.0.get_mut(index) {
            let start = opening.poll_start(cx);
            if matches!(start, Start::Unknown) {
                if opening.is_late(sessions.limits().header_time, cx) {
                    self.0.remove(index).refuse();
                } else {
                    index += 1;
                }
                continue;
            }
            let Opening {
                send, recv, head, ..
            } = self.0.remove(index);
            let mut head = head.freeze();
            match start {
                Start::Session(id, _) if id % 4 != 0 => {
                    let code = Code::H3_ID_ERROR.value();
                    transport.close(code, b"a session of a stream that carries no request");
                    let error_code = code;
                    let error = ConnectionErrorIncoming::ApplicationClose { error_code };
                    return Poll::Ready(Err(error));
                }
                Start::Session(id, len) => {
                    let head = head.split_off(len);
                    sessions.on_stream(id, Arrived::Bidi(send, recv, head));
                }
                Start::Request | Start::Unknown => {
                    return Poll::Ready(Ok(Request { send, recv, head }));
                }
            }
        }
        Poll::Pending
    }
}

impl Opening {
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
            match self.recv.poll_read_chunk(cx, usize::MAX) {
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
