//! Body data that passes through `h3` without a copy.

use std::{any::TypeId, cell::RefCell};

use arrayvec::ArrayVec;
use bytes::{Buf, Bytes, BytesMut};

use crate::adapter::head::{self, ResponseHead};

thread_local! {
    static CAPTURE: RefCell<Capture> = const { RefCell::new(Capture::Off) };
}

/// State of [`take`] on this thread.
enum Capture {
    /// Nothing is captured.
    Off,
    /// A capture runs, and its last slice was not that of a payload.
    Waiting,
    /// A capture runs, and its last slice was that of a payload.
    Seen,
    /// A payload was advanced, and gave up its front, and what comes before it in place of a frame's header.
    Taken(Bytes, Option<Head>),
}

/// Data of a body to send, which the transport takes over without a copy.
///
/// `h3` wraps a body into a type that shows only slices of it. A payload hands its `Bytes` to the
/// transport when it is advanced, and is an ordinary [`Buf`] everywhere else.
///
/// # Examples
/// ```
/// use bytes::Bytes;
/// use hybriq_h3::Payload;
///
/// let body = Payload::from(Bytes::from_static(b"hello"));
/// assert_eq!(Bytes::from(body), "hello");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    data: Bytes,
    head: Option<Head>,
}

/// The head of a response, which is sent in place of the header of the payload's frame.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Head {
    /// A HEADERS frame, and the header of a DATA frame; nothing if the payload has them itself.
    frames: Bytes,
    follows: Follows,
}

/// Next step of a stream after a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// The end of the stream.
    Nothing,
    /// More of the body, trailers, or the end.
    More,
}

/// Largest part of a body that is copied behind the head: a copy costs less than a chunk of its own.
const COPIED: usize = 1024;

impl Payload {
    /// Returns a payload that is the head of a response and the first part of its body, and the end of the
    /// stream if nothing follows: all that is written at once. Send it by `send_data`, in place of
    /// `send_response`. Returns `None` if the fields are large: use `send_response` then, which compares
    /// them with the limit of the client.
    ///
    /// Use it with the streams of this crate: other transports of `h3` would send its data without the head.
    pub fn response(head: &ResponseHead<'_>, data: Bytes, follows: Follows) -> Option<Self> {
        let copied = data.len() <= COPIED;
        let room = if copied { 8 + data.len() } else { 8 };
        let mut frames = head::encode(head, room)?;
        if !data.is_empty() {
            head::put_data_header(&mut frames, data.len() as u64);
        }
        let (frames, data) = if copied {
            frames.extend_from_slice(&data);
            (Bytes::new(), frames.into())
        } else {
            (frames.into(), data)
        };
        Some(Self {
            data,
            head: Some(Head { frames, follows }),
        })
    }
}

impl From<Bytes> for Payload {
    fn from(data: Bytes) -> Self {
        Self { data, head: None }
    }
}

impl From<Vec<u8>> for Payload {
    fn from(data: Vec<u8>) -> Self {
        Bytes::from(data).into()
    }
}

impl From<String> for Payload {
    fn from(data: String) -> Self {
        Bytes::from(data).into()
    }
}

impl From<&'static str> for Payload {
    fn from(data: &'static str) -> Self {
        Bytes::from(data).into()
    }
}

impl From<&'static [u8]> for Payload {
    fn from(data: &'static [u8]) -> Self {
        Bytes::from(data).into()
    }
}

impl From<Payload> for Bytes {
    fn from(payload: Payload) -> Self {
        payload.data
    }
}

impl Buf for Payload {
    fn remaining(&self) -> usize {
        self.data.remaining()
    }

    fn chunk(&self) -> &[u8] {
        CAPTURE.with_borrow_mut(|capture| {
            if let Capture::Waiting = capture {
                *capture = Capture::Seen;
            }
        });
        self.data.chunk()
    }

    fn advance(&mut self, count: usize) {
        let front = self.data.split_to(count);
        CAPTURE.with_borrow_mut(|capture| {
            if let Capture::Seen = capture {
                *capture = Capture::Taken(front, self.head.take());
            }
        });
    }

    fn copy_to_bytes(&mut self, len: usize) -> Bytes {
        self.data.split_to(len)
    }
}

/// Longest part in front of a payload that is held back: `h3` makes headers of two integers.
const HEADER: usize = 32;

/// Returns true if bodies of this type are payloads.
pub(crate) fn is_payload<B: 'static>() -> bool {
    TypeId::of::<B>() == TypeId::of::<Payload>()
}

/// A frame without copies of payloads, in order: its header, or the head of a response, and a payload. Either
/// may be empty.
pub(crate) type Chunks = [Bytes; 2];

/// Takes everything out of a buffer. Payloads are not copied where only a header comes before them.
pub(crate) fn take(buffer: &mut impl Buf) -> (Chunks, Follows) {
    let mut chunks = Chunks::default();
    let mut follows = Follows::More;
    // The header of a frame, which is needed unless the payload brings its own.
    let mut header = ArrayVec::<u8, HEADER>::new();
    while buffer.has_remaining() {
        CAPTURE.set(Capture::Waiting);
        let chunk = buffer.chunk();
        let len = chunk.len();
        let is_payload = CAPTURE.with_borrow(|capture| matches!(capture, Capture::Seen));
        let is_first = chunks.iter().all(Bytes::is_empty);
        if !is_payload && is_first && header.try_extend_from_slice(chunk).is_ok() {
            buffer.advance(len);
            CAPTURE.set(Capture::Off);
            continue;
        }
        // A header and bytes that are copied anyway are one chunk.
        let copy = (!is_payload).then(|| {
            let mut copy = Vec::with_capacity(header.len() + len);
            copy.extend_from_slice(&header);
            copy.extend_from_slice(chunk);
            header.clear();
            copy.into()
        });
        buffer.advance(len);
        let taken = CAPTURE.replace(Capture::Off);
        if let Capture::Taken(front, Some(head)) = taken {
            header.clear();
            push(&mut chunks, head.frames);
            push(&mut chunks, front);
            follows = head.follows;
            continue;
        }
        if !header.is_empty() {
            push(&mut chunks, Bytes::copy_from_slice(&header));
            header.clear();
        }
        match taken {
            Capture::Taken(front, _) => push(&mut chunks, front),
            Capture::Off | Capture::Waiting | Capture::Seen => {
                push(&mut chunks, copy.unwrap_or_default());
            }
        }
    }
    if !header.is_empty() {
        push(&mut chunks, Bytes::copy_from_slice(&header));
    }
    (chunks, follows)
}

/// Appends to the chunks. Copies if there are two already.
fn push(chunks: &mut Chunks, chunk: Bytes) {
    let [first, second] = chunks;
    if first.is_empty() {
        *first = chunk;
    } else if second.is_empty() {
        *second = chunk;
    } else {
        let mut whole = BytesMut::with_capacity(second.len() + chunk.len());
        whole.extend_from_slice(second);
        whole.extend_from_slice(&chunk);
        *second = whole.freeze();
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};

    use super::*;

    /// A header and a payload that is always advanced, as in `h3`.
    struct Framed(&'static [u8], Payload);

    impl Buf for Framed {
        fn remaining(&self) -> usize {
            self.0.len() + self.1.remaining()
        }

        fn chunk(&self) -> &[u8] {
            if self.0.is_empty() {
                self.1.chunk()
            } else {
                self.0
            }
        }

        fn advance(&mut self, count: usize) {
            let header = count.min(self.0.len());
            self.0.advance(header);
            self.1.advance(count - header);
        }
    }

    /// Bytes that are no payload are copied, however many.
    #[test]
    fn other_data_is_copied() {
        let block = vec![3; 500];
        let mut buffer = Framed(b"header", Payload::default()).chain(&block[..]);
        let (chunks, _) = take(&mut buffer);
        let sent = [b"header", &block[..]].concat();
        assert_eq!(chunks, [Bytes::from(sent), Bytes::new()]);
    }

    /// A payload behind a header is taken over, not copied.
    #[test]
    fn a_payload_keeps_its_memory() {
        let body = Bytes::from(vec![7; 10_000]);
        let place = body.as_ptr();
        let mut buffer = Framed(b"header", Payload::from(body));
        let (chunks, follows) = take(&mut buffer);
        assert_eq!(follows, Follows::More);
        assert_eq!(chunks.len(), 2);
        assert_eq!(chunks[0], "header");
        assert_eq!(chunks[1].len(), 10_000);
        assert_eq!(chunks[1].as_ptr(), place);
    }

    /// The head of a response comes in place of the header that `h3` makes.
    #[test]
    fn a_response_has_its_head_and_its_end() {
        let fields = HeaderMap::new();
        for len in [0, 5, COPIED, COPIED + 1, 70_000] {
            let body = Bytes::from(vec![7; len]);
            let follows = Follows::Nothing;
            let head = ResponseHead::new(StatusCode::OK, &fields);
            let payload = Payload::response(&head, body.clone(), follows);
            let (chunks, follows) = take(&mut Framed(b"header", payload.unwrap()));
            assert_eq!(follows, Follows::Nothing);
            let sent = chunks.concat();
            // HEADERS of three bytes, and DATA.
            assert_eq!(sent[..6], [1, 0x40, 3, 0, 0, 0xd9]);
            assert!(sent.ends_with(&body));
            assert_eq!(sent.len() > 6, len > 0);
            let kept = chunks.iter().any(|chunk| chunk.as_ptr() == body.as_ptr());
            assert!(len == 0 || kept == (len > COPIED), "{len}");
        }
    }

    #[test]
    fn a_payload_is_an_ordinary_buffer() {
        let mut payload = Payload::from("hello");
        assert_eq!(payload.remaining(), 5);
        payload.advance(1);
        assert_eq!(payload.chunk(), b"ello");
        assert_eq!(payload.copy_to_bytes(2), "el");
        assert_eq!(Bytes::from(payload), "lo");
        assert!(CAPTURE.with_borrow(|capture| matches!(capture, Capture::Off)));
    }
}
