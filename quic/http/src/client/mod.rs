//! Clients of HTTP/3, HTTP/2 and HTTP/1.1.

mod builder;
mod connections;
mod error;
mod exchange;
mod http3;
mod origin;
mod outgoing;
mod tcp;

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Empty;
use hybriq::{ClientConfig, error::ConfigError, stats::Census};
use tower_service::Service;

pub use self::{
    builder::ClientBuilder,
    connections::{Http3, OfferedHosts},
    error::{ClientError, ErrorCode, QuicError},
};
use self::{connections::Shared, error::BoxError, exchange::Sender, outgoing::Outgoing};
use crate::Body;

/// A client of HTTP/3, HTTP/2 and HTTP/1.1, which reuses connections. Clones share them.
///
/// The client is a service of [`tower`](https://docs.rs/tower): layers add what it leaves out: redirects,
/// cookies, timeouts of whole requests, compression. It belongs to the tokio runtime that sends its first
/// request over QUIC.
///
/// # Versions
/// [`Http3`] says how HTTP/3 is found. By default the first request to a server goes over HTTP/2 or HTTP/1.1. If
/// the answer offers HTTP/3 by `alt-svc`, a connection over QUIC is made beside the next requests, and later
/// ones use it. When there is no connection, QUIC is tried first, and TCP too when there is no answer after
/// [`ClientBuilder::attempt_delay`]. Where HTTP/3 fails and TCP works, HTTP/3 is left out for 5 minutes, and
/// longer with each failure. [`OfferedHosts`] has the rules for what a server may offer.
///
/// # Requests that are sent again
/// A request is sent again, up to three times, if the server has not processed it: the server refused it or
/// announced its end (RFC 9114 §5.2), refused 0-RTT data, or answered 425 to early data (RFC 8470) or 421 in
/// the place of an alternative (RFC 7838). If a connection is lost before the response, idempotent requests
/// are sent again (RFC 9110 §9.2.2). A body can be sent again if at most its first 64 KiB were sent.
///
/// # Security
/// With [`ClientConfig::offer_early_data`], requests with the methods GET, HEAD, OPTIONS and TRACE and without a
/// body leave in 0-RTT packets. An attacker can replay them: a server must not change anything for them.
///
/// # Examples
/// ```no_run
/// use hybriq::ClientConfig;
/// use hybriq_http::{Client, Peer};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::new(ClientConfig::new())?;
/// let response = client.get("https://example.com/").await?;
/// if let Some(peer) = response.extensions().get::<Peer>() {
///     println!("{} over {:?}, with {}", response.status(), peer.version, peer.tls);
/// }
/// let page = response.into_body().bytes(1 << 20).await?;
/// # Ok(())
/// # }
/// ```
///
/// With other settings:
/// ```
/// use hybriq::{ClientConfig, KeyExchange};
/// use hybriq_http::{Client, Http3};
///
/// # fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let config = ClientConfig::new().key_exchange(KeyExchange::RequirePostQuantum);
/// let client = Client::builder().http3(Http3::First).build(config)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Shared>);

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// Makes a client with default settings.
    ///
    /// # Errors
    /// Names the option of the configuration that cannot be used.
    pub fn new(config: ClientConfig) -> Result<Self, ConfigError> {
        Self::builder().build(config)
    }

    /// Returns a builder, for other settings.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    fn of(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    /// Asks for a resource by GET.
    ///
    /// # Errors
    /// There is no response; each [`ClientError`] says what to do. A response of any status is no error.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub fn get(&self, uri: impl TryInto<Uri, Error: Into<http::Error>>) -> ResponseFuture {
        match uri.try_into() {
            Ok(uri) => {
                let mut request = Request::new(Empty::<Bytes>::new());
                *request.uri_mut() = uri;
                self.request(request)
            }
            Err(error) => {
                let error: http::Error = error.into();
                ResponseFuture::failed(ClientError::InvalidUri(error.to_string()))
            }
        }
    }

    /// Sends a request. Its URI has the scheme https, host, port and path.
    ///
    /// # Errors
    /// There is no response; each [`ClientError`] says what to do. A response of any status is no error.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request, which the server may have processed.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn run(client: hybriq_http::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let request = http::Request::post("https://example.com/form")
    ///     .header("content-type", "application/x-www-form-urlencoded")
    ///     .body("name=value".to_owned())?;
    /// let response = client.request(request).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn request<B>(&self, request: Request<B>) -> ResponseFuture
    where
        B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let (parts, body) = request.into_parts();
        match Sender::new(self.0.clone(), parts, Outgoing::new(body)) {
            Ok(sender) => ResponseFuture(Box::pin(sender.send())),
            Err(error) => ResponseFuture::failed(error),
        }
    }

    /// Closes connections that no request uses.
    pub fn close_idle(&self) {
        self.0.pool.end_idle();
    }

    /// Returns what the client holds, table by table: servers and their connections, requests under way and
    /// bodies that are sent beside their responses, attempts to connect, and alternatives (RFC 7838).
    /// Connections without requests end by themselves, and nothing but servers and alternatives is left then:
    /// the memory of the client, which [`ClientBuilder`] bounds.
    pub fn census(&self) -> Census {
        let mut census = Census::default();
        self.0.pool.census(&mut census);
        let idle = &self.0.tcp.idle;
        census.add("idle connections", idle.count(), 0);
        census.add("uploads", idle.uploads(), 0);
        census
    }

    /// Tells the client that the machine has moved to another network. New requests use new connections, and
    /// offers of HTTP/3 are forgotten that do not say that they persist (RFC 7838 §2.2). Connections over QUIC
    /// with requests under way move along, if their servers allow it.
    ///
    /// # Errors
    /// No socket can be opened in the new network.
    pub fn on_network_change(&self) -> Result<(), hybriq::EndpointError> {
        self.0.pool.on_network_change();
        self.0.quic.rebind()
    }
}

/// Response that a [`Client`] waits for. Dropping it cancels the request.
#[must_use = "the request is sent when this is polled"]
pub struct ResponseFuture(
    Pin<Box<dyn Future<Output = Result<Response<Body>, ClientError>> + Send>>,
);

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

impl ResponseFuture {
    fn failed(error: ClientError) -> Self {
        Self(Box::pin(std::future::ready(Err(error))))
    }
}

impl Future for ResponseFuture {
    type Output = Result<Response<Body>, ClientError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl<B> Service<Request<B>> for Client
where
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = ClientError;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture {
        self.request(request)
    }
}
