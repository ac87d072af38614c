//! A layer that sets the time for which the exchanges of routes may make no progress.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::limits::Patience;

/// Shortest time: with a shorter one, hardly any exchange would come to its end.
const LEAST: Duration = Duration::from_millis(10);

/// A [`tower`](https://docs.rs/tower) layer that replaces [`Limits::stall_time`](crate::Limits::stall_time) for the
/// requests of routes, over all versions of HTTP.
///
/// The server checks responses as often as its own limits require, so it may notice late that a shorter time has
/// passed. Connections whose client has disappeared end as before.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use axum::{Router, routing::get};
/// use hybriq_http::StallTime;
///
/// let news = Router::new()
///     .route("/news", get(async || "comes now and then"))
///     .layer(StallTime::none());
/// let app: Router = Router::new()
///     .route("/", get(async || "comes at once"))
///     .layer(StallTime::new(Duration::from_secs(10)))
///     .merge(news);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StallTime(Option<Duration>);

/// The service of a [`StallTime`] layer.
#[derive(Clone, Debug)]
pub struct StallTimed<S> {
    service: S,
    time: StallTime,
}

pin_project! {
    /// The future of a [`StallTimed`] service.
    pub struct StallTimedFuture<U> {
        #[pin]
        future: U,
        time: StallTime,
    }
}

impl<U> fmt::Debug for StallTimedFuture<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StallTimedFuture").finish_non_exhaustive()
    }
}

impl StallTime {
    /// Sets the time for which requests and responses may make no progress. Times below 10 ms count as 10 ms, and those
    /// above a year as a year.
    #[must_use]
    pub fn new(time: Duration) -> Self {
        Self(Some(time.max(LEAST)))
    }

    /// Sets no limit to this time. Clients may then hold what a request takes for as long as they want, except
    /// for [`Limits::memory`](crate::Limits::memory).
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }

    /// Applies the time that a layer has given a response, if one has, instead of the `usual` one.
    pub(crate) fn apply<R>(
        response: &Response<R>,
        patience: &mut Option<Arc<Patience>>,
        usual: Duration,
    ) {
        if let Some(Self(time)) = response.extensions().get() {
            let patience = patience.get_or_insert_with(|| Patience::new(usual));
            patience.set(*time);
        }
    }
}

impl<S> Layer<S> for StallTime {
    type Service = StallTimed<S>;

    fn layer(&self, service: S) -> Self::Service {
        StallTimed {
            service,
            time: *self,
        }
    }
}

impl<S, Q, R> Service<Request<Q>> for StallTimed<S>
where
    S: Service<Request<Q>, Response = Response<R>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = StallTimedFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        if let Some(patience) = request.extensions().get::<Arc<Patience>>() {
            patience.set(self.time.0);
        }
        StallTimedFuture {
            future: self.service.call(request),
            time: self.time,
        }
    }
}

impl<U, R, E> Future for StallTimedFuture<U>
where
    U: Future<Output = Result<Response<R>, E>>,
{
    type Output = U::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<U::Output> {
        let this = self.project();
        let mut answer = ready!(this.future.poll(cx));
        if let Ok(response) = &mut answer {
            // The server finds it there. An inner layer knows its routes better.
            response.extensions_mut().get_or_insert_with(|| *this.time);
        }
        Poll::Ready(answer)
    }
}
