//! Interim responses (1xx, RFC 9110 §15.2): a request passes over some of them, and ends with more.
//!
//! hyper passes over all of them. Over HTTP/1.1 it tells of each; over HTTP/2 it does not, so the frames are
//! followed on their way to it.

use std::{
    collections::BTreeMap,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use http::Request;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::Notify,
};

use crate::usage::Usage;

/// Largest number of interim responses to a request.
pub(super) const MOST: usize = 16;

/// Code of the resets that stand for the end of such a request over HTTP/2. No RFC has given it a meaning.
const CODE: u32 = u32::from_be_bytes(*b"1xx!");

/// Types of frames (RFC 9113 §6), and the flag for the last one of a stream.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const END_STREAM: u8 = 1;

/// Length of the header of a frame.
const HEADER: usize = 9;

/// Streams that are remembered besides two for each request under way.
const SPARE: usize = 32;

/// Returns a future that is ready once a request over HTTP/1.1 has got too many interim responses.
pub(super) fn too_many<B>(request: &mut Request<B>) -> impl Future<Output = ()> + use<B> {
    let exceeded = Arc::new(Notify::new());
    let tell = exceeded.clone();
    let count = AtomicUsize::new(0);
    hyper::ext::on_informational(request, move |_| {
        if count.fetch_add(1, Ordering::Relaxed) >= MOST {
            tell.notify_one();
        }
    });
    async move { exceeded.notified().await }
}

/// Returns true if a request over HTTP/2 has got too many interim responses.
pub(super) fn is_too_many(error: &h2::Error) -> bool {
    error.is_reset() && error.reason() == Some(CODE.into())
}

/// The frames of a server of HTTP/2. A stream that gets too many heads in a row is reset towards hyper, as if the
/// server did that; hyper answers what comes on it later with RST_STREAM.
pub(super) struct Followed<S> {
    stream: S,
    frames: Frames,
    usage: Arc<Usage>,
    /// Bytes for hyper that come before those of the stream.
    passed: Vec<u8>,
}

/// Position in the frames of a server, and the heads that came.
#[derive(Debug, Default)]
struct Frames {
    /// Bytes of payload until the next header.
    rest: usize,
    header: [u8; HEADER],
    /// Bytes of the header that came. hyper gets them together with the others.
    have: usize,
    /// Number of heads that came in a row, for each stream without data.
    heads: BTreeMap<u32, usize>,
}

/// A place before a frame, and the stream that is reset there.
#[derive(Debug, PartialEq, Eq)]
struct Reset {
    at: usize,
    id: u32,
}

impl Frames {
    /// Follows the next bytes. Returns the streams to reset, with positions that count from the header that was
    /// not whole before. `live` is the number of requests under way.
    fn follow(&mut self, bytes: &[u8], live: usize) -> Vec<Reset> {
        let mut resets = Vec::new();
        let before = self.have;
        let mut done = 0;
        while let Some(next) = bytes.get(done..).filter(|next| !next.is_empty()) {
            if self.rest > 0 {
                let len = self.rest.min(next.len());
                self.rest -= len;
                done += len;
                continue;
            }
            let missing = self.header.get_mut(self.have..).unwrap_or_default();
            let len = missing.len().min(next.len());
            for (to, from) in missing.iter_mut().zip(next) {
                *to = *from;
            }
            self.have += len;
            done += len;
            if self.have == HEADER {
                self.have = 0;
                if let Some(id) = self.on_frame(live) {
                    let at = before + done - HEADER;
                    resets.push(Reset { at, id });
                }
            }
        }
        resets
    }

    /// Takes the header of a frame. Returns its stream if that has too many heads.
    fn on_frame(&mut self, live: usize) -> Option<u32> {
        let [high, middle, low, kind, flags, id @ ..] = self.header;
        self.rest = u32::from_be_bytes([0, high, middle, low]) as usize;
        let id = u32::from_be_bytes(id) & !(1 << 31);
        if kind == DATA || kind == RST_STREAM {
            self.heads.remove(&id);
        }
        if kind != HEADERS {
            return None;
        }
        let heads = self.heads.entry(id).or_default();
        *heads += 1;
        // The last one may be the final response.
        let too_many = *heads > MOST + 1;
        if too_many || flags & END_STREAM != 0 {
            self.heads.remove(&id);
        }
        // Streams that were given up may stay. The oldest are forgotten.
        while self.heads.len() > live.saturating_mul(2).saturating_add(SPARE) {
            self.heads.pop_first();
        }
        too_many.then_some(id)
    }

    /// Returns the bytes of a header that is not whole.
    fn partial(&self) -> &[u8] {
        self.header.get(..self.have).unwrap_or_default()
    }
}

impl<S> Followed<S> {
    pub(super) fn new(stream: S, usage: Arc<Usage>) -> Self {
        Self {
            stream,
            frames: Frames::default(),
            usage,
            passed: Vec::new(),
        }
    }

    /// Follows what came behind `before`. What hyper must not see yet, or not as it came, leaves the buffer.
    fn pass(&mut self, buffer: &mut ReadBuf<'_>, before: usize) {
        let came = buffer.filled().get(before..).unwrap_or_default();
        let mut whole = self.frames.partial().to_vec();
        let resets = self.frames.follow(came, self.usage.exchanges());
        if whole.is_empty() && resets.is_empty() {
            buffer.set_filled(buffer.filled().len() - self.frames.have);
            return;
        }
        whole.extend(came);
        whole.truncate(whole.len() - self.frames.have);
        buffer.set_filled(before);
        let mut rest = whole.as_slice();
        let mut start = 0;
        for Reset { at, id } in resets {
            let (frames, behind) = rest.split_at(at - start);
            self.passed.extend(frames);
            self.passed.extend([0, 0, 4, RST_STREAM, 0]);
            self.passed.extend(id.to_be_bytes());
            self.passed.extend(CODE.to_be_bytes());
            (rest, start) = (behind, at);
        }
        self.passed.extend(rest);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Followed<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        while this.passed.is_empty() && buffer.filled().len() == before && buffer.remaining() > 0 {
            ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
            if buffer.filled().len() > before {
                this.pass(buffer, before);
            } else if this.frames.have > 0 {
                // The end, within a header.
                this.passed = this.frames.partial().to_vec();
                this.frames.have = 0;
            } else {
                return Poll::Ready(Ok(()));
            }
        }
        let len = this.passed.len().min(buffer.remaining());
        buffer.put_slice(this.passed.get(..len).unwrap_or_default());
        this.passed.drain(..len);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, id: u8, len: u8) -> Vec<u8> {
        let mut frame = vec![0, 0, len, kind, flags, 0, 0, 0, id];
        // The payload looks like headers.
        frame.extend(vec![1; usize::from(len)]);
        frame
    }

    fn heads(id: u8, count: usize) -> Vec<u8> {
        frame(HEADERS, 4, id, 20).repeat(count)
    }

    /// In whatever parts the frames come, a stream is reset before the head that is one too many.
    #[test]
    fn too_many_heads_are_found_in_any_parts() {
        let mut frames = heads(1, MOST + 1);
        frames.extend(heads(3, MOST + 1));
        // Data, trailers and a reset end the row.
        frames.extend(frame(DATA, 0, 1, 9));
        frames.extend(heads(1, MOST));
        frames.extend(frame(HEADERS, 5, 1, 0));
        let expected = frames.len();
        frames.extend(heads(3, 1));
        for size in 1..60 {
            let (mut at, mut followed) = (Vec::new(), Frames::default());
            let mut passed = 0;
            for part in frames.chunks(size) {
                let start = passed - followed.have;
                for Reset { at: position, id } in followed.follow(part, 2) {
                    at.push((start + position, id));
                }
                passed += part.len();
            }
            assert_eq!(at, [(expected, 3)], "in parts of {size}");
            assert!(followed.heads.is_empty(), "{followed:?}");
        }
    }

    /// Streams that are given up after their heads are not remembered for ever.
    #[test]
    fn streams_without_an_end_are_forgotten() {
        let mut followed = Frames::default();
        for id in 0..200 {
            assert_eq!(followed.follow(&heads(id, 1), 4), []);
        }
        assert_eq!(followed.heads.len(), 2 * 4 + SPARE);
        assert_eq!(followed.heads.last_key_value(), Some((&199, &1)));
    }
}
