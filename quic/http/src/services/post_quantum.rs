//! A layer that demands post-quantum connections of routes.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode, Version,
    header::{CONNECTION, CONTENT_TYPE, UPGRADE},
};
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use crate::Peer;

/// Shortest time between two warnings.
const WARNING_PAUSE: Duration = Duration::from_secs(1);

/// A [`tower`](https://docs.rs/tower) layer for routes whose requests should come over post-quantum connections, as
/// [`Tls::is_post_quantum`](crate::Tls::is_post_quantum) defines them. The policy of the whole server is
/// [`ServerConfig::key_exchange`](hybriq::ServerConfig::key_exchange).
///
/// A request in 0-RTT packets arrives before the outcome of the handshake is known. [`require`](Self::require) answers
/// it with status 425, and the client repeats it after the handshake (RFC 8470 §5.2); the others let it pass.
///
/// # Examples
/// ```
/// use axum::{Router, routing::get};
/// use hybriq_http::{PostQuantum, Refusal};
///
/// let secret = Router::new()
///     .route("/secret", get(async || "for few"))
///     .layer(PostQuantum::require().refusal(Refusal::Forbidden));
/// let app: Router = Router::new()
///     .route("/", get(async || "for all"))
///     .layer(PostQuantum::warn())
///     .merge(secret);
/// ```
#[derive(Clone)]
pub struct PostQuantum {
    rule: Rule,
}

#[derive(Clone)]
enum Rule {
    Observe(Arc<dyn Fn(&Peer) + Send + Sync>),
    Warn(Arc<Mutex<Warnings>>),
    Require(Refusal),
}

/// Requests that [`PostQuantum::warn`] has seen.
#[derive(Default)]
struct Warnings {
    last: Option<Instant>,
    /// Number since the last warning.
    requests: u64,
}

/// How [`PostQuantum::require`] answers requests over other connections. Requests of gRPC get status 200 with
/// `grpc-status` 9 (`FAILED_PRECONDITION`) instead, as its clients expect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Status 421 (RFC 9110 §15.5.20): clients may repeat the request on another connection.
    #[default]
    Misdirected,
    /// Status 426 (RFC 9110 §15.5.22). Over HTTP/1.1 with `upgrade: TLS/1.3`; later versions have no such field.
    UpgradeRequired,
    /// Status 403 (RFC 9110 §15.5.4).
    Forbidden,
}

/// The service of a [`PostQuantum`] layer.
#[derive(Clone, Debug)]
pub struct PostQuantumService<S> {
    service: S,
    policy: PostQuantum,
}

pin_project! {
    /// The future of a [`PostQuantumService`].
    pub struct PostQuantumFuture<U> {
        #[pin]
        state: State<U>,
    }
}

pin_project! {
    #[project = StateProjected]
    enum State<U> {
        Served { #[pin] future: U },
        Refused { head: Option<(StatusCode, HeaderMap)> },
    }
}

impl PostQuantum {
    /// Calls a function with the connection of each request that is not post-quantum, and serves the request. The
    /// function runs on the task of the request, so it must not block.
    #[must_use]
    pub fn observe(observer: impl Fn(&Peer) + Send + Sync + 'static) -> Self {
        let rule = Rule::Observe(Arc::new(observer));
        Self { rule }
    }

    /// Logs requests over connections that are not post-quantum with `tracing`, at most once a second with their
    /// number, and serves them.
    #[must_use]
    pub fn warn() -> Self {
        let rule = Rule::Warn(Arc::default());
        Self { rule }
    }

    /// Refuses requests over connections that are not post-quantum, and those without a [`Peer`], with
    /// [`Refusal::Misdirected`] unless another is [set](Self::refusal).
    #[must_use]
    pub fn require() -> Self {
        let rule = Rule::Require(Refusal::default());
        Self { rule }
    }

    /// Sets how requests are refused, which makes the layer one that [requires](Self::require).
    #[must_use]
    pub fn refusal(mut self, refusal: Refusal) -> Self {
        self.rule = Rule::Require(refusal);
        self
    }

    /// Returns the head of the response to a request that is refused.
    fn check<B>(&self, request: &Request<B>) -> Option<(StatusCode, HeaderMap)> {
        let peer = request.extensions().get::<Peer>();
        if peer.is_some_and(|peer| peer.tls.is_post_quantum()) {
            return None;
        }
        let is_early = peer.is_some_and(|peer| peer.early && peer.tls.group.is_none());
        match (&self.rule, peer) {
            (Rule::Require(_), _) if is_early => Some((StatusCode::TOO_EARLY, HeaderMap::new())),
            (Rule::Require(refusal), _) => Some(refusal.head(request)),
            (Rule::Observe(observer), Some(peer)) if !is_early => {
                observer(peer);
                None
            }
            (Rule::Warn(warnings), Some(peer)) if !is_early => {
                let mut warnings = warnings.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(requests) = warnings.count(Instant::now()) {
                    drop(warnings);
                    let (address, tls) = (peer.address, &peer.tls);
                    tracing::warn!(%address, %tls, requests, "requests without post-quantum key exchange");
                }
                None
            }
            _ => None,
        }
    }
}

impl Warnings {
    /// Counts a request. Returns the number of requests since the last warning if the next one is due.
    fn count(&mut self, now: Instant) -> Option<u64> {
        self.requests += 1;
        let is_due = self
            .last
            .is_none_or(|last| now.duration_since(last) >= WARNING_PAUSE);
        is_due.then(|| {
            self.last = Some(now);
            std::mem::take(&mut self.requests)
        })
    }
}

impl Refusal {
    fn head<B>(self, request: &Request<B>) -> (StatusCode, HeaderMap) {
        let mut fields = HeaderMap::new();
        let content = request.headers().get(CONTENT_TYPE);
        let content = content.filter(|kind| kind.as_bytes().starts_with(b"application/grpc"));
        if let Some(content) = content {
            let reason = HeaderValue::from_static("the connection is not post-quantum");
            fields.insert(CONTENT_TYPE, content.clone());
            fields.insert("grpc-status", HeaderValue::from_static("9"));
            fields.insert("grpc-message", reason);
            return (StatusCode::OK, fields);
        }
        let status = match self {
            Self::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            Self::UpgradeRequired => StatusCode::UPGRADE_REQUIRED,
            Self::Forbidden => StatusCode::FORBIDDEN,
        };
        if self == Self::UpgradeRequired && request.version() == Version::HTTP_11 {
            fields.insert(UPGRADE, HeaderValue::from_static("TLS/1.3"));
            fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        }
        (status, fields)
    }
}

impl<U> fmt::Debug for PostQuantumFuture<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostQuantumFuture").finish_non_exhaustive()
    }
}

impl fmt::Debug for PostQuantum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Rule::Observe(_) => f.write_str("PostQuantum::observe"),
            Rule::Warn(_) => f.write_str("PostQuantum::warn"),
            Rule::Require(refusal) => f
                .debug_tuple("PostQuantum::require")
                .field(refusal)
                .finish(),
        }
    }
}

impl<S> Layer<S> for PostQuantum {
    type Service = PostQuantumService<S>;

    fn layer(&self, service: S) -> Self::Service {
        let policy = self.clone();
        PostQuantumService { service, policy }
    }
}

impl<S, Q, R: Default> Service<Request<Q>> for PostQuantumService<S>
where
    S: Service<Request<Q>, Response = Response<R>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = PostQuantumFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let state = match self.policy.check(&request) {
            None => State::Served {
                future: self.service.call(request),
            },
            head => State::Refused { head },
        };
        PostQuantumFuture { state }
    }
}

impl<U, R: Default, E> Future for PostQuantumFuture<U>
where
    U: Future<Output = Result<Response<R>, E>>,
{
    type Output = U::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<U::Output> {
        match self.project().state.project() {
            StateProjected::Served { future } => future.poll(cx),
            StateProjected::Refused { head } => {
                let mut response = Response::new(R::default());
                if let Some((status, fields)) = head.take() {
                    *response.status_mut() = status;
                    *response.headers_mut() = fields;
                }
                Poll::Ready(Ok(response))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hybriq::{Group, tls::Lineage};

    use super::*;
    use crate::Tls;

    /// Returns the status with which a request is refused.
    fn refused(early: bool, group: Option<Group>, lineage: Option<Lineage>) -> Option<u16> {
        let address = ([127, 0, 0, 1], 443).into();
        let tls = Tls {
            group,
            hello_retry: false,
            lineage,
            resumed: true,
            suite: None,
            server_name: None,
            alpn: None,
            client_certificates: Vec::new(),
            server_certificates: Vec::new(),
        };
        let mut request = Request::new(());
        request.extensions_mut().insert(Peer {
            address,
            local_address: address,
            version: Version::HTTP_3,
            tls: Arc::new(tls),
            early,
        });
        let refused = PostQuantum::require().check(&request);
        refused.map(|(status, _)| status.as_u16())
    }

    /// The group alone is not enough, and before the handshake is complete nothing is known.
    #[test]
    fn sessions_of_classical_lineage_are_refused() {
        let group = Some(Group::X25519MLKEM768);
        assert_eq!(refused(false, group, Some(Lineage::PostQuantum)), None);
        assert_eq!(refused(false, group, Some(Lineage::Classical)), Some(421));
        assert_eq!(refused(false, group, None), None);
        assert_eq!(refused(true, None, None), Some(425));
        let unknown = PostQuantum::require().check(&Request::new(()));
        assert_eq!(unknown.map(|(status, _)| status.as_u16()), Some(421));
    }

    #[test]
    fn warnings_are_a_second_apart() {
        let mut warnings = Warnings::default();
        let start = Instant::now();
        assert_eq!(warnings.count(start), Some(1));
        assert_eq!(warnings.count(start), None);
        assert_eq!(warnings.count(start + WARNING_PAUSE), Some(2));
    }
}
