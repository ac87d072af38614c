//! Bodies over HTTP/2 that came and were not read. hyper does not tell how much that is.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};

/// Bytes that a client may send on a connection before they are read.
pub(crate) const WINDOW: u32 = 1 << 20;

/// Bytes of a buffer that h2 reads frames into. The smallest part of a body keeps it whole.
pub(crate) const BUFFER: u64 = 8 << 10;

/// Bytes of a frame that waits to be read, besides its data.
const FRAME: u64 = 512;

/// Length from which on h2 does not hold a DATA frame against the client.
const GOOD_FRAME: u64 = 256;

/// Most bytes of memory that bodies which are not read take, in the frames that cost most: those which fill the
/// window, and shorter ones until h2 ends the connection.
pub(crate) const MOST: u64 = {
    let window = WINDOW as u64;
    let frames = window / GOOD_FRAME + window / 2 / (GOOD_FRAME - 1);
    frames * (BUFFER + FRAME)
};

/// Counts what the bodies of a connection take that came and were not read: for each DATA frame its length, or the
/// buffer that it may keep.
#[derive(Debug, Default)]
pub(crate) struct Inflow {
    arrived: AtomicU64,
    /// The same of frames that were read, or dropped with their body.
    taken: AtomicU64,
}

impl Inflow {
    /// Returns the bytes that are not read: no more than the window allows, since data that comes after its body
    /// was dropped is not held, and is never read.
    pub(crate) fn unread(&self) -> u64 {
        let taken = self.taken.load(Ordering::Relaxed);
        let arrived = self.arrived.load(Ordering::Relaxed);
        arrived.saturating_sub(taken).min(MOST)
    }

    /// Forgets frames that came for no body, when there is none.
    pub(crate) fn forget(&self) {
        let arrived = self.arrived.load(Ordering::Relaxed);
        self.taken.fetch_max(arrived, Ordering::Relaxed);
    }

    /// Notes the data of a frame that came.
    pub(crate) fn on_arrived(&self, len: u64) {
        self.arrived.fetch_add(cost(len), Ordering::Relaxed);
    }

    fn on_taken(&self, len: u64) {
        self.taken.fetch_add(cost(len), Ordering::Relaxed);
    }
}

/// Returns the memory that a frame with `len` bytes of data takes. Frames without data do not reach the body.
fn cost(len: u64) -> u64 {
    if len == 0 { 0 } else { len.max(BUFFER) }
}

/// A body over TCP, whose frames are counted when they are read if it is one of HTTP/2.
pub(crate) struct Incoming {
    body: hyper::body::Incoming,
    inflow: Option<Arc<Inflow>>,
}

impl Incoming {
    pub(crate) fn new(body: hyper::body::Incoming, inflow: Option<Arc<Inflow>>) -> Self {
        Self { body, inflow }
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let (Poll::Ready(Some(Ok(frame))), Some(inflow)) = (&polled, &self.inflow) {
            let data = frame.data_ref();
            inflow.on_taken(data.map_or(0, |data| data.len() as u64));
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
    /// Counts what goes with the body.
    fn drop(&mut self) {
        if self.inflow.is_some() {
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
        let inflow = Inflow::default();
        for len in [0, 1, 16 << 10] {
            inflow.on_arrived(len);
        }
        assert_eq!(inflow.unread(), BUFFER + (16 << 10));
        inflow.on_taken(1);
        assert_eq!(inflow.unread(), 16 << 10);
        inflow.forget();
        assert_eq!(inflow.unread(), 0);
        inflow.on_arrived(1);
        assert_eq!(inflow.unread(), BUFFER);
    }

    /// Data reaches no body that was dropped, however much comes.
    #[test]
    fn no_more_counts_than_the_windows_allow() {
        let inflow = Inflow::default();
        for _ in 0..=MOST / BUFFER {
            inflow.on_arrived(1);
        }
        assert_eq!(inflow.unread(), MOST);
    }
}
