//! Bodies of requests.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, Bytes};
use h3::error::Code;
use http_body::{Frame, SizeHint};
use hybriq_h3::{Payload, RecvStream};
use tokio::time::{Instant, Sleep};

/// The body of a request, over any version of HTTP.
pub struct Body(Kind);

enum Kind {
    Tcp(hyper::body::Incoming),
    Quic(Box<Quic>),
}

/// The body of a request over HTTP/3.
struct Quic {
    stream: h3::server::RequestStream<RecvStream, Payload>,
    part: Part,
    /// Bytes that are left according to `content-length`.
    left: Option<u64>,
    stall: Pin<Box<Sleep>>,
    stall_time: Duration,
}

/// Part of a body that comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Data,
    Trailers,
    Nothing,
}

/// Error of reading the body of a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The client reset the stream or closed the connection, or the body was malformed.
    #[error(transparent)]
    Quic(#[from] h3::error::StreamError),
    /// The same over TCP.
    #[error(transparent)]
    Tcp(#[from] hyper::Error),
    /// The client sent nothing for [`Limits::stall_time`](crate::Limits::stall_time).
    #[error("the client sent nothing of the body for {0:?}")]
    Stalled(Duration),
    /// The body is longer or shorter than its `content-length` (RFC 9114 §4.1.2).
    #[error("the body is not as long as its content-length says")]
    Length,
}

impl Body {
    pub(crate) fn of_tcp(body: hyper::body::Incoming) -> Self {
        Self(Kind::Tcp(body))
    }

    pub(crate) fn of_quic(
        stream: h3::server::RequestStream<RecvStream, Payload>,
        length: Option<u64>,
        stall_time: Duration,
    ) -> Self {
        Self(Kind::Quic(Box::new(Quic {
            stream,
            part: Part::Data,
            left: length,
            stall: Box::pin(tokio::time::sleep(stall_time)),
            stall_time,
        })))
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.get_mut().0 {
            Kind::Tcp(body) => Pin::new(body).poll_frame(cx).map_err(BodyError::Tcp),
            Kind::Quic(body) => body.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Tcp(body) => body.is_end_stream(),
            Kind::Quic(body) => body.part == Part::Nothing,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Tcp(body) => body.size_hint(),
            Kind::Quic(body) => body.left.map_or_else(SizeHint::new, SizeHint::with_exact),
        }
    }
}

impl Quic {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = self.poll_part(cx);
        if polled.is_pending() {
            ready!(self.stall.as_mut().poll(cx));
            self.fail(Code::H3_REQUEST_CANCELLED);
            return Poll::Ready(Some(Err(BodyError::Stalled(self.stall_time))));
        }
        self.stall.as_mut().reset(Instant::now() + self.stall_time);
        polled
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.part == Part::Data {
            match ready!(self.stream.poll_recv_data(cx)) {
                Ok(Some(mut data)) => {
                    let len = data.remaining();
                    let data = data.copy_to_bytes(len);
                    return Poll::Ready(Some(self.take(data)));
                }
                Ok(None) if self.left.is_some_and(|left| left > 0) => {
                    self.fail(Code::H3_MESSAGE_ERROR);
                    return Poll::Ready(Some(Err(BodyError::Length)));
                }
                Ok(None) => self.part = Part::Trailers,
                Err(error) => {
                    self.part = Part::Nothing;
                    return Poll::Ready(Some(Err(error.into())));
                }
            }
        }
        if self.part == Part::Trailers {
            let trailers = ready!(self.stream.poll_recv_trailers(cx));
            self.part = Part::Nothing;
            let frame = trailers.map(|trailers| trailers.map(Frame::trailers));
            return Poll::Ready(frame.map_err(BodyError::from).transpose());
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

    /// Reads no more of the body, and tells the client why.
    fn fail(&mut self, code: Code) {
        self.part = Part::Nothing;
        self.left = None;
        self.stream.stop_sending(code);
    }
}

impl Drop for Quic {
    /// Tells the client that the rest of the body is not needed, which is no error (RFC 9114 §4.1).
    fn drop(&mut self) {
        self.stream.stop_sending(Code::H3_NO_ERROR);
    }
}
