//! Streams of quiche.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use quiche::{Error, Shutdown};

use super::{Line, StreamError};

/// Maximum number of bytes read at once.
const CHUNK: usize = 64 * 1024;
/// Number of bytes for which there is always room.
const LEAST: usize = 16 * 1024;

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

    /// Takes some of the bytes.
    pub fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        data: &mut Bytes,
    ) -> Poll<Result<(), StreamError>> {
        let sent = self.poll_send(cx, data.clone(), End::Later);
        sent.map_ok(|sent| data.advance(sent))
    }

    /// Ends the stream, without waiting for the peer.
    pub fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        let finished = self.poll_send(cx, Bytes::new(), End::Here).map_ok(|_| ());
        self.over |= finished.is_ready();
        finished
    }

    fn poll_send(
        &self,
        cx: &Context<'_>,
        data: Bytes,
        end: End,
    ) -> Poll<Result<usize, StreamError>> {
        let mut quic = self.line.quic.borrow_mut();
        let sent = quic.stream_send_zc(self.id, data, end == End::Here);
        drop(quic);
        match sent {
            Ok((sent, _)) => {
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

    /// Sends bytes, once there is room for them.
    pub async fn send(&mut self, mut data: Bytes) -> Result<(), StreamError> {
        while !data.is_empty() {
            poll_fn(|cx| self.poll_write(cx, &mut data)).await?;
        }
        Ok(())
    }

    /// Ends the stream, without waiting for the peer.
    pub async fn finish(&mut self) -> Result<(), StreamError> {
        poll_fn(|cx| self.poll_finish(cx)).await
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

    /// Returns the next bytes; `None` at the end.
    pub async fn receive(&mut self) -> Result<Option<Bytes>, StreamError> {
        poll_fn(|cx| self.poll_receive(cx, CHUNK)).await
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
        let buffer = &mut *self.line.shared.received.borrow_mut();
        let room = max.min(CHUNK);
        if buffer.capacity() < room.min(LEAST) {
            *buffer = BytesMut::with_capacity(CHUNK);
        }
        let room = room.min(buffer.capacity());
        let room = (&mut *buffer).limit(room);
        let received = self.line.quic.borrow_mut().stream_recv_buf(self.id, room);
        match received {
            Ok((len, end)) if len > 0 || end => {
                self.over = end;
                // Reading may give credit to the peer.
                self.line.touch();
                Poll::Ready(Ok((len > 0).then(|| buffer.split().freeze())))
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
