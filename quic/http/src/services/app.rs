//! What a server needs of tower services.

use std::{
    error::Error,
    future::poll_fn,
    net::SocketAddr,
    sync::{Mutex, PoisonError},
};

use http::{Request, Response};
use tower_service::Service;

use crate::{Body, Peer};

/// Any error.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// A service that answers requests.
pub(crate) trait App: Clone + Send + Sync + 'static {
    /// Body of the responses.
    type Body: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static;

    /// Answers a request.
    fn answer(
        self,
        request: Request<Body>,
    ) -> impl Future<Output = Result<Response<Self::Body>, BoxError>> + Send;
}

/// A service that is cloned for each request. The lock makes it `Sync`, which services need not be; each connection
/// has its own, so nobody waits for it.
struct Original<S>(Mutex<S>);

impl<S> Original<S> {
    fn into_inner(self) -> S {
        let Self(service) = self;
        service.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Clone> Clone for Original<S> {
    fn clone(&self) -> Self {
        let service = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Self(Mutex::new(service.clone()))
    }
}

/// A tower service.
#[derive(Clone)]
pub(crate) struct Tower<S: Clone>(Original<S>);

/// A service that makes services for the addresses of clients.
#[derive(Clone)]
pub(crate) struct Makes<M: Clone>(Original<M>);

impl<S: Clone> Tower<S> {
    pub(crate) fn new(service: S) -> Self {
        Self(Original(Mutex::new(service)))
    }
}

impl<M: Clone> Makes<M> {
    pub(crate) fn new(make: M) -> Self {
        Self(Original(Mutex::new(make)))
    }
}

/// Calls a service once it is ready.
async fn call<S, Q>(mut service: S, request: Q) -> Result<S::Response, BoxError>
where
    S: Service<Q, Error: Into<BoxError>>,
{
    let ready = poll_fn(|cx| service.poll_ready(cx)).await;
    ready.map_err(Into::into)?;
    service.call(request).await.map_err(Into::into)
}

impl<S, B> App for Tower<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + 'static,
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    type Body = B;

    fn answer(
        self,
        request: Request<Body>,
    ) -> impl Future<Output = Result<Response<B>, BoxError>> + Send {
        let Self(service) = self;
        call(service.into_inner(), request)
    }
}

impl<M, S, B> App for Makes<M>
where
    M: Service<SocketAddr, Response = S, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + 'static,
    S: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>, Future: Send>
        + Send
        + 'static,
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    type Body = B;

    async fn answer(self, request: Request<Body>) -> Result<Response<B>, BoxError> {
        let Self(make) = self;
        let peer = request.extensions().get::<Peer>();
        let address = peer.map(|peer| peer.address);
        let address = address.ok_or("a request without the address of its client")?;
        let service = call(make.into_inner(), address).await?;
        call(service, request).await
    }
}
