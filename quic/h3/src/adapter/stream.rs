//! Streams, and their ends.

use std::{
    fmt,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use h3::quic::{self, StreamErrorIncoming, StreamId, WriteBuf};
use hybriq::WriteError;

use super::error;
use crate::{error::Code, wire::varint};

/// Largest part of a frame that is handed to the transport at once, in bytes.
const PART: usize = 64 << 10;

/// The sending end of a stream.
///
/// Dropping it before it is finished resets the stream with H3_REQUEST_CANCELLED.
pub struct SendStream<B: Buf> {
    stream: hybriq::SendStream,
    /// The frame that is being sent, without what `part` has of it.
    // `h3` moves its streams many times for each request.
    frame: Option<Box<WriteBuf<B>>>,
    /// True if the frame means nothing.
    is_reserved: bool,
    /// What the transport has not taken yet.
    part: Bytes,
}

/// The receiving end of a stream.
///
/// Dropping it before its end was read stops the stream with H3_REQUEST_CANCELLED.
pub struct RecvStream(hybriq::RecvStream);

/// A bidirectional stream: a request and its response (RFC 9114 §4.1).
pub struct BidiStream<B: Buf> {
    send: SendStream<B>,
    recv: RecvStream,
}

/// A frame whose future was dropped before it was sent.
#[derive(Debug, thiserror::Error)]
#[error("an earlier frame was sent in part, so the stream was reset: await every send to its end")]
struct Torn;

impl<B: Buf> fmt::Debug for SendStream<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendStream").finish_non_exhaustive()
    }
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvStream").finish_non_exhaustive()
    }
}

impl<B: Buf> fmt::Debug for BidiStream<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BidiStream").finish_non_exhaustive()
    }
}

/// Returns the id of a stream as `h3` has it. Every id of the transport fits.
fn id(id: hybriq::StreamId) -> StreamId {
    StreamId::try_from(id.0).expect("ids of streams are below 2^62")
}

impl<B: Buf> SendStream<B> {
    pub(super) const fn new(stream: hybriq::SendStream) -> Self {
        Self {
            stream,
            frame: None,
            is_reserved: false,
            part: Bytes::new(),
        }
    }

    /// Resets the stream if a frame was sent in part. `h3` waits for each frame before it continues, so the future that
    /// waited was dropped, and it is unknown how much of the frame the caller counts as sent.
    fn check(&mut self) -> Result<(), StreamErrorIncoming> {
        if self.frame.is_none() {
            return Ok(());
        }
        // The frame stays: every later use fails as well.
        self.stream.reset(Code::H3_REQUEST_CANCELLED.0);
        Err(StreamErrorIncoming::Unknown(Box::new(Torn)))
    }

    /// Writes the rest of the frame and of the part.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        loop {
            while !self.part.is_empty() {
                if let Err(error) = ready!(self.stream.poll_write_chunk(cx, &mut self.part)) {
                    self.frame = None;
                    self.part = Bytes::new();
                    // `h3` sends such a frame before the end of a request, whose server may have answered (RFC 9114
                    // §4.1) and needs no more of it.
                    let is_answered = error == WriteError::Stopped(Code::H3_NO_ERROR.0);
                    return Poll::Ready(if is_answered && self.is_reserved {
                        Ok(())
                    } else {
                        Err(error::of_write(error))
                    });
                }
            }
            let Some(frame) = &mut self.frame else {
                return Poll::Ready(Ok(()));
            };
            let len = frame.remaining().min(PART);
            self.part = frame.copy_to_bytes(len);
            if len == 0 {
                self.frame = None;
            }
        }
    }
}

impl<B: Buf + 'static> quic::SendStream<B> for SendStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.poll_flush(cx)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.check()?;
        let frame = Box::new(data.into());
        let kind = varint::read(&mut frame.chunk());
        // RFC 9114 §7.2.8.
        self.is_reserved = kind.is_some_and(|kind| kind >= 0x21 && (kind - 0x21) % 0x1f == 0);
        self.frame = Some(frame);
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.check()?;
        ready!(self.poll_flush(cx))?;
        self.stream.finish();
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self, reset_code: u64) {
        self.stream.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

impl<B: Buf + 'static> quic::SendStreamUnframed<B> for SendStream<B> {
    fn poll_send<D: Buf>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut D,
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        self.check()?;
        ready!(self.poll_flush(cx))?;
        let len = buf.chunk().len();
        self.part = buf.copy_to_bytes(len);
        // What the transport does not take now goes first the next time.
        if let Poll::Ready(Err(error)) = self.poll_flush(cx) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(len))
    }
}

impl<B: Buf> Drop for SendStream<B> {
    fn drop(&mut self) {
        // Without effect after the end of the stream.
        self.stream.reset(Code::H3_REQUEST_CANCELLED.0);
    }
}

impl RecvStream {
    pub(super) const fn new(stream: hybriq::RecvStream) -> Self {
        Self(stream)
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let read = ready!(self.0.poll_read_chunk(cx, usize::MAX));
        Poll::Ready(read.map_err(error::of_read))
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.0.stop(error_code);
    }

    fn recv_id(&self) -> StreamId {
        id(self.0.id())
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        // Without effect after the end of the stream.
        self.0.stop(Code::H3_REQUEST_CANCELLED.0);
    }
}

impl<B: Buf> BidiStream<B> {
    pub(super) const fn new(send: hybriq::SendStream, recv: hybriq::RecvStream) -> Self {
        Self {
            send: SendStream::new(send),
            recv: RecvStream::new(recv),
        }
    }
}

impl<B: Buf + 'static> quic::BidiStream<B> for BidiStream<B> {
    type SendStream = SendStream<B>;
    type RecvStream = RecvStream;

    fn split(self) -> (Self::SendStream, Self::RecvStream) {
        (self.send, self.recv)
    }
}

impl<B: Buf + 'static> quic::SendStream<B> for BidiStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.send.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl<B: Buf + 'static> quic::SendStreamUnframed<B> for BidiStream<B> {
    fn poll_send<D: Buf>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut D,
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        self.send.poll_send(cx, buf)
    }
}

impl<B: Buf> quic::RecvStream for BidiStream<B> {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.recv.poll_data(cx)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.recv.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.recv.recv_id()
    }
}
