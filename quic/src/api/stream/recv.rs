//! The receiving end of a stream.

use std::{
    fmt,
    future::poll_fn,
    task::{Context, Poll},
};

use bytes::Bytes;
use hybriq_proto::owners::streams::{self, Chunk, RecvEnd, StreamId, Streams};

use crate::{
    errors::{ReadError, wire_code},
    worker::{Handle, Rejected, State, set_waker},
};

/// The receiving end of a stream.
///
/// Dropping it before its end was read tells the peer to stop sending, with code 0 or the code of
/// [`ApplicationCodes::dropped_recv`](crate::transport::ApplicationCodes::dropped_recv).
pub struct RecvStream {
    handle: Handle,
    id: StreamId,
    pub(super) end: End,
    order: Order,
    early: bool,
    /// True if the connection has an entry for the waker of this stream's reader.
    waits: bool,
}

/// End of the stream as the reader saw it; every later call returns the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Open,
    Finished,
    Stopped,
    Failed(Box<ReadError>),
}

/// What a read of the last data does with the end of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Takes it as well, so that the peer may open another stream.
    Taken,
    /// Leaves it for a later read.
    Left,
}

/// Order in which the stream was read so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// From the front.
    Kept,
    /// By [`RecvStream::read_unordered`], so that ordered reads would miss data.
    Lost,
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RecvStream").field(&self.id).finish()
    }
}

impl RecvStream {
    pub(crate) fn new(handle: Handle, id: StreamId) -> Self {
        Self {
            handle,
            id,
            end: End::Open,
            order: Order::Kept,
            early: false,
            waits: false,
        }
    }

    /// Returns the stream's number.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Returns true on a server if some of the data arrived in 0-RTT packets, which an attacker can
    /// replay (RFC 9001 §9.2).
    ///
    /// The answer may become true while the stream is read. Refuse a request that must not run
    /// twice, or let the client repeat it on a stream that is not early.
    pub fn is_early(&self) -> bool {
        let streams = |state: &mut State| state.core.streams().is_early(self.id);
        // Whoever took the end of the stream knows of all data.
        self.early
            || self.end != End::Finished
                && self
                    .handle
                    .lock_stream()
                    .is_ok_and(|mut state| streams(&mut state))
    }

    /// Returns true once a read has reached the end of the stream. A read that returns the last data also
    /// reaches the end, if that has arrived.
    pub fn is_finished(&self) -> bool {
        self.end == End::Finished
    }

    /// Reads available bytes, in order, and returns their number; 0 means the end of the stream.
    ///
    /// Data that arrived before the connection ended can still be read.
    ///
    /// # Errors
    /// The peer reset the stream, this end stopped it, or the connection is over.
    ///
    /// # Cancel safety
    /// Reads nothing if the future is dropped before it is ready.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        poll_fn(|cx| self.poll_read(cx, buffer)).await
    }

    /// Reads up to `max` bytes without copying them; `None` means the end of the stream.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    ///
    /// # Cancel safety
    /// Reads nothing if the future is dropped before it is ready.
    pub async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, ReadError> {
        poll_fn(|cx| self.poll_read_chunk(cx, max)).await
    }

    /// Reads available data without copying it, into as many chunks as fit, under one lock. Returns
    /// the number of chunks filled, from the front; `None` means the end of the stream.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    ///
    /// # Cancel safety
    /// Reads nothing if the future is dropped before it is ready.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(mut recv: hybriq::RecvStream) -> Result<(), hybriq::ReadError> {
    /// let mut chunks = [const { bytes::Bytes::new() }; 16];
    /// while let Some(count) = recv.read_chunks(&mut chunks).await? {
    ///     let bytes: usize = chunks[..count].iter().map(|chunk| chunk.len()).sum();
    ///     println!("{bytes} bytes");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Option<usize>, ReadError> {
        poll_fn(|cx| self.poll_read_chunks(cx, chunks)).await
    }

    /// Reads up to `max` bytes, at least one, at any offset, without waiting for gaps to be filled;
    /// `None` means the end of the stream, once everything was read.
    ///
    /// Each byte is returned once, and not at all if an ordered read took it before. Afterwards
    /// ordered reads return [`ReadError::Unordered`].
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    ///
    /// # Cancel safety
    /// Reads nothing if the future is dropped before it is ready.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(mut recv: hybriq::RecvStream) -> Result<(), hybriq::ReadError> {
    /// let mut file = vec![0; 1 << 20];
    /// while let Some(chunk) = recv.read_unordered(64 * 1024).await? {
    ///     let start = chunk.offset as usize;
    ///     file[start..start + chunk.bytes.len()].copy_from_slice(&chunk.bytes);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read_unordered(&mut self, max: usize) -> Result<Option<Chunk>, ReadError> {
        poll_fn(|cx| self.poll_read_unordered(cx, max)).await
    }

    /// Reads available bytes; the twin of [`read`](Self::read).
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<Result<usize, ReadError>> {
        if buffer.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let read = self.poll_in_order(cx, |streams, id| match streams.read(id, buffer)? {
            0 => Ok(None),
            count => Ok(Some(count)),
        });
        read.map_ok(Option::unwrap_or_default)
    }

    /// Reads a chunk; the twin of [`read_chunk`](Self::read_chunk).
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn poll_read_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        if max == 0 {
            return Poll::Ready(Ok(Some(Bytes::new())));
        }
        self.poll_in_order(cx, |streams, id| streams.read_chunk(id, max))
    }

    /// Reads a chunk like [`poll_read_chunk`](Self::poll_read_chunk), but leaves the end of the
    /// stream for a later read, even if it arrived with the data.
    ///
    /// Until then the stream still counts against the limit of open streams. This is for programs
    /// that read the start of a stream to learn who it is for, and keep the stream until its owner
    /// asks for it: [`max_uni_streams`](crate::TransportConfig::max_uni_streams) and
    /// [`max_bidi_streams`](crate::TransportConfig::max_bidi_streams) limit such streams.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn poll_read_start(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        if max == 0 {
            return Poll::Ready(Ok(Some(Bytes::new())));
        }
        if self.order == Order::Lost {
            return Poll::Ready(Err(ReadError::Unordered));
        }
        self.poll_any(cx, Ending::Left, |streams, id| streams.read_chunk(id, max))
    }

    /// Reads into chunks; the twin of [`read_chunks`](Self::read_chunks).
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn poll_read_chunks(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut [Bytes],
    ) -> Poll<Result<Option<usize>, ReadError>> {
        if chunks.is_empty() {
            return Poll::Ready(Ok(Some(0)));
        }
        self.poll_in_order(cx, |streams, id| {
            let mut count = 0;
            for room in chunks {
                // After the first chunk, the end and errors wait for the next call.
                if count > 0 && streams.readable(id) == 0 {
                    break;
                }
                let Some(chunk) = streams.read_chunk(id, usize::MAX)? else {
                    return Ok(None);
                };
                *room = chunk;
                count += 1;
            }
            Ok(Some(count))
        })
    }

    /// Reads in any order; the twin of [`read_unordered`](Self::read_unordered).
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn poll_read_unordered(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Chunk>, ReadError>> {
        let read = self.poll_any(cx, Ending::Taken, |streams, id| {
            streams.read_unordered(id, max)
        });
        if let Poll::Ready(Ok(_)) = read {
            self.order = Order::Lost;
        }
        read
    }

    /// Reads in order.
    fn poll_in_order<T>(
        &mut self,
        cx: &mut Context<'_>,
        read: impl FnOnce(&mut Streams, StreamId) -> Result<Option<T>, streams::ReadError>,
    ) -> Poll<Result<Option<T>, ReadError>> {
        if self.order == Order::Lost && self.end == End::Finished {
            // Without this, the end alone would look like an empty stream.
            return Poll::Ready(Err(ReadError::Unordered));
        }
        self.poll_any(cx, Ending::Taken, read)
    }

    fn poll_any<T>(
        &mut self,
        cx: &mut Context<'_>,
        ending: Ending,
        read: impl FnOnce(&mut Streams, StreamId) -> Result<Option<T>, streams::ReadError>,
    ) -> Poll<Result<Option<T>, ReadError>> {
        match &self.end {
            End::Open => {}
            End::Finished => return Poll::Ready(Ok(None)),
            End::Stopped => return Poll::Ready(Err(ReadError::Stopped)),
            End::Failed(error) => return Poll::Ready(Err(error.as_ref().clone())),
        }
        let mut state = self.handle.lock_stream()?;
        self.early |= state.core.streams().is_early(self.id);
        let error = match read(state.core.streams(), self.id) {
            Ok(read) => {
                let alive = state.closed.is_none();
                let is_over = read.is_none()
                    || ending == Ending::Taken && state.core.streams().take_end(self.id);
                let waker = if is_over && self.waits {
                    state.recvs.remove(&self.id)
                } else {
                    None
                };
                drop(state);
                drop(waker);
                if is_over {
                    self.end = End::Finished;
                }
                if alive {
                    // The peer may be owed more credit.
                    self.handle.touch();
                }
                return Poll::Ready(Ok(read));
            }
            Err(streams::ReadError::Blocked) => {
                let Some(error) = &state.closed else {
                    self.waits = true;
                    let replaced = set_waker(state.recvs.entry(self.id).or_default(), cx);
                    drop(state);
                    drop(replaced);
                    return self.handle.on_polled(Poll::Pending);
                };
                error.clone().into()
            }
            // The stream continues, for unordered reads.
            Err(streams::ReadError::Unordered) => return Poll::Ready(Err(ReadError::Unordered)),
            Err(streams::ReadError::Reset(code)) => ReadError::Reset(code),
            // Closed, or an error that this version of the core does not have yet.
            Err(_) => {
                drop(state);
                self.end = End::Stopped;
                return Poll::Ready(Err(ReadError::Stopped));
            }
        };
        drop(state);
        self.end = End::Failed(Box::new(error.clone()));
        Poll::Ready(Err(error))
    }

    /// Waits until the end of the stream is known, without reading. `Some` is the code with which
    /// the peer reset it; `None` means that all data has arrived, or that this end stopped the
    /// stream.
    ///
    /// A stream that was reset with `RESET_STREAM_AT` may have data left to read.
    ///
    /// # Errors
    /// The connection is over.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn received_reset(&mut self) -> Result<Option<u64>, ReadError> {
        poll_fn(|cx| self.poll_received_reset(cx)).await
    }

    /// Returns the end of the stream once it is known; the twin of
    /// [`received_reset`](Self::received_reset).
    ///
    /// # Errors
    /// The connection is over.
    pub fn poll_received_reset(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<u64>, ReadError>> {
        match &self.end {
            End::Finished | End::Stopped => return Poll::Ready(Ok(None)),
            End::Failed(error) => {
                if let ReadError::Reset(code) = **error {
                    return Poll::Ready(Ok(Some(code)));
                }
            }
            End::Open => {}
        }
        let mut state = self.handle.lock_stream()?;
        match state.core.streams().recv_end(self.id) {
            Some(RecvEnd::Reset(code)) => return Poll::Ready(Ok(Some(code))),
            Some(RecvEnd::Complete) | None => return Poll::Ready(Ok(None)),
            Some(_) => {}
        }
        if let Some(error) = &state.closed {
            return Poll::Ready(Err(error.clone().into()));
        }
        state.core.streams().watch_recv(self.id);
        self.waits = true;
        let replaced = set_waker(state.recvs.entry(self.id).or_default(), cx);
        drop(state);
        drop(replaced);
        self.handle.on_polled(Poll::Pending)
    }

    /// Asks the peer to stop sending, with the application's code (STOP_SENDING), and drops unread
    /// data. Has no effect after the end.
    pub fn stop(&mut self, code: u64) {
        if self.end != End::Open {
            return;
        }
        self.end = End::Stopped;
        let Ok(mut state) = self.handle.lock_stream() else {
            return;
        };
        if state.closed.is_none() {
            // The stream may have ended meanwhile: nothing is left to stop then.
            let _ = state.core.streams().stop(self.id, wire_code(code));
            drop(state);
            self.handle.touch();
        }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if self.end == End::Finished {
            // The reader has taken the end, and its entry is gone.
            return;
        }
        let Ok(mut state) = self.handle.lock_stream() else {
            return;
        };
        let waker = state.recvs.remove(&self.id);
        let code = state.core.application_codes().of_dropped_recv();
        state.core.streams().forget_recv(self.id, code);
        let alive = state.closed.is_none();
        drop(state);
        if alive {
            self.handle.touch();
        }
        // The waker may run its own code when it is dropped.
        drop(waker);
    }
}

impl From<Rejected> for ReadError {
    fn from(Rejected: Rejected) -> Self {
        Self::ZeroRttRejected
    }
}
