//! What a server needs of tower services.

use std::{
    error::Error,
    net::SocketAddr,
    pin::Pin,
    sync::{Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use pin_project_lite::pin_project;
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
/// has its own, so no task waits for it.
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

pin_project! {
    /// The call of a service once it is ready: a future that moves the request once.
    #[project = CallProjection]
    enum Call<S, Q, F> {
        /// The service is not ready.
        Waits {
            service: S,
            request: Option<Q>,
        },
        Runs {
            #[pin]
            answer: F,
        },
    }
}

impl<S: Service<Q>, Q> Call<S, Q, S::Future> {
    fn new(service: S, request: Q) -> Self {
        Self::Waits {
            service,
            request: Some(request),
        }
    }
}

impl<S, Q> Future for Call<S, Q, S::Future>
where
    S: Service<Q, Error: Into<BoxError>>,
{
    type Output = Result<S::Response, BoxError>;

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
        Call::new(service.into_inner(), request)
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
        let service = Call::new(make.into_inner(), address).await?;
        Call::new(service, request).await
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        future::{Ready, ready},
    };

    use super::*;

    /// A service that is ready when it is asked for the second time.
    #[derive(Default)]
    struct Later {
        asked: u32,
    }

    impl Service<()> for Later {
        type Response = u32;
        type Error = Infallible;
        type Future = Ready<Result<u32, Infallible>>;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            self.asked += 1;
            cx.waker().wake_by_ref();
            if self.asked < 2 {
                Poll::Pending
            } else {
                Poll::Ready(Ok(()))
            }
        }

        fn call(&mut self, (): ()) -> Self::Future {
            ready(Ok(self.asked))
        }
    }

    #[tokio::test]
    async fn a_service_is_called_when_it_is_ready() {
        let asked = Call::new(Later::default(), ()).await.ok();
        assert_eq!(asked, Some(2));
    }
}
