//! The service behind a server.

use std::{error::Error, future::poll_fn};

use http::{Request, Response};
use tower_service::Service;

use crate::Body;

/// Any error.
pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// A service that answers requests: what a server needs of one of tower.
pub(super) trait App: Clone + Send + Sync + 'static {
    /// Body of the responses.
    type Body: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static;

    /// Answers a request.
    fn answer(
        self,
        request: Request<Body>,
    ) -> impl Future<Output = Result<Response<Self::Body>, BoxError>> + Send;
}

/// A service of tower.
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

    async fn answer(self, request: Request<Body>) -> Result<Response<B>, BoxError> {
        let Self(mut service) = self;
        if let Err(error) = poll_fn(|cx| service.poll_ready(cx)).await {
            return Err(error.into());
        }
        service.call(request).await.map_err(Into::into)
    }
}
