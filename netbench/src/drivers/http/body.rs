//! A body that is the pattern.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::scenario::pattern;

/// A body of this many bytes of the [`pattern`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Pattern {
    offset: u64,
    left: u64,
}

impl Pattern {
    pub(crate) fn new(bytes: u64) -> Self {
        Self {
            offset: 0,
            left: bytes,
        }
    }
}

impl Iterator for Pattern {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.left == 0 {
            return None;
        }
        let data = pattern::bytes_at(self.offset, self.left);
        self.offset += data.len() as u64;
        self.left -= data.len() as u64;
        Some(data)
    }
}

impl Body for Pattern {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.get_mut().next();
        Poll::Ready(next.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
