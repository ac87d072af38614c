//! Bodies that were received: of requests by a server, of responses by a client.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use h3::error::Code;
use h3::error::StreamError;
use http::{HeaderMap, header::CONTENT_LENGTH};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hybriq_h3::{Payload, RecvStream};
use tokio::{
    sync::oneshot,
    time::{Instant, Sleep},
};

use crate::inflow::Incoming;
use crate::usage::Exchange;

/// The body of a request that a server received, or of a response that a client received, over any version
/// of HTTP.
pub struct Body(Kind);

enum Kind {
    Empty,
    Tcp(Tcp),
    Request(Box<Quic<h3::server::RequestStream<RecvStream, Payload>>>),
    Response(Box<Quic<h3::client::RequestStream<RecvStream, Payload>>>),
}

/// The receiving half of a stream of HTTP/3, at either end.
pub(crate) trait Stream {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>>;
    fn poll_trailers(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<HeaderMap>, StreamError>>;
    fn stop(&mut self, code: Code);
}

impl Stream for h3::server::RequestStream<RecvStream, Payload> {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>> {
        self.poll_recv_data(cx).map_ok(|data| data.map(bytes))
    }

    fn poll_trailers(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<HeaderMap>, StreamError>> {
        self.poll_recv_trailers(cx)
    }

    fn stop(&mut self, code: Code) {
        self.stop_sending(code);
    }
}

impl Stream for h3::client::RequestStream<RecvStream, Payload> {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>> {
        self.poll_recv_data(cx).map_ok(|data| data.map(bytes))
    }

    fn poll_trailers(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<HeaderMap>, StreamError>> {
        self.poll_recv_trailers(cx)
    }

    fn stop(&mut self, code: Code) {
        self.stop_sending(code);
    }
}

fn bytes(mut data: impl Buf) -> Bytes {
    data.copy_to_bytes(data.remaining())
}

/// A body over TCP.
struct Tcp {
    body: Incoming,
    stall: Option<Stall>,
    /// Use of the client's connection, until the end of the body.
    exchange: Option<Exchange>,
    /// Dropped at the end of the body.
    end: Option<oneshot::Sender<()>>,
}

/// A body over HTTP/3.
struct Quic<S: Stream> {
    stream: S,
    part: Part,
    /// Bytes that are left according to `content-length`.
    left: Option<u64>,
    stall: Option<Stall>,
    /// Use of the client's connection, until the end of the body.
    exchange: Option<Exchange>,
}

/// Bound on the time in which nothing comes although somebody waits for it.
struct Stall {
    /// Made when somebody first waits.
    timer: Option<Pin<Box<Sleep>>>,
    waits: Waits,
    time: Duration,
}

/// Part of the time by which a reader that waits may be late, because its thread is busy.
const LATE: u32 = 8;

/// State of the reader of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// It has what came, and has not asked for more.
    No,
    /// It waits: the timer runs.
    Yes,
}

/// Part of a body that comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Data,
    Trailers,
    Nothing,
}

/// Error of reading a [`Body`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The peer reset the stream or closed the connection, or the body was malformed.
    #[error("the body ended early over HTTP/3, or it is malformed")]
    Quic(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The same over TCP.
    #[error("the body ended early over TCP, or it is malformed")]
    Tcp(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The client sent nothing for [`Limits::stall_time`](crate::Limits::stall_time).
    #[error("the client sent nothing of the body for {0:?}")]
    Stalled(Duration),
    /// The body is longer or shorter than its `content-length` (RFC 9114 §4.1.2).
    #[error("the body is not as long as its content-length says")]
    Length,
    /// The body is longer than the limit of [`Body::bytes`].
    #[error("the body is longer than {0} bytes; raise the limit, or read it frame by frame")]
    TooLong(usize),
}

/// A `content-length` that is no number, or another one beside it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadLength;

/// Returns the length that a message announces (RFC 9110 §8.6), if it does.
pub(crate) fn length(fields: &HeaderMap) -> Result<Option<u64>, BadLength> {
    let mut values = fields.get_all(CONTENT_LENGTH).iter();
    let Some(first) = values.next() else {
        return Ok(None);
    };
    if values.any(|other| other != first) || !first.as_bytes().iter().all(u8::is_ascii_digit) {
        return Err(BadLength);
    }
    let length = first.to_str().ok().and_then(|digits| digits.parse().ok());
    length.map(Some).ok_or(BadLength)
}

impl Body {
    /// Reads the whole body, of at most `most` bytes. Trailers are left out.
    ///
    /// # Errors
    /// The body is longer, or it ends too early.
    ///
    /// # Cancel safety
    /// Bytes that were read are lost when the future is dropped.
    pub async fn bytes(mut self, most: usize) -> Result<Bytes, BodyError> {
        let mut whole = BytesMut::new();
        while let Some(frame) = self.frame().await {
            let Ok(data) = frame?.into_data() else {
                continue;
            };
            if data.len() > most - whole.len() {
                return Err(BodyError::TooLong(most));
            }
            if whole.is_empty() && self.is_end_stream() {
                return Ok(data);
            }
            whole.extend_from_slice(&data);
        }
        Ok(whole.freeze())
    }

    /// Returns the body of a request whose stream goes on as that of another protocol.
    pub(crate) fn empty() -> Self {
        Self(Kind::Empty)
    }

    /// Returns the body of a response over HTTP/1.1, whose use of the connection is counted elsewhere. Drops `end`
    /// at its end.
    pub(crate) fn of_http1(body: hyper::body::Incoming, end: oneshot::Sender<()>) -> Self {
        let end = (!body.is_end_stream()).then_some(end);
        Self(Kind::Tcp(Tcp {
            body: Incoming::new(body, None),
            stall: None,
            exchange: None,
            end,
        }))
    }

    /// Returns the body of a request over TCP.
    pub(crate) fn of_tcp_request(body: Incoming, stall_time: Duration) -> Self {
        let stall = (!body.is_end_stream()).then(|| Stall::new(stall_time));
        Self(Kind::Tcp(Tcp {
            body,
            stall,
            exchange: None,
            end: None,
        }))
    }

    /// Returns the body of a response over TCP.
    pub(crate) fn answered(body: hyper::body::Incoming, exchange: Exchange) -> Self {
        let exchange = if body.is_end_stream() {
            exchange.complete();
            None
        } else {
            Some(exchange)
        };
        Self(Kind::Tcp(Tcp {
            body: Incoming::new(body, None),
            stall: None,
            exchange,
            end: None,
        }))
    }

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
        stream: h3::client::RequestStream<RecvStream, Payload>,
        length: Option<u64>,
        exchange: Exchange,
    ) -> Self {
        Self(Kind::Response(Box::new(Quic {
            stream,
            part: Part::Data,
            left: length,
            stall: None,
            exchange: Some(exchange),
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
            Kind::Empty => Poll::Ready(None),
            Kind::Tcp(body) => body.poll_frame(cx),
            Kind::Request(body) => body.poll_frame(cx),
            Kind::Response(body) => body.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Empty => true,
            Kind::Tcp(tcp) => tcp.body.is_end_stream(),
            Kind::Request(body) => body.part == Part::Nothing,
            Kind::Response(body) => body.part == Part::Nothing,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Tcp(tcp) => tcp.body.size_hint(),
            Kind::Request(body) => body.size_hint(),
            Kind::Response(body) => body.size_hint(),
        }
    }
}

impl Stall {
    fn new(time: Duration) -> Self {
        Self {
            timer: None,
            waits: Waits::No,
            time,
        }
    }

    /// Returns the error when nothing came for too long. The time counts while the reader waits: one that
    /// waits is polled when the timer ends, so that one which comes later did something else meanwhile.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<BodyError> {
        let time = self.time;
        let timer = &mut self.timer;
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
        if self.waits == Waits::No {
            self.waits = Waits::Yes;
            timer.as_mut().reset(Instant::now() + time);
        }
        ready!(timer.as_mut().poll(cx));
        let now = Instant::now();
        if now.saturating_duration_since(timer.deadline()) <= time / LATE {
            return Poll::Ready(BodyError::Stalled(time));
        }
        timer.as_mut().reset(now + time);
        timer.as_mut().poll(cx).map(|()| BodyError::Stalled(time))
    }

    /// Notes that something came. The time starts when the reader asks for more.
    fn on_news(&mut self) {
        self.waits = Waits::No;
    }
}

impl Tcp {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = self.body.poll_frame(cx);
        let Poll::Ready(frame) = polled else {
            let Some(stall) = &mut self.stall else {
                return Poll::Pending;
            };
            return stall.poll(cx).map(|error| Some(Err(error)));
        };
        if let Some(stall) = &mut self.stall {
            stall.on_news();
        }
        if !matches!(frame, Some(Ok(_))) {
            self.end = None;
        }
        match (&frame, &mut self.exchange) {
            (None, exchange) => exchange.take().map_or((), Exchange::complete),
            (Some(Err(_)), exchange) => *exchange = None,
            (Some(Ok(_)), _) => {}
        }
        Poll::Ready(frame.map(|frame| frame.map_err(|error| BodyError::Tcp(error.into()))))
    }
}

impl<S: Stream> Quic<S> {
    fn poll_frame(
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

    fn size_hint(&self) -> SizeHint {
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
                    return Poll::Ready(Some(Err(BodyError::Quic(error.into()))));
                }
            }
        }
        if self.part == Part::Trailers {
            let trailers = ready!(self.stream.poll_trailers(cx));
            self.part = Part::Nothing;
            let frame = trailers.map(|trailers| trailers.map(Frame::trailers));
            let frame = frame.map_err(|error| BodyError::Quic(error.into()));
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

    /// Reads no more of the body, and tells the client why.
    fn fail(&mut self, code: Code) {
        self.part = Part::Nothing;
        self.left = None;
        self.stream.stop(code);
    }
}

impl<S: Stream> Drop for Quic<S> {
    /// Tells the peer that the rest of the body is not needed: a client's request ends without an error then
    /// (RFC 9114 §4.1), a server's response is cancelled.
    fn drop(&mut self) {
        let code = if self.exchange.is_some() {
            Code::H3_REQUEST_CANCELLED
        } else {
            Code::H3_NO_ERROR
        };
        self.stream.stop(code);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn is_stalled(stall: &mut Stall) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        stall.poll(&mut cx).is_ready()
    }

    /// A service that works on what it has, and then asks for more, finds a client that had no reason to send.
    #[tokio::test(start_paused = true)]
    async fn the_stall_time_runs_only_while_the_body_is_waited_for() {
        let mut stall = Stall::new(MINUTE);
        for _ in 0..3 {
            assert!(!is_stalled(&mut stall));
            stall.on_news();
            tokio::time::advance(2 * MINUTE).await;
        }
        // It waits, gives up, and comes back.
        assert!(!is_stalled(&mut stall));
        tokio::time::advance(2 * MINUTE).await;
        for _ in 0..59 {
            assert!(!is_stalled(&mut stall));
            tokio::time::advance(MINUTE / 60).await;
        }
        assert!(!is_stalled(&mut stall));
        tokio::time::advance(MINUTE / 59).await;
        assert!(is_stalled(&mut stall));
    }

    #[test]
    fn a_length_is_digits_and_one_number() {
        let read = |values: &[&'static str]| {
            let mut fields = HeaderMap::new();
            for value in values {
                fields.append(CONTENT_LENGTH, http::HeaderValue::from_static(value));
            }
            length(&fields)
        };
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&["17"]), Ok(Some(17)));
        assert_eq!(read(&["17", "17"]), Ok(Some(17)));
        for wrong in [
            &["17", "18"][..],
            &["+1"],
            &["-1"],
            &["1 2"],
            &[""],
            &["0x10"],
            &["18446744073709551616"],
        ] {
            assert_eq!(read(wrong), Err(BadLength), "{wrong:?}");
        }
    }
}
