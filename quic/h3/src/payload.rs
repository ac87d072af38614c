//! Body data that passes through `h3` without a copy.

use std::{any::TypeId, cell::RefCell};

use bytes::{Buf, Bytes};

thread_local! {
    static CAPTURE: RefCell<Capture> = const { RefCell::new(Capture::Off) };
}

/// State of [`take`] on this thread.
enum Capture {
    /// It does not run.
    Off,
    /// It runs, and the last slice was not that of a payload.
    Waiting,
    /// It runs, and the last slice was that of a payload.
    Seen,
    /// A payload was advanced, and gave up its front.
    Taken(Bytes),
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
pub struct Payload(Bytes);

impl From<Bytes> for Payload {
    fn from(data: Bytes) -> Self {
        Self(data)
    }
}

impl From<Vec<u8>> for Payload {
    fn from(data: Vec<u8>) -> Self {
        Self(data.into())
    }
}

impl From<String> for Payload {
    fn from(data: String) -> Self {
        Self(data.into())
    }
}

impl From<&'static str> for Payload {
    fn from(data: &'static str) -> Self {
        Self(data.into())
    }
}

impl From<&'static [u8]> for Payload {
    fn from(data: &'static [u8]) -> Self {
        Self(data.into())
    }
}

impl From<Payload> for Bytes {
    fn from(payload: Payload) -> Self {
        payload.0
    }
}

impl Buf for Payload {
    fn remaining(&self) -> usize {
        self.0.remaining()
    }

    fn chunk(&self) -> &[u8] {
        CAPTURE.with_borrow_mut(|capture| {
            if let Capture::Waiting = capture {
                *capture = Capture::Seen;
            }
        });
        self.0.chunk()
    }

    fn advance(&mut self, count: usize) {
        let front = self.0.split_to(count);
        CAPTURE.with_borrow_mut(|capture| {
            if let Capture::Seen = capture {
                *capture = Capture::Taken(front);
            }
        });
    }

    fn copy_to_bytes(&mut self, len: usize) -> Bytes {
        self.0.split_to(len)
    }
}

/// Returns true if bodies of this type are payloads.
pub(crate) fn is_payload<B: 'static>() -> bool {
    TypeId::of::<B>() == TypeId::of::<Payload>()
}

/// Takes everything out of a buffer, whose payloads are not copied. Returns the chunks in order.
pub(crate) fn take(buffer: &mut impl Buf) -> Vec<Bytes> {
    let mut chunks = Vec::with_capacity(2);
    while buffer.has_remaining() {
        CAPTURE.set(Capture::Waiting);
        let chunk = buffer.chunk();
        let len = chunk.len();
        let is_payload = CAPTURE.with_borrow(|capture| matches!(capture, Capture::Seen));
        let copy = (!is_payload).then(|| Bytes::copy_from_slice(chunk));
        buffer.advance(len);
        chunks.extend(match CAPTURE.replace(Capture::Off) {
            Capture::Taken(front) => Some(front),
            Capture::Off | Capture::Waiting | Capture::Seen => copy,
        });
    }
    chunks
}

#[cfg(test)]
mod tests {
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

    /// What is no payload is copied, however long.
    #[test]
    fn other_data_is_copied() {
        let block = vec![3; 500];
        let mut buffer = Framed(b"header", Payload::default()).chain(&block[..]);
        let chunks = take(&mut buffer);
        assert_eq!(chunks, [Bytes::from("header"), Bytes::from(block)]);
    }

    /// A payload behind a header is taken over, not copied.
    #[test]
    fn a_payload_keeps_its_memory() {
        let body = Bytes::from(vec![7; 10_000]);
        let place = body.as_ptr();
        let mut buffer = Framed(b"header", Payload::from(body));
        let chunks = take(&mut buffer);
        assert_eq!(chunks.len(), 2);
        assert_eq!(chunks[0], "header");
        assert_eq!(chunks[1].len(), 10_000);
        assert_eq!(chunks[1].as_ptr(), place);
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
