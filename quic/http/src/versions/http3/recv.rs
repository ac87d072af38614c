//! Messages that arrive.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::HeaderMap;
use hybriq::{RecvStream, StreamId};
use hybriq_h3::core::{Code, Head, Received, Receiver};

use super::{Link, Stream, StreamError};

/// The receiving half of a stream, whose message arrives. Dropping it before the end of the message stops the
/// stream with H3_REQUEST_CANCELLED.
pub(crate) struct Recv<H: Head> {
    stream: RecvStream,
    receiver: Receiver<H>,
    link: Arc<Link>,
    /// Trailers that were found at the end of the content.
    trailers: Option<HeaderMap>,
    is_over: bool,
}

impl<H: Head> Recv<H> {
    pub(super) fn new(stream: RecvStream, receiver: Receiver<H>, link: Arc<Link>) -> Self {
        Self {
            stream,
            receiver,
            link,
            trailers: None,
            is_over: false,
        }
    }

    pub(crate) fn id(&self) -> StreamId {
        self.receiver.id()
    }

    /// Waits for the next head of the message: interim ones are heads, too.
    pub(crate) async fn head(&mut self) -> Result<H, StreamError> {
        match poll_fn(|cx| self.poll(cx)).await? {
            Received::Head(head) => Ok(head),
            Received::HeadTooLarge => {
                let most = self.link.core().http3.max_field_section();
                Err(StreamError::HeadTooLarge(most))
            }
            // A receiver gives nothing else before a head.
            _ => Err(StreamError::Closed),
        }
    }

    /// Returns true if nothing more comes.
    pub(crate) fn is_end(&self) -> bool {
        self.is_over || self.receiver.is_end()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Received<H>, StreamError>> {
        loop {
            let (receiver, id) = (&mut self.receiver, self.stream.id());
            let polled = self.link.with(|core| {
                let received = receiver.poll(&mut core.http3)?;
                if matches!(received, Received::Blocked) {
                    core.wait(id, cx.waker());
                }
                Ok(received)
            });
            match polled {
                Ok(Received::NeedData) => {}
                Ok(Received::Blocked) => return Poll::Pending,
                Ok(received) => {
                    self.is_over = matches!(received, Received::End);
                    return Poll::Ready(Ok(received));
                }
                Err(error) => {
                    if let StreamError::Violation(violation) = &error {
                        self.stop(violation.code());
                    }
                    return Poll::Ready(Err(error));
                }
            }
            match ready!(self.stream.poll_read_chunk(cx, usize::MAX)) {
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
}

impl<H: Head> Stream for Recv<H> {
    type Error = StreamError;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>> {
        loop {
            match ready!(self.poll(cx))? {
                Received::Data(data) => return Poll::Ready(Ok(Some(data))),
                Received::Trailers(trailers) => {
                    self.trailers = Some(trailers);
                    return Poll::Ready(Ok(None));
                }
                Received::End => return Poll::Ready(Ok(None)),
                // Not behind a final head.
                _ => {}
            }
        }
    }

    fn poll_trailers(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<HeaderMap>, StreamError>> {
        while !self.is_end() {
            ready!(self.poll(cx))?;
        }
        Poll::Ready(Ok(self.trailers.take()))
    }

    fn is_end(&self) -> bool {
        self.trailers.is_none() && Recv::is_end(self)
    }

    /// Reads no more.
    fn stop(&mut self, code: Code) {
        if self.is_over {
            return;
        }
        self.is_over = true;
        let (receiver, id) = (&mut self.receiver, self.stream.id());
        // The connection may be over.
        let _ = self.link.with(|core| {
            core.forget(id);
            receiver.cancel(&mut core.http3);
            Ok(())
        });
        self.stream.stop(code.0);
    }
}

impl<H: Head> Recv<H> {
    fn stop(&mut self, code: Code) {
        Stream::stop(self, code);
    }
}

impl<H: Head> Drop for Recv<H> {
    fn drop(&mut self) {
        if !self.is_end() {
            self.stop(Code::H3_REQUEST_CANCELLED);
        }
    }
}
