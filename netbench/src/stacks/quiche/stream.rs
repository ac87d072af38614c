//! Streams of quiche.

use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use quiche::{Error, Shutdown};

use super::{Line, StreamError};

/// Maximum number of bytes read at once.
const CHUNK: usize = 64 * 1024;

/// End of a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// After these bytes.
    Here,
    Later,
}

/// Sending half of a stream. Dropped unfinished, it resets the stream.
pub struct Sender {
    id: u64,
    line: Rc<Line>,
    over: bool,
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl Sender {
    /// Returns this half of the stream with that id.
    pub fn new(id: u64, line: Rc<Line>) -> Self {
        Self {
            id,
            line,
            over: false,
        }
    }

    /// Takes some of the bytes, and returns their number.
    pub fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize, StreamError>> {
        self.poll_send(cx, data, End::Later)
    }

    /// Ends the stream, without waiting for the peer.
    pub fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        let finished = self.poll_send(cx, b"", End::Here).map_ok(|_| ());
        self.over |= finished.is_ready();
        finished
    }

    fn poll_send(
        &self,
        cx: &Context<'_>,
        data: &[u8],
        end: End,
    ) -> Poll<Result<usize, StreamError>> {
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
            Err(Error::StreamStopped(code)) => Poll::Ready(Err(StreamError::Stopped(code))),
            Err(error) => {
                if let Some(ended) = self.line.ended() {
                    return Poll::Ready(Err(StreamError::Ended(ended)));
                }
                if error != Error::Done {
                    return Poll::Ready(Err(StreamError::Other(error)));
                }
                let mut writers = self.line.writers.borrow_mut();
                writers.insert(self.id, cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Resets the stream.
    pub fn reset(&mut self, code: u64) {
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

/// Receiving half of a stream. Dropped before the end, it stops the stream.
pub struct Receiver {
    id: u64,
    line: Rc<Line>,
    over: bool,
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Receiver {
    /// Returns this half of the stream with that id.
    pub fn new(id: u64, line: Rc<Line>) -> Self {
        Self {
            id,
            line,
            over: false,
        }
    }

    /// Returns the next bytes, at most `max`; `None` at the end.
    pub fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, StreamError>> {
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
                Poll::Ready(Err(StreamError::Reset(code)))
            }
            other => {
                let error = other.err().unwrap_or(Error::Done);
                if let Some(ended) = self.line.ended() {
                    return Poll::Ready(Err(StreamError::Ended(ended)));
                }
                // A stream below one that arrived has no state yet.
                if !matches!(error, Error::Done | Error::InvalidStreamState(_)) {
                    return Poll::Ready(Err(StreamError::Other(error)));
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
