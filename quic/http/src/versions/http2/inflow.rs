//! Counts unread data over HTTP/2: bodies, trailers, tunnels, and incomplete field blocks. hyper does not report how
//! much there is.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};

/// Bytes that a client may send on a connection before they are read.
pub(crate) const WINDOW: u32 = 1 << 20;

/// Bytes of a buffer that h2 reads frames into. Even the smallest part of a body keeps a whole one.
pub(crate) const BUFFER: u64 = 8 << 10;

/// Bytes of a frame that waits to be read, in addition to its data.
const FRAME: u64 = 512;

/// Length from which on h2 does not count a DATA frame against the client.
const GOOD_FRAME: u64 = 256;

/// Most memory that unread bodies take, in the most expensive frames: those that fill the window, and shorter ones
/// until h2 ends the connection.
pub(crate) const MOST: u64 = {
    let window = WINDOW as u64;
    let frames = window / GOOD_FRAME + window / 2 / (GOOD_FRAME - 1);
    frames * (BUFFER + FRAME)
};

/// Counts the unread data of a TCP connection. Over HTTP/2 these are bodies and the data of tunnels: each DATA frame
/// counts for its length, or for the buffer that it may keep.
///
/// Data without a reader cannot be told apart. It is forgotten with the last reader, because h2 holds no data for
/// streams that have none.
#[derive(Debug, Default)]
pub(crate) struct Inflow {
    /// Bytes of frames that arrived, and were neither read nor dropped with their body.
    data: AtomicU64,
    readers: AtomicU64,
    trailers: Mutex<Trailers>,
    /// Bytes of incomplete field blocks.
    fields: AtomicU64,
}

/// Unread trailers. h2 holds them until their stream is closed and its reader is gone.
#[derive(Debug, Default)]
struct Trailers {
    /// Number of trailers that wait for a reader.
    waiting: u64,
    bytes: u64,
    /// Bytes of the largest trailers.
    largest: u64,
    /// Bytes of the trailers of open streams, read or not.
    open: u64,
}

/// Reads the body of a request, or a tunnel, until this is dropped.
#[derive(Debug)]
pub(crate) struct Reader(Arc<Inflow>);

impl Inflow {
    /// Returns the number of unread bytes. Data counts no more than the window allows.
    pub(crate) fn unread(&self) -> u64 {
        if !self.has_readers() {
            self.forget();
        }
        let data = self.data.load(Ordering::Relaxed).min(MOST);
        data + self.trailers().bytes + self.fields.load(Ordering::Relaxed)
    }

    /// Returns a new reader, which counts until it is dropped.
    pub(crate) fn reader(self: &Arc<Self>) -> Reader {
        self.readers.fetch_add(1, Ordering::Relaxed);
        Reader(self.clone())
    }

    fn has_readers(&self) -> bool {
        self.readers.load(Ordering::Relaxed) > 0
    }

    /// Forgets data without a reader, when there is no reader.
    fn forget(&self) {
        self.data.store(0, Ordering::Relaxed);
        self.trailers().forget();
    }

    fn trailers(&self) -> MutexGuard<'_, Trailers> {
        let trailers = self.trailers.lock();
        trailers.unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the data of a frame that arrived.
    pub(crate) fn on_arrived(&self, len: u64) {
        self.data.fetch_add(cost(len), Ordering::Relaxed);
    }

    fn on_taken(&self, len: u64) {
        let less = |data: u64| Some(data.saturating_sub(cost(len)));
        let _ = self
            .data
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Notes trailers that take this many bytes.
    pub(crate) fn on_trailers(&self, bytes: u64) {
        let mut trailers = self.trailers();
        trailers.waiting += 1;
        trailers.bytes += bytes;
        trailers.largest = trailers.largest.max(bytes);
        trailers.open += bytes;
    }

    /// Notes the end of streams whose trailers take this many bytes.
    pub(crate) fn on_closed(&self, bytes: u64) {
        let mut trailers = self.trailers();
        trailers.open = trailers.open.saturating_sub(bytes);
        if !self.has_readers() {
            trailers.forget();
        }
    }

    /// Notes the bytes that incomplete field blocks take.
    pub(crate) fn set_fields(&self, bytes: u64) {
        self.fields.store(bytes, Ordering::Relaxed);
    }
}

impl Trailers {
    /// Notes that a reader has taken the trailers of its stream, whichever they are.
    fn on_taken(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
        self.bytes = self.bytes.min(self.waiting * self.largest);
        if self.waiting == 0 {
            self.largest = 0;
        }
    }

    /// Forgets the trailers of closed streams, when there is no reader.
    fn forget(&mut self) {
        self.bytes = self.bytes.min(self.open);
        if self.open == 0 {
            *self = Self::default();
        }
    }
}

impl Reader {
    /// Notes the data of a frame that was read.
    pub(crate) fn on_taken(&self, len: u64) {
        self.0.on_taken(len);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if self.0.readers.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.forget();
        }
    }
}

/// Returns the memory that a frame with `len` bytes of data takes. Frames without data do not reach the body.
fn cost(len: u64) -> u64 {
    if len == 0 { 0 } else { len.max(BUFFER) }
}

/// A body over TCP. Over HTTP/2, its frames are counted when they are read.
pub(crate) struct Incoming {
    body: hyper::body::Incoming,
    /// Dropped at the end of the body.
    reader: Option<Reader>,
}

impl Incoming {
    pub(crate) fn new(body: hyper::body::Incoming, inflow: Option<&Arc<Inflow>>) -> Self {
        let reader = inflow.filter(|_| !body.is_end_stream()).map(Inflow::reader);
        Self { body, reader }
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let (Poll::Ready(frame), Some(reader)) = (&polled, &self.reader) else {
            return polled;
        };
        match frame {
            Some(Ok(frame)) => match frame.data_ref() {
                Some(data) => reader.on_taken(data.len() as u64),
                None => reader.0.trailers().on_taken(),
            },
            Some(Err(_)) | None => self.reader = None,
        }
        if self.body.is_end_stream() {
            self.reader = None;
        }
        polled
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Incoming {
    /// Counts the data that is lost with the body.
    fn drop(&mut self) {
        if self.reader.is_some() {
            let mut cx = Context::from_waker(Waker::noop());
            while let Poll::Ready(Some(Ok(_))) = self.poll_frame(&mut cx) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_count_for_their_buffers_until_they_are_taken() {
        let inflow = Arc::new(Inflow::default());
        let reader = inflow.reader();
        for len in [0, 1, 16 << 10] {
            inflow.on_arrived(len);
        }
        assert_eq!(inflow.unread(), BUFFER + (16 << 10));
        reader.on_taken(1);
        assert_eq!(inflow.unread(), 16 << 10);
        drop(reader);
        assert_eq!(inflow.unread(), 0);
        inflow.on_arrived(1);
        assert_eq!(inflow.unread(), 0);
    }

    /// Data reaches no body that was dropped, however much comes.
    #[test]
    fn no_more_counts_than_the_windows_allow() {
        let inflow = Arc::new(Inflow::default());
        let _reader = inflow.reader();
        for _ in 0..=MOST / BUFFER {
            inflow.on_arrived(1);
        }
        assert_eq!(inflow.unread(), MOST);
    }

    #[test]
    fn trailers_count_until_they_are_taken_or_their_stream_and_its_reader_are_gone() {
        let inflow = Arc::new(Inflow::default());
        let readers = [inflow.reader(), inflow.reader()];
        for bytes in [700, 100] {
            inflow.on_trailers(bytes);
        }
        assert_eq!(inflow.unread(), 800);
        readers[0].0.trailers().on_taken();
        assert_eq!(inflow.unread(), 700, "it may be the smaller");
        readers[1].0.trailers().on_taken();
        assert_eq!(inflow.unread(), 0);
        inflow.on_trailers(50);
        inflow.on_closed(800);
        drop(readers);
        assert_eq!(inflow.unread(), 50, "the stream holds them");
        inflow.on_closed(50);
        assert_eq!(inflow.unread(), 0);
    }
}
