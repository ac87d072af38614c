//! Sending ends of streams.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use h3::quic::{self, StreamErrorIncoming, StreamId, WriteBuf};

use crate::adapter::{
    H3_REQUEST_CANCELLED, error, id,
    payload::{Chunks, Follows, is_payload, take},
    refusal,
    settings::Settings,
};

/// The sending end of a stream.
///
/// Dropping it before it is finished resets the stream with H3_REQUEST_CANCELLED.
pub struct SendStream<B: Buf> {
    stream: hybriq::SendStream,
    waiting: Waiting<B>,
    /// True once a frame was handed over.
    has_answered: bool,
    /// Settings that are sent if this is the control stream, until its start was sent.
    settings: Option<Arc<Settings>>,
}

impl<B: Buf> std::fmt::Debug for SendStream<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendStream").finish_non_exhaustive()
    }
}

/// Data that `h3` has handed over and the transport has not taken yet.
enum Waiting<B: Buf> {
    Nothing,
    /// A frame with a body that must be copied.
    Frame(Box<WriteBuf<B>>),
    /// A frame in parts, which the transport takes over without a copy.
    Chunks(Chunks, Follows),
}

impl<B: Buf> SendStream<B> {
    pub(crate) fn new(stream: hybriq::SendStream) -> Self {
        Self {
            stream,
            waiting: Waiting::Nothing,
            has_answered: false,
            settings: None,
        }
    }

    /// Sends these settings if the stream turns out to be the control stream.
    pub(crate) fn with_settings(mut self, settings: Arc<Settings>) -> Self {
        self.settings = (!settings.is_empty()).then_some(settings);
        self
    }

    /// Abandons the stream. Without effect after its end.
    pub(crate) fn reset_with(&mut self, code: u64) {
        self.stream.reset(code);
    }
}

impl<B: Buf + 'static> quic::SendStream<B> for SendStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        match &mut self.waiting {
            Waiting::Nothing => {}
            Waiting::Frame(frame) => {
                while frame.has_remaining() {
                    let written = ready!(self.stream.poll_write(cx, frame.chunk()));
                    frame.advance(written.map_err(error::write)?);
                }
            }
            Waiting::Chunks(chunks, Follows::Nothing) => {
                ready!(self.stream.poll_finish_with(cx, chunks)).map_err(error::write)?;
            }
            Waiting::Chunks(chunks, Follows::More) => {
                while chunks.iter().any(|chunk| !chunk.is_empty()) {
                    ready!(self.stream.poll_write_chunks(cx, chunks)).map_err(error::write)?;
                }
            }
        }
        self.waiting = Waiting::Nothing;
        Poll::Ready(Ok(()))
    }

    /// Takes a frame. Call `poll_ready` until it is ready before the next one.
    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if !matches!(self.waiting, Waiting::Nothing) {
            return Err(error::on_stream(
                quic::ConnectionErrorIncoming::InternalError(
                    "a frame was sent before the stream was ready for it".into(),
                ),
            ));
        }
        self.has_answered = true;
        let mut frame = data.into();
        if let Some(settings) = self.settings.take() {
            let start = frame.copy_to_bytes(frame.remaining());
            let merged = settings.merge(&start).unwrap_or(start);
            self.waiting = Waiting::Chunks([merged, Bytes::new()], Follows::More);
            return Ok(());
        }
        self.waiting = if is_payload::<B>() {
            let (chunks, follows) = take(&mut frame);
            Waiting::Chunks(chunks, follows)
        } else {
            Waiting::Frame(Box::new(frame))
        };
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(cx))?;
        self.stream.finish();
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self, reset_code: u64) {
        self.stream.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        id::of(self.stream.id())
    }
}

impl<B: Buf + 'static> quic::SendStreamUnframed<B> for SendStream<B> {
    fn poll_send<D: Buf>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut D,
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        ready!(quic::SendStream::poll_ready(self, cx))?;
        let written = ready!(self.stream.poll_write(cx, buf.chunk())).map_err(error::write)?;
        buf.advance(written);
        Poll::Ready(Ok(written))
    }
}

impl<B: Buf> Drop for SendStream<B> {
    fn drop(&mut self) {
        if self.has_answered && refusal::is_resolving() && matches!(self.waiting, Waiting::Nothing)
        {
            self.stream.finish();
        }
        // Without effect after the end of the stream.
        self.stream.reset(H3_REQUEST_CANCELLED);
    }
}
