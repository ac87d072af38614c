//! Bodies over HTTP/3.

use std::{
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::Response;
use http_body::{Frame, SizeHint};
use hybriq_h3::{
    Payload, RecvStream,
    core::{Code, Violation},
};

use super::{Body, BodyError, Kind, stall::Stall};
use crate::{
    usage::Exchange,
    versions::http3::{Recv, Stream, StreamError},
};

/// A body over HTTP/3.
pub(super) struct Quic<S: Stream> {
    stream: S,
    part: Part,
    /// Bytes that are still to come according to `content-length`.
    left: Option<u64>,
    stall: Option<Stall>,
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
    pub(crate) fn of_quic(
        stream: h3::server::RequestStream<RecvStream, Payload>,
        length: Option<u64>,
        stall_time: Duration,
    ) -> Self {
        Self(Kind::Request(Box::new(Quic {
            stream,
            part: Part::Data,
            left: length,
            stall: Some(Stall::new(stall_time)),
            exchange: None,
        })))
    }

    /// Returns the body of a response over HTTP/3.
    pub(crate) fn of_response(
        stream: Recv<Response<()>>,
        length: Option<u64>,
        exchange: Exchange,
    ) -> Self {
        let is_end = stream.is_end();
        let (part, exchange) = if is_end {
            exchange.complete();
            (Part::Nothing, None)
        } else {
            (Part::Data, Some(exchange))
        };
        Self(Kind::Response(Box::new(Quic {
            stream,
            part,
            left: if is_end { Some(0) } else { length },
            stall: None,
            exchange,
        })))
    }
}

impl<S: Stream> Quic<S> {
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = self.poll_part(cx);
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
        if self.part == Part::Nothing {
            if let Some(exchange) = self.exchange.take() {
                exchange.complete();
            }
        }
        polled
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.part == Part::Nothing || self.stream.is_end()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::new, SizeHint::with_exact)
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.part == Part::Data {
            match ready!(self.stream.poll_data(cx)) {
                Ok(Some(data)) => return Poll::Ready(Some(self.take(data))),
                Ok(None) if self.left.is_some_and(|left| left > 0) => {
                    self.fail(Code::H3_MESSAGE_ERROR);
                    return Poll::Ready(Some(Err(BodyError::Length)));
                }
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

    /// Counts data against `content-length`.
    fn take(&mut self, data: Bytes) -> Result<Frame<Bytes>, BodyError> {
        if let Some(left) = &mut self.left {
            let Some(rest) = left.checked_sub(data.len() as u64) else {
                self.fail(Code::H3_MESSAGE_ERROR);
                return Err(BodyError::Length);
            };
            *left = rest;
        }
        Ok(Frame::data(data))
    }

    /// Stops reading the body, and tells the peer why.
    fn fail(&mut self, code: Code) {
        self.part = Part::Nothing;
        self.left = None;
        self.stream.stop(code);
    }
}

/// Returns the error of a body whose stream failed.
fn failed(error: impl std::error::Error + Send + Sync + 'static) -> BodyError {
    let any: &dyn std::error::Error = &error;
    match any.downcast_ref() {
        Some(StreamError::Violation(
            Violation::ContentLengthDiffers | Violation::ContentNotAllowed,
        )) => BodyError::Length,
        _ => BodyError::Quic(error.into()),
    }
}

impl<S: Stream> Drop for Quic<S> {
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
