//! Data received on a tunnel over HTTP/2. hyper returns any part of a frame, but whole frames are counted.

use std::{
    io,
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, ReadBuf};

use super::rest::PART;
use crate::inflow::Reader;

/// A tunnel over HTTP/2 whose frames are counted when they are read.
pub(super) struct Frames {
    pub(super) stream: TokioIo<hyper::upgrade::Upgraded>,
    /// Dropped at the end of the data.
    reader: Option<Reader>,
    /// The frame of which only a part was read.
    frame: Vec<u8>,
    read: usize,
}

impl Frames {
    pub(super) fn new(stream: hyper::upgrade::Upgraded, reader: Option<Reader>) -> Self {
        Self {
            stream: TokioIo::new(stream),
            reader,
            frame: Vec::new(),
            read: 0,
        }
    }

    /// Reads a frame into a buffer that has room for any.
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let len = buffer.filled().len() - before;
        if len == 0 {
            self.reader = None;
        }
        Poll::Ready(Ok(len))
    }

    fn on_taken(&self, len: usize) {
        if let Some(reader) = &self.reader {
            reader.on_taken(len as u64);
        }
    }
}

impl AsyncRead for Frames {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.frame.is_empty() && buffer.remaining() >= PART {
            let len = ready!(self.poll_frame(cx, buffer))?;
            self.on_taken(len);
            return Poll::Ready(Ok(()));
        }
        if self.frame.is_empty() {
            let mut room = [MaybeUninit::uninit(); PART];
            let mut frame = ReadBuf::uninit(&mut room);
            ready!(self.poll_frame(cx, &mut frame))?;
            (self.frame, self.read) = (frame.filled().to_vec(), 0);
        }
        let rest = self.frame.get(self.read..).unwrap_or_default();
        let len = rest.len().min(buffer.remaining());
        buffer.put_slice(rest.get(..len).unwrap_or_default());
        self.read += len;
        if self.read == self.frame.len() {
            self.on_taken(self.frame.len());
            self.frame = Vec::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Frames {
    /// Counts what goes with the tunnel.
    fn drop(&mut self) {
        self.on_taken(self.frame.len());
        let mut cx = Context::from_waker(Waker::noop());
        let mut room = [MaybeUninit::uninit(); PART];
        while self.reader.is_some() {
            let polled = self.poll_frame(&mut cx, &mut ReadBuf::uninit(&mut room));
            let Poll::Ready(Ok(len)) = polled else {
                return;
            };
            self.on_taken(len);
        }
    }
}
