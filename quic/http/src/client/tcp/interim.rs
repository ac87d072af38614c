//! Interim responses (1xx, RFC 9110 §15.2). A request ignores some of them, and fails if there are more.
//!
//! hyper ignores all of them. It reports each one over HTTP/1.1 but not over HTTP/2, so there the frames are followed
//! on their way to hyper.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use tokio::{
    io::{AsyncRead, ReadBuf},
    sync::Notify,
};

use crate::{
    client::{error::MOST_INTERIM as MOST, outgoing::Hearing},
    versions::http2::{
        Followed, Follower, Late, Side, Streams,
        frames::{DATA, Frame, Frames, HEADER, HEADERS, PRIORITY, RST_STREAM},
    },
};

/// Code of the resets that end such a request over HTTP/2. No RFC defines it.
const CODE: u32 = u32::from_be_bytes(*b"1xx!");

/// Most bytes that h2 sends before a waiting reset, with 100 requests in progress: each stream has its turn, with at
/// most 1 MiB of its body.
const ROUND: u64 = 100 << 20;

/// Hears the interim responses to an HTTP/1.1 request. Returns a future that is ready once there are too many.
pub(super) fn hear<B>(
    request: &mut Request<B>,
    hearing: Hearing,
) -> impl Future<Output = ()> + use<B> {
    let exceeded = Arc::new(Notify::new());
    let tell = exceeded.clone();
    let count = AtomicUsize::new(0);
    hyper::ext::on_informational(request, move |interim| {
        if count.fetch_add(1, Ordering::Relaxed) >= MOST {
            return tell.notify_one();
        }
        let mut response = Response::new(());
        *response.status_mut() = interim.status();
        *response.version_mut() = interim.version();
        response.headers_mut().clone_from(interim.headers());
        hearing.take(response);
    });
    async move { exceeded.notified().await }
}

/// Returns true if an HTTP/2 request has got too many interim responses.
pub(super) fn is_too_many(error: &h2::Error) -> bool {
    error.is_reset() && error.reason() == Some(CODE.into())
}

/// Follows the frames of an HTTP/2 connection.
pub(super) fn follow<S>(stream: S) -> Followed<S, Answers> {
    Followed::new(stream, Some(Answers::new()), ROUND)
}

/// The frames of an HTTP/2 server. A stream with too many heads in a row is reset towards hyper, as if by the server.
/// hyper answers later frames of that stream with RST_STREAM.
#[derive(Debug)]
pub(super) struct Answers {
    received: Frames,
    sent: Frames,
    heads: Heads,
    /// Bytes that hyper gets before those of the stream.
    passed: Vec<u8>,
}

/// Open streams, with the number of heads that arrived in a row.
#[derive(Debug)]
struct Heads(Streams<usize>);

/// A position before a frame, and the stream to reset there.
#[derive(Debug, PartialEq, Eq)]
struct Reset {
    at: usize,
    id: u32,
}

impl Heads {
    /// Notes a frame of the server. Returns true if its stream has too many heads.
    fn on_received(&mut self, frame: Frame, late: &mut Late) -> bool {
        let heads = self.0.get(frame.stream);
        let mut is_too_many = false;
        match (frame.kind, heads) {
            (HEADERS, Some(heads)) => {
                *heads += 1;
                // The last one may be the final response.
                is_too_many = *heads > MOST + 1;
            }
            (DATA, Some(heads)) => *heads = 0,
            (HEADERS | DATA, None) => late.add(),
            (PRIORITY, None) if frame.depends_on_itself() => late.add(),
            _ => {}
        }
        if is_too_many {
            late.add();
        }
        if is_too_many || frame.kind == RST_STREAM {
            self.0.remove(frame.stream);
        } else if frame.is_end_stream() {
            self.0.end(frame.stream, Side::Peer);
        }
        is_too_many
    }

    /// Notes a frame of the client.
    fn on_sent(&mut self, frame: Frame, late: &mut Late) {
        if frame.kind == HEADERS && self.0.is_new(frame.stream) {
            self.0.open(frame.stream, 0);
        }
        if frame.kind == RST_STREAM && self.0.remove(frame.stream).is_none() {
            late.on_reset_sent();
        }
        if frame.is_end_stream() {
            self.0.end(frame.stream, Side::Local);
        }
    }
}

impl Answers {
    fn new() -> Self {
        Self {
            received: Frames::of_server(),
            sent: Frames::of_client(),
            heads: Heads(Streams::new()),
            passed: Vec::new(),
        }
    }

    /// Follows the next bytes. Returns the streams to reset, at positions counted from the start of the first
    /// incomplete frame.
    fn follow(&mut self, bytes: &[u8], late: &mut Late) -> Vec<Reset> {
        let mut resets = Vec::new();
        let all = self.received.partial().len() + bytes.len();
        let mut rest = bytes;
        while let Some(frame) = self.received.next_in(&mut rest) {
            if self.heads.on_received(frame, late) {
                // Only the header of a HEADERS frame is read.
                let at = all - rest.len() - HEADER;
                let id = frame.stream;
                resets.push(Reset { at, id });
            }
        }
        resets
    }

    /// Follows what arrived after `before`. Removes from the buffer what hyper must not see yet, or must see changed.
    fn pass(&mut self, buffer: &mut ReadBuf<'_>, before: usize, late: &mut Late) {
        let came = buffer.filled().get(before..).unwrap_or_default();
        let mut whole = self.received.partial().to_vec();
        let resets = self.follow(came, late);
        let kept = self.received.partial().len();
        if whole.is_empty() && resets.is_empty() {
            buffer.set_filled(buffer.filled().len() - kept);
            return;
        }
        whole.extend(came);
        whole.truncate(whole.len() - kept);
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

impl Follower for Answers {
    fn poll_read<S: AsyncRead>(
        &mut self,
        mut stream: Pin<&mut S>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        late: &mut Late,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        while self.passed.is_empty() && buffer.filled().len() == before && buffer.remaining() > 0 {
            ready!(stream.as_mut().poll_read(cx, buffer))?;
            if buffer.filled().len() > before {
                self.pass(buffer, before, late);
            } else {
                // The end, perhaps within a frame.
                self.passed = self.received.partial().to_vec();
                self.received = Frames::of_server();
                if self.passed.is_empty() {
                    return Poll::Ready(Ok(()));
                }
            }
        }
        let len = self.passed.len().min(buffer.remaining());
        buffer.put_slice(self.passed.get(..len).unwrap_or_default());
        self.passed.drain(..len);
        Poll::Ready(Ok(()))
    }

    fn on_sent(&mut self, mut bytes: &[u8], late: &mut Late) {
        while let Some(frame) = self.sent.next_in(&mut bytes) {
            self.heads.on_sent(frame, late);
        }
    }

    /// Returns 0: the client began all streams itself.
    fn peer_streams(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versions::http2::frames;

    /// Returns a frame whose payload looks like headers.
    fn frame(kind: u8, flags: u8, id: u8, len: usize) -> Vec<u8> {
        frames::frame(kind, flags, id.into(), &vec![1; len])
    }

    fn heads(id: u8, count: usize) -> Vec<u8> {
        frame(HEADERS, 4, id, 20).repeat(count)
    }

    /// Returns what follows a connection on which these streams were opened.
    fn opened(streams: impl IntoIterator<Item = u8>) -> Answers {
        let mut answers = Answers::new();
        let mut late = Late::default();
        answers.on_sent(&[b'P'; 24], &mut late);
        for id in streams {
            answers.on_sent(&frame(HEADERS, 4, id, 20), &mut late);
        }
        answers
    }

    /// In whatever parts the frames come, a stream is reset before the head that is one too many.
    #[test]
    fn too_many_heads_are_found_in_any_parts() {
        let mut frames = heads(1, MOST + 1);
        frames.extend(heads(3, MOST + 1));
        // Data, trailers and a reset end the row.
        frames.extend(frame(DATA, 0, 1, 9));
        frames.extend(frame(PRIORITY, 0, 1, 5));
        frames.extend(heads(1, MOST));
        frames.extend(frame(HEADERS, 5, 1, 0));
        let expected = frames.len();
        frames.extend(heads(3, 1));
        for size in 1..60 {
            let (mut at, mut answers) = (Vec::new(), opened([1, 3]));
            let mut passed = 0;
            for part in frames.chunks(size) {
                let start = passed - answers.received.partial().len();
                for Reset { at: position, id } in answers.follow(part, &mut Late::default()) {
                    at.push((start + position, id));
                }
                passed += part.len();
            }
            assert_eq!(at, [(expected, 3)], "in parts of {size}");
        }
    }

    /// An entry stays while others begin and end; nothing else is kept.
    #[test]
    fn streams_are_remembered_while_they_are_open() {
        let mut late = Late::default();
        let mut answers = opened([1]);
        for id in (3..201).step_by(2) {
            answers.on_sent(&frame(HEADERS, 5, id, 20), &mut late);
            assert_eq!(answers.follow(&heads(id, 1), &mut late), []);
            match id % 3 {
                0 => answers.on_sent(&frame(RST_STREAM, 0, id, 4), &mut late),
                1 => _ = answers.follow(&frame(RST_STREAM, 0, id, 4), &mut late),
                _ => _ = answers.follow(&frame(DATA, 1, id, 9), &mut late),
            }
        }
        assert_eq!(answers.heads.0.len(), 1);
        // Frames on others may leave resets in h2.
        let before = late.count();
        assert_eq!(answers.follow(&heads(3, MOST + 2), &mut late), []);
        assert_eq!(late.count(), before + MOST + 2);
        let resets = answers.follow(&heads(1, MOST + 2), &mut late);
        assert_eq!(resets.len(), 1);
        assert_eq!(answers.heads.0.len(), 0);
    }
}
