//! The layer that makes a server a proxy.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version,
    header::{CONNECTION, UPGRADE},
};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::{
    CAPSULE_PROTOCOL, PROTOCOL, PROXY_STATUS,
    relay::{self, Allow, Decision, Limits, ProxyStats, Refusal, Relays, Resolve},
    target::{Target, TargetError},
    template::Template,
    tunnel::UdpTunnel,
};
use crate::{Peer, Upgrade};

/// A layer that answers requests for UDP proxying (RFC 9298) and passes all others on. Clones share their limits and
/// counters. The server must [allow](crate::ServerBuilder::connect_udp) the requests; otherwise, they are passed on as well.
///
/// A request that is refused gets a status and the type of the error in `proxy-status` (RFC 9209):
///
/// | status | `error` | reason |
/// |---|---|---|
/// | 400 | `http_request_error` | the target is malformed |
/// | 403 | `destination_ip_prohibited` | the function denies all of its addresses |
/// | 502 | `dns_error` | the name cannot be resolved |
/// | 504 | `dns_timeout` | it was not resolved in time |
/// | 502 | `destination_ip_unroutable` | there is no route to it |
/// | 503 | `connection_limit_reached` | there are too many tunnels or lookups: see [`Limits`] |
/// | 500 | `proxy_internal_error` | there is no room for another socket |
///
/// # Examples
/// See the [module](super).
#[derive(Clone)]
pub struct Proxy {
    allow: Arc<Allow>,
    resolve: Arc<Resolve>,
    template: Template,
    relays: Arc<Relays>,
}

/// A service with a [`Proxy`] around it.
#[derive(Clone, Debug)]
pub struct ProxyService<S> {
    service: S,
    proxy: Proxy,
}

type Head = (StatusCode, HeaderMap);

pin_project! {
    /// The future of a [`ProxyService`].
    pub struct ProxyFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProjected]
    enum State<F> {
        Passed { #[pin] future: F },
        Answered { head: Pin<Box<dyn Future<Output = Head> + Send>> },
    }
}

/// A request for a tunnel.
struct Asked {
    upgrade: Upgrade,
    target: Result<Target, TargetError>,
    peer: Option<Peer>,
    version: Version,
}

impl Proxy {
    /// Creates a proxy with a function that decides on each target: it gets the target as the client names it, one of
    /// the addresses to which it was resolved, and the client. The first address that it allows is used; IPv4 addresses
    /// in IPv6 addresses are unwrapped first.
    ///
    /// # Security
    /// Decide by the address, not by the name alone: the owner of a name can let it point anywhere.
    pub fn new<F>(allow: F) -> Self
    where
        F: Fn(&Target, SocketAddr, &Peer) -> Decision + Send + Sync + 'static,
    {
        Self {
            allow: Arc::new(allow),
            resolve: Arc::new(relay::resolve),
            template: Template::any_host(),
            relays: Arc::new(Relays::new(Limits::default())),
        }
    }

    /// Sets the limits on tunnels. Earlier clones keep theirs.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.relays = Arc::new(Relays::new(limits));
        self
    }

    /// Sets the template of the proxy, of which only the path and query are used. Default: that of
    /// [`Template::well_known`].
    #[must_use]
    pub fn template(mut self, template: Template) -> Self {
        self.template = template;
        self
    }

    /// Sets the function that resolves names. Its future is dropped if it takes too long. Default: the resolver of the
    /// system.
    #[must_use]
    pub fn resolver<F, R>(mut self, resolve: F) -> Self
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = std::io::Result<Vec<IpAddr>>> + Send + 'static,
    {
        self.resolve = Arc::new(move |name, lookup| {
            let found = resolve(name);
            Box::pin(async move {
                let _lookup = lookup;
                found.await
            })
        });
        self
    }

    /// Returns the counters of the proxy. Payloads that a tunnel dropped are counted when it ends.
    pub fn stats(&self) -> ProxyStats {
        self.relays.stats()
    }

    /// Returns what a request asks for, if that is a tunnel of this proxy.
    fn asked<B>(&self, request: &Request<B>) -> Option<Asked> {
        let upgrade = request.extensions().get::<Upgrade>()?;
        let (version, method) = (request.version(), request.method());
        let is_asked = method
            == (if version == Version::HTTP_11 {
                Method::GET
            } else {
                Method::CONNECT
            });
        if !is_asked || !upgrade.protocol().eq_ignore_ascii_case(PROTOCOL) {
            return None;
        }
        let path = request.uri().path_and_query()?;
        Some(Asked {
            upgrade: upgrade.clone(),
            target: self.template.target(path.as_str())?,
            peer: request.extensions().get::<Peer>().cloned(),
            version,
        })
    }

    /// Answers a request for a tunnel, and begins it.
    async fn answer(self, asked: Asked) -> Head {
        let opened = match (&asked.target, &asked.peer) {
            (Ok(target), Some(peer)) => {
                let open = self.relays.open(target, peer, &*self.allow, &self.resolve);
                open.await
            }
            (Err(error), _) => {
                tracing::debug!(%error, "a request for a tunnel has no target");
                Err(Refusal::Target)
            }
            (_, None) => {
                tracing::error!("masque::Proxy needs a hybriq_http::Server around it");
                return (StatusCode::INTERNAL_SERVER_ERROR, HeaderMap::new());
            }
        };
        let (place, socket) = match opened {
            Ok(opened) => opened,
            Err(refusal) => {
                self.relays.on_refused();
                return refused(refusal);
            }
        };
        let (upgrade, queue) = (asked.upgrade, self.relays.limits.queue);
        tokio::spawn(async move {
            let flow = upgrade.take_datagrams();
            match upgrade.upgraded().await {
                Ok(stream) => {
                    let tunnel = UdpTunnel::start(stream, flow, queue, None);
                    relay::relay(&place, &tunnel, &socket).await;
                }
                Err(error) => tracing::debug!(%error, "a tunnel did not begin"),
            }
        });
        agreed(asked.version)
    }
}

/// Returns the head of a response that refuses.
fn refused(refusal: Refusal) -> Head {
    let (status, error) = refusal.head();
    let mut fields = HeaderMap::new();
    if let Ok(value) = HeaderValue::try_from(format!("hybriq; error={error}")) {
        fields.insert(PROXY_STATUS, value);
    }
    (status, fields)
}

/// Returns the head of a response that agrees (RFC 9298 §3.3, §3.5).
fn agreed(version: Version) -> Head {
    let mut fields = HeaderMap::new();
    fields.insert(CAPSULE_PROTOCOL, HeaderValue::from_static("?1"));
    if version != Version::HTTP_11 {
        return (StatusCode::OK, fields);
    }
    fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    fields.insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
    (StatusCode::SWITCHING_PROTOCOLS, fields)
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("template", &self.template)
            .field("limits", &self.relays.limits)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for Proxy {
    type Service = ProxyService<S>;

    fn layer(&self, service: S) -> Self::Service {
        let proxy = self.clone();
        ProxyService { service, proxy }
    }
}

impl<S, Q, R: Default> Service<Request<Q>> for ProxyService<S>
where
    S: Service<Request<Q>, Response = Response<R>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ProxyFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let state = match self.proxy.asked(&request) {
            None => State::Passed {
                future: self.service.call(request),
            },
            Some(asked) => State::Answered {
                head: Box::pin(self.proxy.clone().answer(asked)),
            },
        };
        ProxyFuture { state }
    }
}

impl<F, R: Default, E> Future for ProxyFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project().state.project() {
            StateProjected::Passed { future } => future.poll(cx),
            StateProjected::Answered { head } => head.as_mut().poll(cx).map(|(status, fields)| {
                let mut response = Response::new(R::default());
                *response.status_mut() = status;
                *response.headers_mut() = fields;
                Ok(response)
            }),
        }
    }
}

impl<F> fmt::Debug for ProxyFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyFuture").finish_non_exhaustive()
    }
}
