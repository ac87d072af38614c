//! Bodies over HTTP/3.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use hybriq_h3::{Code, Head, Violation};

use super::{Body, BodyError, Kind, stall::Stall};
use crate::{
    limits::Patience,
    usage::Exchange,
    versions::{
        http3::{Recv, StreamError},
        interim::Continue,
    },
};

/// A body over HTTP/3.
pub(super) struct Quic<H: Head> {
    stream: Recv<H>,
    part: Part,
    stall: Option<Stall>,
    /// Answer to a client that waits until the body is read.
    expected: Option<Continue>,
    /// The client's use of the connection, until the body ends.
    exchange: Option<Exchange>,
}

/// The part of the body that comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Data,
    Trailers,
    Nothing,
}

impl Body {
    /// Returns the body of a request over HTTP/3 that has not ended.
    pub(crate) fn of_quic(
        stream: Recv<Request<()>>,
        patience: Arc<Patience>,
        expected: Option<Continue>,
    ) -> Self {
        Self(Kind::Request(Box::new(Quic {
            stream,
            part: Part::Data,
            stall: Some(Stall::new(patience)),
            expected,
            exchange: None,
        })))
    }

    /// Returns the body of a response over HTTP/3.
    pub(crate) fn of_response(stream: Recv<Response<()>>, exchange: Exchange) -> Self {
        let mut body = Quic {
            stream,
            part: Part::Data,
            stall: None,
            expected: None,
            exchange: Some(exchange),
        };
        body.complete();
        Self(Kind::Response(Box::new(body)))
    }
}

impl<H: Head> Quic<H> {
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = self.poll_part(cx);
        // A client that has sent a part of the body does not wait.
        if let Some(expected) = self.expected.take().filter(|_| polled.is_pending()) {
            expected.send();
        }
        if polled.is_pending() {
            let Some(stall) = &mut self.stall else {
                return Poll::Pending;
            };
            let error = ready!(stall.poll(cx));
            self.fail(Code::H3_REQUEST_CANCELLED);
            return Poll::Ready(Some(Err(error)));
        }
        if let Some(stall) = &mut self.stall {
            stall.on_news();
        }
        self.complete();
        polled
    }

    /// Ends the use of the connection after the last of the body: its reader need not ask for the end.
    fn complete(&mut self) {
        if self.is_end_stream() {
            if let Some(exchange) = self.exchange.take() {
                exchange.complete();
            }
        }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.part == Part::Nothing || self.stream.is_end()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        let left = self.stream.content_left();
        left.map_or_else(SizeHint::new, SizeHint::with_exact)
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.part == Part::Data {
            match ready!(self.stream.poll_data(cx)) {
                Ok(Some(data)) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Ok(None) => self.part = Part::Trailers,
                Err(error) => {
                    self.part = Part::Nothing;
                    return Poll::Ready(Some(Err(failed(error))));
                }
            }
        }
        if self.part == Part::Trailers {
            let trailers = ready!(self.stream.poll_trailers(cx));
            self.part = Part::Nothing;
            let frame = trailers.map(|trailers| trailers.map(Frame::trailers));
            let frame = frame.map_err(failed);
            return Poll::Ready(frame.transpose());
        }
        Poll::Ready(None)
    }

    /// Stops reading the body, and tells the peer why.
    fn fail(&mut self, code: Code) {
        self.part = Part::Nothing;
        self.stream.stop(code);
    }
}

/// Returns the error of a body whose stream failed.
fn failed(error: StreamError) -> BodyError {
    match error {
        StreamError::Violation(Violation::ContentLengthDiffers | Violation::ContentNotAllowed) => {
            BodyError::Length
        }
        error => BodyError::Quic(error),
    }
}

impl<H: Head> Drop for Quic<H> {
    /// Tells the peer that the rest of the body is not needed. For a request this is no error (RFC 9114 §4.1); a
    /// response is cancelled.
    fn drop(&mut self) {
        let code = if self.exchange.is_some() {
            Code::H3_REQUEST_CANCELLED
        } else {
            Code::H3_NO_ERROR
        };
        self.stream.stop(code);
    }
}
