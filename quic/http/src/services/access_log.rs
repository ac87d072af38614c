//! A layer that logs each request and its outcome.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::{Method, Request, Response, StatusCode, Version};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::log_layer::{Entry, Line, log_layer};
use crate::Peer;

/// A [`tower`](https://docs.rs/tower) layer that calls a function for each request, when its response begins or when
/// the client cancels it. [`EndLog`](crate::EndLog) calls one when the response is over.
///
/// The function gets an [`AccessEntry`], which displays as one line. It runs on the task of the request, so it must
/// not block: write to a buffer or to a channel.
///
/// # Examples
/// ```
/// use axum::{Router, routing::get};
/// use hybriq_http::AccessLog;
///
/// let app: Router = Router::new()
///     .route("/", get(async || "hello"))
///     .layer(AccessLog::new(|entry| println!("{entry}")));
/// ```
pub struct AccessLog<F>(Arc<F>);

/// The service of an [`AccessLog`].
#[derive(Clone, Debug)]
pub struct Logged<S, F> {
    service: S,
    log: AccessLog<F>,
}

pin_project! {
    /// The future of a [`Logged`] service.
    pub struct LoggedFuture<U, F: Fn(&AccessEntry)> {
        #[pin]
        future: U,
        line: Line<AccessEntry, F>,
    }
}

/// An answered request. Displays as one line of `name=value` pairs; `-` stands for an unknown value. Text from the
/// client is quoted and escaped so that it cannot forge lines.
///
/// ```text
/// peer=127.0.0.1:50948 version=HTTP/3.0 method=GET path="/" status=200 micros=65 group=X25519MLKEM768 hrr=false lineage=post-quantum resumed=false early=false suite=TLS_AES_128_GCM_SHA256 sni="localhost" alpn="h3"
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AccessEntry {
    /// Method of the request.
    pub method: Method,
    /// Path of the request, without its query, which may hold secrets.
    pub path: String,
    /// Version of HTTP.
    pub version: Version,
    /// Status of the response. `None` if the client gave up the request, or the service failed.
    pub status: Option<StatusCode>,
    /// Time from the request's fields to the response's fields.
    pub time: Duration,
    /// The connection, including the outcome of its handshake. `None` if the server is not a
    /// [`Server`](crate::Server) of this crate.
    pub peer: Option<Peer>,
}

impl AccessEntry {
    /// Returns the entry of a request that has no answer.
    pub(super) fn of<Q>(request: &Request<Q>) -> Self {
        Self {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            version: request.version(),
            status: None,
            time: Duration::ZERO,
            peer: request.extensions().get::<Peer>().cloned(),
        }
    }
}

impl Entry for AccessEntry {
    fn end(&mut self, time: Duration) {
        self.time = time;
    }
}

impl<U, F: Fn(&AccessEntry)> fmt::Debug for LoggedFuture<U, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoggedFuture").finish_non_exhaustive()
    }
}

log_layer!(
    AccessLog(AccessEntry),
    Logged,
    "Returns a layer that calls the function for each request."
);

impl<S, F, Q, R> Service<Request<Q>> for Logged<S, F>
where
    S: Service<Request<Q>, Response = Response<R>>,
    F: Fn(&AccessEntry),
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = LoggedFuture<S::Future, F>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let line = Line::new(AccessEntry::of(&request), &self.log.0);
        let future = self.service.call(request);
        LoggedFuture { future, line }
    }
}

impl<U, F, R, E> Future for LoggedFuture<U, F>
where
    U: Future<Output = Result<Response<R>, E>>,
    F: Fn(&AccessEntry),
{
    type Output = U::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<U::Output> {
        let this = self.project();
        let answer = ready!(this.future.poll(cx));
        this.line.entry.status = answer.as_ref().ok().map(Response::status);
        Poll::Ready(answer)
    }
}

/// Displays a value, or `-`.
struct Known<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Known<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("-"),
        }
    }
}

impl fmt::Display for AccessEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peer = self.peer.as_ref();
        write!(
            f,
            "peer={} version={:?} method={} path={:?} status={} micros={}",
            Known(peer.map(|peer| peer.address)),
            self.version,
            self.method,
            self.path,
            Known(self.status.map(|status| status.as_u16())),
            self.time.as_micros(),
        )?;
        let Some(peer) = peer else {
            return Ok(());
        };
        let tls = &*peer.tls;
        let lineage = tls.lineage.map(|lineage| match lineage {
            hybriq::tls::Lineage::PostQuantum => "post-quantum",
            hybriq::tls::Lineage::Classical => "classical",
        });
        let sni = tls.server_name.as_ref().map(|name| format!("{name:?}"));
        let alpn = tls.alpn.as_ref();
        let alpn = alpn.map(|alpn| format!("\"{}\"", alpn.escape_ascii()));
        write!(
            f,
            " group={} hrr={} lineage={} resumed={} early={} suite={} sni={} alpn={}",
            Known(tls.group),
            tls.hello_retry,
            Known(lineage),
            tls.resumed,
            peer.early,
            Known(tls.suite),
            Known(sni),
            Known(alpn),
        )
    }
}
