//! Clients for HTTP/3, HTTP/2 and HTTP/1.1.

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

#[cfg(feature = "https-records")]
pub use self::connections::SystemRecords;
pub use self::{
    builder::ClientBuilder,
    connections::{Http3, HttpsRecord, HttpsResolver, InvalidHttpsRecord, OfferedHosts},
    error::{ClientError, ProxyError, QuicError},
    exchange::Forward,
    tcp::{InvalidProxy, Proxy},
};
use self::{connections::Shared, error::BoxError, exchange::Sender, outgoing::Outgoing};
use crate::{Body, versions::content::Promised};

/// A client for HTTP/3, HTTP/2 and HTTP/1.1 that reuses connections. Clones share them.
///
/// The client is a [`tower`](https://docs.rs/tower) service, and layers add what it leaves out: `tower_http` follows
/// redirects (`follow_redirect`) and decompresses (`decompression`), `tower::timeout` or `tokio::time::timeout` limits
/// the time of a request, and dropping its future cancels it. Cookies need your own layer, because tower-http has none.
/// [Migration from reqwest](crate::from_reqwest) has examples. It belongs to the tokio runtime that sends its first
/// request over QUIC.
///
/// # Versions
/// [`Http3`] says when HTTP/3 is used. By default, the first request to a server goes over HTTP/2 or HTTP/1.1. If the
/// response offers HTTP/3 with `alt-svc`, the client opens a QUIC connection in parallel with the next requests, and later
/// requests use it. If there is no open connection, the client tries QUIC first, and TCP as well if there is no
/// answer after [`ClientBuilder::attempt_delay`]. If HTTP/3 fails where TCP works, it is not used for 5 minutes, and
/// for longer after each further failure. [`OfferedHosts`] lists the rules for what a server may offer.
///
/// # Connections
/// Requests to a server share a connection. If it has as many requests as the server takes at once, often 100, the next
/// one waits, or opens another connection: [`ClientBuilder::max_connections`] says how many there may be.
/// [`ClientBuilder::max_http1`] does the same for HTTP/1.1. With a [`Proxy`], TCP goes through it and HTTP/3 is left out.
///
/// # Host
/// The URI says which server gets a request, and whose certificate it must have. A `host` field of the caller replaces
/// the authority of the URI in the message: it becomes `:authority` over HTTP/2 and HTTP/3 and `host` over HTTP/1.1, so
/// that the two never differ (RFC 9110 §7.2). A field that does not name exactly one host is [`ClientError::Host`].
///
/// # Requests that are sent again
/// A request is sent again, up to three times, if the server did not process it: the server refused it, announced the
/// end of the connection (RFC 9114 §5.2), refused 0-RTT data, answered early data with 425 (RFC 8470), or answered
/// 421 as an alternative (RFC 7838). If a connection is lost before the response, idempotent requests are sent again
/// (RFC 9110 §9.2.2). A body can be sent again if no more than its first 64 KiB were sent.
///
/// # Security
/// With [`ClientConfig::offer_early_data`], requests with the methods GET, HEAD, OPTIONS and TRACE and without a body
/// are sent in 0-RTT packets. An attacker can replay them, so the server must not change any state because of them.
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
    /// Creates a client with default settings.
    ///
    /// # Errors
    /// The configuration has an option that cannot be used; the error names it.
    pub fn new(config: ClientConfig) -> Result<Self, ConfigError> {
        Self::builder().build(config)
    }

    /// Returns a builder for other settings.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    fn of(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    /// Sends a GET request.
    ///
    /// # Errors
    /// There is no response; each [`ClientError`] says what to do. A response with an error status is not an error.
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

    /// Sends a request to the server that its URI names, such as `https://example.com/path`.
    ///
    /// # Errors
    /// There is no response; each [`ClientError`] says what to do. A response with an error status is not an error.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request, but the server may have processed it.
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
        let promised = Promised::by(&parts.headers);
        let length = if body.is_end_stream() {
            Some(0)
        } else {
            body.size_hint().exact()
        };
        if let Err(error) = promised.check(length) {
            return ResponseFuture::failed(ClientError::Body(Arc::new(error)));
        }
        match Sender::new(self.0.clone(), parts, Outgoing::new(body, promised)) {
            Ok(sender) => ResponseFuture(Box::pin(sender.send())),
            Err(error) => ResponseFuture::failed(error),
        }
    }

    /// Closes connections that no request uses.
    pub fn close_idle(&self) {
        self.0.pool.end_idle();
    }

    /// Returns the number of entries in each table of the client: servers and their connections, requests in
    /// progress, request bodies that are still being sent although the response has arrived, connection attempts, and
    /// alternatives (RFC 7838). Connections without requests end by themselves. Then only servers and alternatives are
    /// left, whose number [`ClientBuilder`] limits.
    pub fn census(&self) -> Census {
        let mut census = Census::default();
        self.0.pool.census(&mut census);
        let idle = &self.0.tcp.idle;
        census.add("idle connections", idle.count(), 0);
        census.add("uploads", idle.uploads(), 0);
        census
    }

    /// Tells the client that the machine has moved to another network. New requests use new connections, and offers
    /// of HTTP/3 are forgotten unless they are marked as persistent (RFC 7838 §2.2). QUIC connections with requests
    /// in progress migrate, if their servers allow it.
    ///
    /// # Errors
    /// No socket can be opened in the new network.
    pub fn on_network_change(&self) -> Result<(), hybriq::EndpointError> {
        self.0.pool.on_network_change();
        self.0.quic.rebind()
    }
}

/// The future response to a request of a [`Client`]. Dropping it cancels the request.
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
