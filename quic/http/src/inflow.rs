//! Bodies over HTTP/2 that came and were not read. hyper does not tell how much that is, so the frames are followed
//! on their way to it.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker, ready},
};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

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

/// Length of the preface of a client (RFC 9113 §3.4).
const PREFACE: u64 = 24;

/// Type of DATA frames, and their flag for padding (RFC 9113 §6.1).
const DATA: u8 = 0;
const PADDED: u8 = 0x8;

/// Counts what the bodies of a connection take that came and were not read: for each DATA frame its length, or the
/// buffer that it may keep.
#[derive(Debug, Default)]
pub(crate) struct Inflow {
    arrived: AtomicU64,
    /// The same of frames that were read, or dropped with their body.
    taken: AtomicU64,
}

impl Inflow {
    /// Returns the bytes that are not read: no more than the window allows, since the data of streams that were
    /// reset arrives, is not held, and is never read.
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

    fn on_arrived(&self, len: u64) {
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

/// Position in the frames of a client.
#[derive(Debug)]
struct Position {
    /// Bytes until the next header.
    rest: u64,
    header: [u8; 9],
    have: usize,
    /// Length of a DATA frame whose next byte is the length of its padding.
    padded: Option<u64>,
}

impl Position {
    const fn new() -> Self {
        Self {
            rest: PREFACE,
            header: [0; 9],
            have: 0,
            padded: None,
        }
    }

    /// Follows the next bytes. Calls `on_data` with the length of the data of each DATA frame.
    fn follow(&mut self, mut bytes: &[u8], mut on_data: impl FnMut(u64)) {
        while let Some(&first) = bytes.first() {
            if let Some(len) = self.padded.take() {
                on_data(len.saturating_sub(1 + u64::from(first)));
            }
            if self.rest > 0 {
                let len = usize::try_from(self.rest).unwrap_or(usize::MAX);
                let (passed, behind) = bytes.split_at(len.min(bytes.len()));
                self.rest -= passed.len() as u64;
                bytes = behind;
                continue;
            }
            let Some(missing) = self.header.get_mut(self.have..) else {
                return;
            };
            let (part, behind) = bytes.split_at(missing.len().min(bytes.len()));
            for (to, from) in missing.iter_mut().zip(part) {
                *to = *from;
            }
            self.have += part.len();
            bytes = behind;
            if self.have == self.header.len() {
                let [high, middle, low, kind, flags, ..] = self.header;
                self.rest = u32::from_be_bytes([0, high, middle, low]).into();
                self.have = 0;
                match kind {
                    DATA if flags & PADDED != 0 && self.rest > 0 => self.padded = Some(self.rest),
                    DATA => on_data(self.rest),
                    _ => {}
                }
            }
        }
    }
}

/// A stream whose reader speaks HTTP/2, if there is something to count.
pub(crate) struct Followed<S> {
    stream: S,
    following: Option<(Position, Arc<Inflow>)>,
}

impl<S> Followed<S> {
    pub(crate) fn new(stream: S, inflow: Option<Arc<Inflow>>) -> Self {
        let following = inflow.map(|inflow| (Position::new(), inflow));
        Self { stream, following }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Followed<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, following } = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(stream).poll_read(cx, buffer))?;
        if let Some((position, inflow)) = following {
            let came = buffer.filled().get(before..).unwrap_or_default();
            position.follow(came, |len| inflow.on_arrived(len));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Followed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
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

    /// Whatever the parts are in which frames come, each DATA frame counts once.
    #[test]
    fn data_frames_are_found_in_any_parts() {
        let mut stream = vec![b'P'; PREFACE as usize];
        for (kind, flags, len) in [
            (4, 0, 0),
            (0, 0, 300),
            (1, 0, 7),
            (0, 0, 0),
            (0, 0, 1),
            (0, PADDED, 50),
            (0, PADDED, 8),
        ] {
            let len: u16 = len;
            let [high, low] = len.to_be_bytes();
            stream.extend([0, high, low, kind, flags, 0, 0, 0, 1]);
            // Payloads look like headers, and 7 bytes of padding.
            let first = u8::from(flags == PADDED) * 7;
            let payload = std::iter::once(first).chain(std::iter::repeat(0));
            stream.extend(payload.take(usize::from(len)));
        }
        for size in 1..stream.len() {
            let mut position = Position::new();
            let mut found = Vec::new();
            for part in stream.chunks(size) {
                position.follow(part, |len| found.push(len));
            }
            assert_eq!(found, [300, 0, 1, 42, 0], "in parts of {size}");
        }
    }

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

    /// Data of streams that were reset reaches no body, however much comes.
    #[test]
    fn no_more_counts_than_the_windows_allow() {
        let inflow = Inflow::default();
        for _ in 0..=MOST / BUFFER {
            inflow.on_arrived(1);
        }
        assert_eq!(inflow.unread(), MOST);
    }
}
