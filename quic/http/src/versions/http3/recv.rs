//! Messages that arrive.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use bytes::Bytes;
use http::HeaderMap;
use hybriq::{RecvStream, StreamId};
use hybriq_h3::{Code, Head, Received, Receiver, Scope};
use tokio::task::coop;

use super::{Link, StreamError};

/// The receiving half of a stream, whose message arrives. Dropping it before the end of the message stops the
/// stream with H3_REQUEST_CANCELLED.
pub(crate) struct Recv<H: Head> {
    stream: RecvStream,
    receiver: Receiver<H>,
    link: Arc<Link>,
    /// Trailers that were found at the end of the content.
    trailers: Option<Box<HeaderMap>>,
    stage: Stage,
    /// Bytes for which it is counted.
    held: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Head,
    Content,
    Over,
}

impl<H: Head> Recv<H> {
    pub(super) fn new(stream: RecvStream, receiver: Receiver<H>, link: Arc<Link>) -> Self {
        link.counts.on_message();
        Self {
            stream,
            receiver,
            link,
            trailers: None,
            stage: Stage::Head,
            held: 0,
        }
    }

    pub(crate) fn id(&self) -> StreamId {
        self.receiver.id()
    }

    /// Returns true if data of the message may be a replay (RFC 8470).
    pub(crate) fn is_early(&self) -> bool {
        self.stream.is_early()
    }

    /// Waits for the next head of the message: interim ones are heads, too.
    pub(crate) async fn head(&mut self) -> Result<H, StreamError> {
        poll_fn(|cx| self.poll_head(cx)).await
    }

    /// The same as a poll.
    pub(crate) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<H, StreamError>> {
        Poll::Ready(match ready!(self.poll(cx)) {
            Ok(Received::Head(head)) => Ok(head),
            Ok(Received::HeadTooLarge) => {
                let most = self.link.core().http3.max_field_section();
                Err(StreamError::HeadTooLarge(most))
            }
            // A receiver gives nothing else before a head.
            Ok(_) => Err(StreamError::Closed),
            Err(error) => Err(error),
        })
    }

    /// Returns true if nothing more comes.
    fn is_over(&self) -> bool {
        self.stage == Stage::Over || self.receiver.is_end()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Received<H>, StreamError>> {
        loop {
            if !self.receiver.needs_data() {
                match self.take(cx) {
                    Ok(Received::NeedData) => {}
                    Ok(Received::Blocked) => {
                        let error = match ready!(self.stream.poll_received_reset(cx)) {
                            Ok(Some(code)) => StreamError::Ended(Code(code)),
                            Err(error) => error.into(),
                            // All has arrived but the entries.
                            Ok(None) => return Poll::Pending,
                        };
                        self.stop(Code::H3_REQUEST_CANCELLED);
                        return Poll::Ready(Err(error));
                    }
                    Ok(Received::Pause) => {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    received => return Poll::Ready(received),
                }
            }
            // Frames that nobody needs do not keep other tasks waiting.
            let turn = ready!(coop::poll_proceed(cx));
            let read = ready!(self.stream.poll_read_chunk(cx, usize::MAX));
            turn.made_progress();
            match read {
                Ok(Some(data)) => {
                    self.receiver.on_data(data);
                    if self.stream.is_finished() {
                        self.receiver.on_fin();
                    }
                }
                Ok(None) => self.receiver.on_fin(),
                Err(error) => {
                    self.stop(Code::H3_REQUEST_CANCELLED);
                    return Poll::Ready(Err(error.into()));
                }
            }
        }
    }

    /// Takes the next part of the received data.
    fn take(&mut self, cx: &Context<'_>) -> Result<Received<H>, StreamError> {
        let mut core = self.link.core();
        let received = self.receiver.poll(&mut core.http3);
        // What was received is large: it is not moved more than needed.
        let (mut error, mut replaced) = (None, None);
        match &received {
            Ok(Received::Blocked) => match &core.over {
                Some(over) => error = Some(over.clone()),
                None => replaced = core.wait(self.receiver.id(), cx.waker()),
            },
            Ok(_) => {}
            Err(violation) => error = Some((*violation).into()),
        }
        let flushed = core.flush_later(&self.link.driver);
        drop(core);
        drop(replaced);
        self.count();
        if let Some(error) = error.or(flushed.err()) {
            self.on_error(&error);
            return Err(error);
        }
        let received = received?;
        self.on_received(&received);
        Ok(received)
    }

    fn on_error(&mut self, error: &StreamError) {
        self.link.on_error(error);
        if let StreamError::Violation(violation) = error {
            if self.stage == Stage::Content && violation.scope() == Scope::Stream {
                self.link.counts.on_broken();
            }
            self.stop(violation.code());
        }
    }

    fn on_received(&mut self, received: &Received<H>) {
        match received {
            Received::Head(_) | Received::HeadTooLarge if self.stage == Stage::Head => {
                self.stage = Stage::Content;
                self.link.counts.on_head();
            }
            Received::End => self.end(),
            _ => {}
        }
    }

    /// Notes that nothing more is read.
    fn end(&mut self) {
        if self.stage == Stage::Head {
            self.link.counts.on_head();
        }
        self.stage = Stage::Over;
    }

    /// Counts the bytes that are held.
    fn count(&mut self) {
        let held = self.receiver.held();
        if held != self.held {
            self.link.counts.on_held(self.held, held);
            self.held = held;
        }
    }

    /// Returns the next data of the content; `None` at its end.
    pub(crate) fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamError>> {
        loop {
            if self.stage == Stage::Over {
                return Poll::Ready(Ok(None));
            }
            match ready!(self.poll(cx))? {
                Received::Data(data) => return Poll::Ready(Ok(Some(data))),
                Received::Trailers(trailers) => {
                    self.trailers = Some(Box::new(trailers));
                    return Poll::Ready(Ok(None));
                }
                Received::End => return Poll::Ready(Ok(None)),
                // Not behind a final head.
                _ => {}
            }
        }
    }

    /// Returns the trailers, behind the content, if there are any.
    pub(crate) fn poll_trailers(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<HeaderMap>, StreamError>> {
        while !self.is_over() {
            ready!(self.poll(cx))?;
        }
        Poll::Ready(Ok(self.trailers.take().map(|trailers| *trailers)))
    }

    /// Returns the bytes of content that must still come, if that is known.
    pub(crate) fn content_left(&self) -> Option<u64> {
        if self.is_over() {
            Some(0)
        } else {
            self.receiver.content_left()
        }
    }

    /// Returns true if it is known that nothing more comes.
    pub(crate) fn is_end(&self) -> bool {
        self.trailers.is_none() && self.is_over()
    }

    /// Reads no more.
    pub(crate) fn stop(&mut self, code: Code) {
        if self.stage == Stage::Over {
            return;
        }
        let is_whole = self.is_over() && self.stream.is_finished();
        self.end();
        if is_whole {
            return;
        }
        let id = self.receiver.id();
        let receiver = &mut self.receiver;
        let mut forgotten = None;
        // The connection may be over.
        let _ = self.link.receive(|core| {
            forgotten = core.forget(id);
            receiver.cancel(&mut core.http3);
            Ok(())
        });
        drop(forgotten);
        self.count();
        self.stream.stop(code.0);
    }
}

impl<H: Head> Drop for Recv<H> {
    fn drop(&mut self) {
        if self.stage == Stage::Content && !self.is_over() {
            // All that is left may be frames that carry nothing, and the end.
            let _ = self.poll(&mut Context::from_waker(Waker::noop()));
        }
        self.stop(Code::H3_REQUEST_CANCELLED);
        self.link.counts.on_held(self.held, 0);
    }
}
