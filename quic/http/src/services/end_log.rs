//! A layer that reports when responses are over.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Buf;
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::{
    AccessEntry,
    log_layer::{Entry, Line, log_layer},
};

/// A [`tower`](https://docs.rs/tower) layer that calls a function for each request when its response is over: bytes,
/// time and outcome, for accounting and metrics. [`AccessLog`](crate::AccessLog) calls one when the response begins.
///
/// The function runs on the task of the request, so it must not block.
///
/// # Examples
/// ```
/// use axum::{Router, routing::get};
/// use hybriq_http::{EndLog, Outcome};
///
/// let log = EndLog::new(|end| {
///     if end.outcome != Outcome::Complete {
///         println!("{:?} after {} bytes and {:?}: {}", end.outcome, end.bytes, end.time, end.access);
///     }
/// });
/// let app: Router = Router::new().route("/", get(async || "hello")).layer(log);
/// ```
pub struct EndLog<F>(Arc<F>);

/// A response that is over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EndEntry {
    /// What was known when the response began. Its time is that until then.
    pub access: AccessEntry,
    /// Bytes of the body that the connection took from the service, without those of trailers.
    pub bytes: u64,
    /// Time from the request's fields to the end.
    pub time: Duration,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The connection took all of it. The last part may still be on its way to the client.
    Complete,
    /// The client gave it up, did not read it, or disappeared; or the server was shut down.
    Cancelled,
    /// The service or the body failed.
    Failed,
}

/// The service of an [`EndLog`].
#[derive(Clone, Debug)]
pub struct EndLogged<S, F> {
    service: S,
    log: EndLog<F>,
}

pin_project! {
    /// The future of an [`EndLogged`] service.
    pub struct EndLoggedFuture<U, F: Fn(&EndEntry)> {
        #[pin]
        future: U,
        line: Option<Line<EndEntry, F>>,
    }
}

pin_project! {
    /// The body of a response of an [`EndLogged`] service.
    pub struct EndLoggedBody<B, F: Fn(&EndEntry)> {
        #[pin]
        body: B,
        line: Option<Line<EndEntry, F>>,
        // Known length.
        length: Option<u64>,
    }
}

impl Entry for EndEntry {
    fn end(&mut self, time: Duration) {
        self.time = time;
    }
}

impl<U, F: Fn(&EndEntry)> fmt::Debug for EndLoggedFuture<U, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndLoggedFuture").finish_non_exhaustive()
    }
}

impl<B, F: Fn(&EndEntry)> fmt::Debug for EndLoggedBody<B, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndLoggedBody").finish_non_exhaustive()
    }
}

log_layer!(
    EndLog(EndEntry),
    EndLogged,
    "Returns a layer that calls the function for each response that is over."
);

impl<S, F, Q, R> Service<Request<Q>> for EndLogged<S, F>
where
    S: Service<Request<Q>, Response = Response<R>>,
    F: Fn(&EndEntry),
    R: Body,
{
    type Response = Response<EndLoggedBody<R, F>>;
    type Error = S::Error;
    type Future = EndLoggedFuture<S::Future, F>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let entry = EndEntry {
            access: AccessEntry::of(&request),
            bytes: 0,
            time: Duration::ZERO,
            outcome: Outcome::Cancelled,
        };
        let line = Line::new(entry, &self.log.0);
        EndLoggedFuture {
            future: self.service.call(request),
            line: Some(line),
        }
    }
}

impl<U, F, R, E> Future for EndLoggedFuture<U, F>
where
    U: Future<Output = Result<Response<R>, E>>,
    F: Fn(&EndEntry),
    R: Body,
{
    type Output = Result<Response<EndLoggedBody<R, F>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // If it panics, that stays.
        set(this.line, Some(Outcome::Failed));
        let answer = this.future.poll(cx);
        set(this.line, Some(Outcome::Cancelled));
        let answer = ready!(answer);
        let mut line = this.line.take();
        if let Some(line) = &mut line {
            line.on_answer(answer.as_ref().ok());
        }
        Poll::Ready(answer.map(|response| {
            response.map(|body| EndLoggedBody {
                length: body.size_hint().exact(),
                body,
                line,
            })
        }))
    }
}

fn set<F: Fn(&EndEntry)>(line: &mut Option<Line<EndEntry, F>>, outcome: Option<Outcome>) {
    if let Some((line, outcome)) = line.as_mut().zip(outcome) {
        line.entry.outcome = outcome;
    }
}

impl<F: Fn(&EndEntry)> Line<EndEntry, F> {
    /// Notes the answer of the service, or that it failed.
    fn on_answer<R: Body>(&mut self, response: Option<&Response<R>>) {
        let time = self.elapsed();
        let entry = &mut self.entry;
        entry.access.time = time;
        let Some(response) = response else {
            entry.outcome = Outcome::Failed;
            return;
        };
        let status = response.status();
        entry.access.status = Some(status);
        // The connection takes no content of these (RFC 9110 §6.4.1).
        let is_without_content = entry.access.method == Method::HEAD
            || entry.access.method == Method::CONNECT && status.is_success()
            || status.is_informational()
            || [
                StatusCode::NO_CONTENT,
                StatusCode::RESET_CONTENT,
                StatusCode::NOT_MODIFIED,
            ]
            .contains(&status);
        if is_without_content || response.body().is_end_stream() {
            entry.outcome = Outcome::Complete;
        }
    }
}

impl<B: Body, F: Fn(&EndEntry)> Body for EndLoggedBody<B, F> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let before = this.line.as_ref().map(|line| line.entry.outcome);
        // If it panics, that stays.
        set(this.line, Some(Outcome::Failed));
        let frame = this.body.as_mut().poll_frame(cx);
        set(this.line, before);
        let frame = ready!(frame);
        if let Some(Line { entry, .. }) = this.line {
            let data = match &frame {
                Some(Ok(frame)) => frame.data_ref().map_or(0, Buf::remaining),
                _ => 0,
            };
            entry.bytes = entry.bytes.saturating_add(data as u64);
            entry.outcome = match &frame {
                Some(Err(_)) => Outcome::Failed,
                None => Outcome::Complete,
                // Nobody may ask for more.
                Some(Ok(frame)) if frame.is_trailers() => Outcome::Complete,
                _ if this.body.is_end_stream() => Outcome::Complete,
                _ if *this.length == Some(entry.bytes) => Outcome::Complete,
                _ => entry.outcome,
            };
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B: Body + Default, F: Fn(&EndEntry)> Default for EndLoggedBody<B, F> {
    /// Returns a body that is not logged, for layers that answer themselves.
    fn default() -> Self {
        Self {
            body: B::default(),
            line: None,
            length: None,
        }
    }
}
