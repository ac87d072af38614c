//! Interim responses (1xx, RFC 9110 §15.2), which a server sends before the response of its service, and which a client
//! tells its caller.

use std::{
    fmt,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use futures_util::task::AtomicWaker;
use http::{
    HeaderMap, Response, StatusCode,
    header::{CONTENT_LENGTH, EXPECT},
};

/// Largest number of interim responses that a service may send to a request.
const MOST: usize = 16;

/// Sends interim responses (1xx, RFC 9110 §15.2) to a request before its final response, such as the resources that
/// a client should load early (103, RFC 8297). It is an extension of every request to a server with
/// [`ServerBuilder::interim_responses`](crate::ServerBuilder::interim_responses); clones serve the same request.
///
/// Interim responses exist over HTTP/1.1 and HTTP/3. Over HTTP/2 they cannot be sent, because hyper has no way to do
/// so, and HTTP/1.0 does not have them: [`InterimError::Version`]. They are only hints, so a service may ignore every
/// error.
///
/// # Examples
/// ```
/// use axum::{Extension, response::Html};
/// use http::{HeaderMap, HeaderValue, header::LINK};
/// use hybriq_http::Interim;
///
/// async fn page(Extension(interim): Extension<Interim>) -> Html<String> {
///     let mut hints = HeaderMap::new();
///     hints.insert(LINK, HeaderValue::from_static("</style.css>; rel=preload; as=style"));
///     // A client that gets no hints loads the same page.
///     let _ = interim.early_hints(hints);
///     Html(render().await)
/// }
///
/// async fn render() -> String {
///     "<link rel=stylesheet href=/style.css>".to_owned()
/// }
/// ```
#[derive(Clone)]
pub struct Interim(Option<Arc<Queue>>);

/// Reason why an interim response cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InterimError {
    /// The status is not that of an interim response, or the server sends such responses itself: 100 when the service
    /// reads the body of a request that expects it, 101 for an [`Upgrade`](crate::Upgrade).
    #[error("a service cannot send {0} as an interim response; use 102 to 199, such as 103")]
    Status(StatusCode),
    /// The version of HTTP has no interim responses, or the server cannot send them over it.
    #[error("interim responses can be sent over HTTP/1.1 and HTTP/3 only; leave them out")]
    Version,
    /// The service has returned the final response, or the client has cancelled the request.
    #[error(
        "it is too late for an interim response: the final one has begun, or the request is over"
    )]
    Late,
    /// The service has sent as many interim responses as a request may have.
    #[error("a request has at most {MOST} interim responses; send fewer")]
    TooMany,
}

/// Receives the interim responses (1xx, RFC 9110 §15.2) to a request of a [`Client`](crate::Client), such as early
/// hints (103, RFC 8297). Add it to the extensions of the request: its function is called for each of them, in order,
/// before the client returns the final response. It runs in a task of the connection, so it must not block.
///
/// This works over HTTP/1.1 and HTTP/3; over HTTP/2, hyper passes over interim responses. A request that is sent again
/// on another connection may get some of them again, and one that gets more than 16 fails
/// ([`ClientError::Interim`](crate::ClientError::Interim)).
///
/// # Examples
/// ```no_run
/// use hybriq_http::{Client, OnInterim};
///
/// # async fn run(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let hints = OnInterim::new(|interim| {
///     for link in interim.headers().get_all("link") {
///         println!("load soon: {link:?}");
///     }
/// });
/// let request = http::Request::get("https://example.com/").extension(hints);
/// let response = client.request(request.body(String::new())?).await?;
/// # drop(response);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct OnInterim(Arc<dyn Fn(Response<()>) + Send + Sync>);

impl OnInterim {
    /// Creates an extension for a request.
    pub fn new(take: impl Fn(Response<()>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    pub(crate) fn take(&self, response: Response<()>) {
        (self.0)(response);
    }
}

impl fmt::Debug for OnInterim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnInterim").finish_non_exhaustive()
    }
}

/// Returns true if the client waits for 100 before it sends the body (RFC 9110 §10.1.1).
pub(crate) fn expects_continue(fields: &HeaderMap) -> bool {
    let expected = fields.get(EXPECT);
    expected.is_some_and(|expected| expected.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// The interim responses of a request, for the connection. Once this is dropped, no more are accepted.
pub(crate) struct Interims(Arc<Queue>);

/// The answer to a client that waits before it sends the body of its request (`expect: 100-continue`, RFC 9110
/// §10.1.1).
pub(crate) struct Continue(Arc<Queue>);

/// Interim responses that wait to be sent.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    /// The task that sends them.
    task: AtomicWaker,
}

#[derive(Default)]
struct State {
    waiting: Vec<Response<()>>,
    /// Number of all that the service has sent.
    count: usize,
    is_over: bool,
}

impl fmt::Debug for Interim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interim").finish_non_exhaustive()
    }
}

impl Interim {
    /// Returns the extension for a request that has no interim responses.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// Sends a response with the status 103 and these fields (RFC 8297).
    ///
    /// # Errors
    /// The same as those of [`send`](Self::send).
    pub fn early_hints(&self, fields: HeaderMap) -> Result<(), InterimError> {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::EARLY_HINTS;
        *response.headers_mut() = fields;
        self.send(response)
    }

    /// Sends an interim response. It is sent when the service waits for something, and at the latest before the final
    /// response. Fields about content or the connection are left out, since it has neither.
    ///
    /// # Errors
    /// The response cannot be sent; each [`InterimError`] says why. A response with larger fields than the client
    /// accepts is dropped without an error.
    pub fn send(&self, mut response: Response<()>) -> Result<(), InterimError> {
        let status = response.status();
        if !status.is_informational() || status.as_u16() < 102 {
            return Err(InterimError::Status(status));
        }
        let queue = self.0.as_ref().ok_or(InterimError::Version)?;
        response.headers_mut().remove(CONTENT_LENGTH);
        let mut state = queue.state();
        if state.is_over {
            return Err(InterimError::Late);
        }
        if state.count >= MOST {
            return Err(InterimError::TooMany);
        }
        state.count += 1;
        state.waiting.push(response);
        drop(state);
        queue.task.wake();
        Ok(())
    }
}

impl Interims {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Returns the other end, for the service.
    pub(crate) fn sender(&self) -> Interim {
        Interim(Some(self.0.clone()))
    }

    /// Returns the answer to an expectation, for the body of the request.
    pub(crate) fn expected(&self) -> Continue {
        Continue(self.0.clone())
    }

    /// Waits for the next one.
    pub(crate) async fn next(&self) -> Response<()> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&self, cx: &Context<'_>) -> Poll<Response<()>> {
        self.0.task.register(cx.waker());
        let mut state = self.0.state();
        if state.waiting.is_empty() {
            return Poll::Pending;
        }
        Poll::Ready(state.waiting.remove(0))
    }

    /// Accepts no more, and returns those that wait.
    pub(crate) fn end(&self) -> Vec<Response<()>> {
        let mut state = self.0.state();
        state.is_over = true;
        std::mem::take(&mut state.waiting)
    }
}

impl Drop for Interims {
    fn drop(&mut self) {
        self.end();
    }
}

impl Continue {
    /// Tells the client to send the body, unless the final response has begun.
    pub(crate) fn send(self) {
        let Self(queue) = self;
        let mut state = queue.state();
        if state.is_over {
            return;
        }
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::CONTINUE;
        state.waiting.push(response);
        drop(state);
        queue.task.wake();
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16) -> Response<()> {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::from_u16(status).expect("a status");
        response
    }

    #[test]
    fn a_service_sends_interim_responses_alone_and_not_without_number() {
        let interims = Interims::new();
        let sender = interims.sender();
        for status in [100, 101, 200, 500] {
            let status = response(status);
            let refused = sender.send(status.clone());
            assert_eq!(refused, Err(InterimError::Status(status.status())));
        }
        assert_eq!(
            Interim::none().send(response(103)),
            Err(InterimError::Version)
        );
        for _ in 0..MOST {
            assert_eq!(sender.clone().send(response(103)), Ok(()));
        }
        assert_eq!(sender.send(response(103)), Err(InterimError::TooMany));
        assert_eq!(interims.end().len(), MOST);
        assert_eq!(sender.send(response(103)), Err(InterimError::Late));
    }

    #[tokio::test]
    async fn an_expectation_is_answered_before_the_response_alone() {
        let interims = Interims::new();
        let sender = interims.sender();
        let expected = [interims.expected(), interims.expected()];
        let [first, second] = expected;
        first.send();
        assert_eq!(interims.next().await.status(), StatusCode::CONTINUE);
        drop(interims);
        second.send();
        assert_eq!(
            sender.early_hints(HeaderMap::new()),
            Err(InterimError::Late)
        );
    }
}
