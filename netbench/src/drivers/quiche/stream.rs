//! Streams of quiche.

use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use quiche::{Error, Shutdown};

use super::line::Line;
use crate::drivers::{Reader, Writer};
use crate::outcome::{Failed, Kind};

/// Maximum number of bytes read at once.
const CHUNK: usize = 64 * 1024;

pub(super) fn both(id: u64, line: &Rc<Line>) -> (Box<dyn Writer>, Box<dyn Reader>) {
    (writer(id, line), reader(id, line))
}

pub(super) fn writer(id: u64, line: &Rc<Line>) -> Box<dyn Writer> {
    Box::new(Sender {
        id,
        line: Rc::clone(line),
        over: false,
    })
}

pub(super) fn reader(id: u64, line: &Rc<Line>) -> Box<dyn Reader> {
    Box::new(Receiver {
        id,
        line: Rc::clone(line),
        over: false,
    })
}

/// End of a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// After these bytes.
    Here,
    Later,
}

struct Sender {
    id: u64,
    line: Rc<Line>,
    over: bool,
}

impl Sender {
    fn poll_write(&self, cx: &Context<'_>, data: &[u8], end: End) -> Poll<Result<usize, Failed>> {
        let sent = self
            .line
            .quic
            .borrow_mut()
            .stream_send(self.id, data, end == End::Here);
        match sent {
            Ok(sent) => {
                self.line.touch();
                Poll::Ready(Ok(sent))
            }
            Err(Error::StreamStopped(code)) => {
                let detail = format!("the peer wants no more of it: {code}");
                Poll::Ready(Err(Failed::new(Kind::Reset, detail)))
            }
            Err(error) => {
                if let Some(failed) = self.line.over() {
                    return Poll::Ready(Err(failed));
                }
                if error != Error::Done {
                    return Poll::Ready(Err(Failed::other(error)));
                }
                let mut writers = self.line.writers.borrow_mut();
                writers.insert(self.id, cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Writer for Sender {
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), Failed>> {
        if data.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.poll_write(cx, data, End::Later)
            .map_ok(|sent| data.advance(sent))
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        let finished = self.poll_write(cx, b"", End::Here).map_ok(|_| ());
        self.over |= finished.is_ready();
        finished
    }

    fn reset(&mut self, code: u64) {
        if !std::mem::replace(&mut self.over, true) {
            let mut quic = self.line.quic.borrow_mut();
            // An error means that the stream is over.
            let _ = quic.stream_shutdown(self.id, Shutdown::Write, code);
            drop(quic);
            self.line.touch();
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.line.writers.borrow_mut().remove(&self.id);
        self.reset(0);
    }
}

struct Receiver {
    id: u64,
    line: Rc<Line>,
    over: bool,
}

impl Reader for Receiver {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, Failed>> {
        if self.over {
            return Poll::Ready(Ok(None));
        }
        let mut buffer = vec![0; max.min(CHUNK)];
        let received = self
            .line
            .quic
            .borrow_mut()
            .stream_recv(self.id, &mut buffer);
        match received {
            Ok((len, end)) if len > 0 || end => {
                self.over = end;
                // Reading may give credit to the peer.
                self.line.touch();
                buffer.truncate(len);
                Poll::Ready(Ok((len > 0).then(|| buffer.into())))
            }
            Err(Error::StreamReset(code)) => {
                self.over = true;
                let detail = format!("the peer reset the stream with code {code}");
                Poll::Ready(Err(Failed::new(Kind::Reset, detail)))
            }
            other => {
                let error = other.err().unwrap_or(Error::Done);
                if let Some(failed) = self.line.over() {
                    return Poll::Ready(Err(failed));
                }
                // A stream below one that arrived has no state yet.
                if !matches!(error, Error::Done | Error::InvalidStreamState(_)) {
                    return Poll::Ready(Err(Failed::other(error)));
                }
                let mut readers = self.line.readers.borrow_mut();
                readers.insert(self.id, cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.line.readers.borrow_mut().remove(&self.id);
        if !self.over {
            let mut quic = self.line.quic.borrow_mut();
            let _ = quic.stream_shutdown(self.id, Shutdown::Read, 0);
            drop(quic);
            self.line.touch();
        }
    }
}
