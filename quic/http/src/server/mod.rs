//! Servers.

mod builder;
mod clock;
mod connections;
mod fields;
mod handle;
mod http3;
mod state;
mod tcp;

use std::{
    convert::Infallible,
    error::Error,
    future::pending,
    net::{SocketAddr, ToSocketAddrs},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_util::future::join_all;
use http::{Request, Response};
use hybriq::ServerConfig;
use pin_project_lite::pin_project;
use tokio::net::TcpListener;
use tower_service::Service;

use self::state::{Phase, Shared};
use crate::Body;
pub use builder::{AltSvc, BindError, ServerBuilder, WorstCaseMemory};
pub use connections::{Misdirected, ProxyNetworkError, ProxyProtocol};
pub use handle::Handle;

/// A server for HTTP/1.1, HTTP/2 and HTTP/3 on one port number.
///
/// # Examples
/// See the [crate](crate)'s documentation.
pub struct Server {
    shared: Arc<Shared>,
    tcp: Vec<Arc<TcpListener>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl Server {
    /// Creates a server that listens on an address over TCP and UDP. Port 0 picks a port that is free for both.
    ///
    /// The application protocols of the configuration are replaced by those of HTTP. [`ServerConfig::tls`] chooses the
    /// TLS library of QUIC; over TCP it is always rustls.
    ///
    /// # Errors
    /// The configuration or the address cannot be used, or there is no tokio runtime. Each
    /// [`BindError`] says what to do.
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    pub fn bind(address: impl ToSocketAddrs, config: ServerConfig) -> Result<Self, BindError> {
        Self::builder().bind(address, config)
    }

    /// Returns a builder for other settings.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Returns the address that the server listens on.
    pub fn local_address(&self) -> SocketAddr {
        self.shared.endpoint.local_address()
    }

    /// Returns a handle that can shut the server down and change its configuration.
    pub fn handle(&self) -> Handle {
        Handle::new(self.shared.clone())
    }

    /// Serves requests with a service until the server is [shut down](Handle::shutdown), or until a
    /// [successor](Handle::hand_over) has taken over and the clients have left.
    ///
    /// Each connection gets a clone of the service, and each request its own task: requests over QUIC run beside the
    /// worker of their connection ([`hybriq::Connection::spawn`]). If the client gives up a request, its future is
    /// dropped.
    ///
    /// # Cancel safety
    /// Dropping the future stops accepting connections; existing connections continue.
    pub async fn serve<S, B>(self, service: S)
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
        S::Future: Send,
        B: http_body::Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        let app = Tower(service);
        // Dropped after the listeners.
        let listening = self.shared.listening.subscribe();
        let Self { shared, tcp } = self;
        shared.watch.begin();
        let over_tcp = join_all(
            tcp.iter()
                .map(|listener| tcp::accept(&shared, listener, &app)),
        );
        let over_quic = async {
            http3::accept(&shared, &app).await;
            if shared.endpoint.has_successor() && shared.begin(Phase::Leaving) {
                shared.watch.ask_to_leave();
            }
        };
        tokio::join!(over_tcp, over_quic);
        // A further successor needs the listeners if the first one ends early.
        let closed = async {
            shared.phase(Phase::Draining).await;
            drop((tcp, listening));
            pending::<Infallible>().await
        };
        tokio::select! {
            () = shared.ended() => {}
            never = closed => match never {},
        }
    }
}

/// Any error.
pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// A service that answers requests: what a server needs of a tower service.
pub(super) trait App: Clone + Send + Sync + 'static {
    /// Body of the responses.
    type Body: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static;

    /// Answers a request.
    fn answer(
        self,
        request: Request<Body>,
    ) -> impl Future<Output = Result<Response<Self::Body>, BoxError>> + Send;
}

/// A tower service.
#[derive(Clone)]
pub(super) struct Tower<S>(pub(super) S);

impl<S, B> App for Tower<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    type Body = B;

    fn answer(
        self,
        request: Request<Body>,
    ) -> impl Future<Output = Result<Response<B>, BoxError>> + Send {
        let Self(service) = self;
        Call::Waits {
            service,
            request: Some(request),
        }
    }
}

pin_project! {
    /// The call of a service: a future that moves the request once.
    #[project = CallProjection]
    enum Call<S, F> {
        /// The service is not ready.
        Waits {
            service: S,
            request: Option<Request<Body>>,
        },
        Runs {
            #[pin]
            answer: F,
        },
    }
}

impl<S, B> Future for Call<S, S::Future>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
{
    type Output = Result<Response<B>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let CallProjection::Waits { service, request } = self.as_mut().project() {
            if let Err(error) = ready!(service.poll_ready(cx)) {
                return Poll::Ready(Err(error.into()));
            }
            let Some(request) = request.take() else {
                return Poll::Pending;
            };
            let answer = service.call(request);
            self.set(Self::Runs { answer });
        }
        match self.project() {
            CallProjection::Runs { answer } => answer.poll(cx).map_err(Into::into),
            CallProjection::Waits { .. } => Poll::Pending,
        }
    }
}
