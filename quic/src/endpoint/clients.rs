//! The clients of an endpoint by the trait of the crate `futures-core`.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;

use super::Endpoint;
use crate::api::incoming::Incoming;

/// The clients of an endpoint, in the order of [`Endpoint::accept`]. Holds a handle of the endpoint.
#[must_use = "it accepts nothing unless it is polled"]
pub struct Clients {
    endpoint: Endpoint,
    /// The wait for the next client.
    next: Option<Pin<Box<dyn Future<Output = Option<Incoming>> + Send>>>,
}

impl Endpoint {
    /// Returns the clients that connect, as a `Stream`: see [`accept`](Self::accept).
    pub fn clients(&self) -> Clients {
        Clients {
            endpoint: self.clone(),
            next: None,
        }
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clients").field(&self.endpoint).finish()
    }
}

impl Stream for Clients {
    type Item = Incoming;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Incoming>> {
        let this = self.get_mut();
        let next = this.next.get_or_insert_with(|| {
            let endpoint = this.endpoint.clone();
            Box::pin(async move { endpoint.accept().await })
        });
        let client = ready!(next.as_mut().poll(cx));
        this.next = None;
        Poll::Ready(client)
    }
}
