//! Requests that a proxy passes on (RFC 9110 §7.6), and WebSocket among them (RFC 6455).

use std::{
    hash::{BuildHasher as _, RandomState},
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use base64ct::{Base64, Encoding as _};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{
        ALT_SVC, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, MAX_FORWARDS, SEC_WEBSOCKET_ACCEPT,
        SEC_WEBSOCKET_KEY, TRAILER, UPGRADE,
    },
};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWriteExt as _, ReadBuf};

use crate::{
    Body, Client, ClientError, Upgrade,
    client::{
        connections::Shared,
        error::BoxError,
        origin::{Origin, name_host},
        outgoing::{Hearing, Sending},
        tcp::{Connection, Offer},
    },
    versions::content::remove_those_of_connection,
};

const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");

/// A request that a server received, for a proxy to pass on: over any version of HTTP, to an upstream that may speak
/// another.
///
/// Fields of a connection stay on it, in both directions: `connection` and what it names, `keep-alive`,
/// `proxy-connection`, `te`, `transfer-encoding` and `upgrade` (RFC 9110 §7.6.1), and `alt-svc` of the upstream, which
/// would lead clients around the proxy. Bodies and trailers are streamed. `max-forwards` is counted down (§7.6.2).
///
/// A WebSocket is opened at the upstream with HTTP/1.1, on a separate connection, whether the client asks by
/// `upgrade` or by extended CONNECT (RFC 8441, RFC 9220), for which the server needs
/// [`ServerBuilder::extended_connect`](crate::ServerBuilder::extended_connect). Then bytes are passed on until both ends
/// have finished, or one of them fails.
///
/// # Security
/// Add what the upstream must know of the client, such as `forwarded`, to [`request_mut`](Self::request_mut), and replace
/// fields of this kind that the client sent: a client cannot have yours removed by `connection`. No other protocol than
/// WebSocket is passed on: neither tunnels nor HTTP/2 by `upgrade: h2c` get past the rules of the proxy.
///
/// # Examples
/// ```
/// use http::{Request, Response, StatusCode, Uri, uri::Authority};
/// use hybriq_http::{Body, Client, Forward};
///
/// /// Passes a request on to the upstream.
/// async fn pass_on(
///     client: &Client,
///     upstream: Authority,
///     request: Request<Body>,
/// ) -> Result<Response<Body>, StatusCode> {
///     let mut forward = Forward::of(request)?;
///     let path = forward.request().uri().path_and_query();
///     let path = path.map_or("/", |path| path.as_str());
///     let uri = Uri::builder().scheme("https").authority(upstream);
///     let uri = uri.path_and_query(path).build();
///     *forward.request_mut().uri_mut() = uri.map_err(|_| StatusCode::BAD_REQUEST)?;
///     forward.send(client).await.map_err(|_| StatusCode::BAD_GATEWAY)
/// }
/// ```
#[derive(Debug)]
pub struct Forward<B> {
    request: Request<B>,
    socket: Option<Socket>,
}

/// A request for a WebSocket.
#[derive(Debug)]
struct Socket {
    upgrade: Upgrade,
    /// True over HTTP/1.1, whose responses agree with 101.
    is_http1: bool,
}

impl<B> Forward<B> {
    /// Takes a request from its connection. Its field `host` is what the client asked for, over all versions; the
    /// caller removes it if the upstream is to see its own name.
    ///
    /// # Errors
    /// The proxy must answer the request itself, with this status: `max-forwards` is 0 (RFC 9110 §7.6.2), or the client
    /// asks for a protocol that is not passed on.
    pub fn of(mut request: Request<B>) -> Result<Self, StatusCode> {
        if let Some(status) = count(&mut request) {
            return Err(status);
        }
        let upgrade = request.extensions_mut().remove::<Upgrade>();
        let is_http1 = request.method() == Method::GET;
        let upgrade = upgrade.filter(|upgrade| {
            let is_websocket = upgrade.protocol().eq_ignore_ascii_case("websocket");
            is_websocket && (is_http1 || request.method() == Method::CONNECT)
        });
        if upgrade.is_none() && request.method() == Method::CONNECT {
            return Err(StatusCode::NOT_IMPLEMENTED);
        }
        remove_hop_by_hop(request.headers_mut());
        if let Some(authority) = request.uri().authority() {
            let host = HeaderValue::from_str(authority.as_str());
            let host = host.map_err(|_| StatusCode::BAD_REQUEST)?;
            request.headers_mut().insert(HOST, host);
        }
        let socket = upgrade.map(|upgrade| {
            *request.method_mut() = Method::GET;
            Socket { upgrade, is_http1 }
        });
        Ok(Self { request, socket })
    }

    /// Returns the request.
    pub fn request(&self) -> &Request<B> {
        &self.request
    }

    /// Returns the request to change it: its URI must name the upstream.
    pub fn request_mut(&mut self) -> &mut Request<B> {
        &mut self.request
    }

    /// Sends the request, and returns the response for the client.
    ///
    /// # Errors
    /// There is no response, or the upstream agreed to another protocol than the client asked for.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request. An open WebSocket continues in its own task.
    pub async fn send(self, client: &Client) -> Result<Response<Body>, ClientError>
    where
        B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let Some(socket) = self.socket else {
            let mut response = client.request(self.request).await?;
            clean(response.headers_mut());
            return Ok(response);
        };
        let mut request = self.request.map(drop);
        // Its body is not sent.
        for name in [CONTENT_LENGTH, EXPECT, TRAILER] {
            request.headers_mut().remove(name);
        }
        let server = Origin::of(request.uri())?;
        let fields = request.headers_mut();
        fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        fields.insert(UPGRADE, WEBSOCKET);
        if !socket.is_http1 {
            fields.insert(SEC_WEBSOCKET_KEY, key());
        }
        let mut response = Box::pin(switch(&client.0, &server, request)).await?;
        let is_agreed = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        let protocol = response.headers().get(UPGRADE);
        if is_agreed
            && !protocol.is_some_and(|protocol| {
                protocol
                    .as_bytes()
                    .eq_ignore_ascii_case(WEBSOCKET.as_bytes())
            })
        {
            let server = server.to_string();
            let cause = Arc::new(NoWebSocket);
            return Err(ClientError::Lost { server, cause });
        }
        clean(response.headers_mut());
        if is_agreed {
            let theirs = hyper::upgrade::on(&mut response);
            socket.agree(&mut response);
            tokio::spawn(relay(socket.upgrade, theirs));
            return Ok(response.map(|_| Body::empty()));
        }
        if !socket.is_http1 && response.status().is_success() {
            // To a CONNECT, success is agreement.
            let mut refusal = Response::new(Body::empty());
            *refusal.status_mut() = StatusCode::NOT_IMPLEMENTED;
            return Ok(refusal);
        }
        Ok(response)
    }
}

impl Socket {
    /// Makes the upstream's agreement one for the client.
    fn agree<T>(&self, response: &mut Response<T>) {
        if self.is_http1 {
            let fields = response.headers_mut();
            fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            fields.insert(UPGRADE, WEBSOCKET);
        } else {
            *response.status_mut() = StatusCode::OK;
            // RFC 8441 §5.
            response.headers_mut().remove(SEC_WEBSOCKET_ACCEPT);
        }
    }
}

/// An upstream that switched to something else.
#[derive(Debug, thiserror::Error)]
#[error("it switched to another protocol than websocket")]
struct NoWebSocket;

/// Counts `max-forwards` down. Returns the status of the proxy's own answer if the request goes no further
/// (RFC 9110 §7.6.2): TRACE, whose answer would repeat what others must not see, is not implemented.
fn count<B>(request: &mut Request<B>) -> Option<StatusCode> {
    let own = match *request.method() {
        Method::OPTIONS => StatusCode::OK,
        Method::TRACE => StatusCode::NOT_IMPLEMENTED,
        _ => return None,
    };
    let left = request.headers().get(MAX_FORWARDS)?.to_str().ok()?;
    let left: u64 = left.parse().ok()?;
    let Some(left) = left.checked_sub(1) else {
        return Some(own);
    };
    request.headers_mut().insert(MAX_FORWARDS, left.into());
    None
}

/// Removes the fields of a connection. `host` belongs to none, whatever `connection` says.
fn remove_hop_by_hop(fields: &mut HeaderMap) {
    let named = fields.get_all(CONNECTION).iter().map(HeaderValue::as_bytes);
    let named = named.collect::<Vec<_>>().join(&b","[..]);
    let names = named.split(|byte| *byte == b',');
    for name in names.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok()) {
        if name != HOST {
            fields.remove(name);
        }
    }
    remove_those_of_connection(fields);
}

/// Removes the fields of a response that are not for the client.
fn clean(fields: &mut HeaderMap) {
    remove_hop_by_hop(fields);
    fields.remove(ALT_SVC);
}

/// Returns a key for an opening handshake, which tells nothing (RFC 6455 §4.1).
fn key() -> HeaderValue {
    let halves = [0, 1].map(|half| RandomState::new().hash_one(half).to_be_bytes());
    let key = Base64::encode_string(&halves.concat());
    HeaderValue::try_from(key).unwrap_or(HeaderValue::from_static("aHlicmlxIHByb3h5IGtleQ=="))
}

/// Sends a request over HTTP/1.1, on a connection that may go on as another protocol.
async fn switch(
    shared: &Arc<Shared>,
    server: &Origin,
    request: Request<()>,
) -> Result<Response<Body>, ClientError> {
    let (mut request, ()) = request.into_parts();
    name_host(&mut request)?;
    let connection = shared.dial(server, Offer::Switch).await;
    let connection = connection.map_err(|error| shared.not_connected(server, None, Some(error)))?;
    let refused = || ClientError::Refused {
        server: server.to_string(),
    };
    let Connection::Http1(http1) = connection else {
        return Err(refused());
    };
    let exchange = http1.begin().ok_or_else(refused)?;
    let mut body = Sending::default();
    let hearing = Hearing::of(&request, &mut body, shared.times.go_ahead);
    // Nothing else is asked on this connection.
    let sent = http1.send(exchange, &request, body, hearing, drop).await;
    sent.map_err(|failure| failure.error)
}

/// Passes bytes on in both directions.
async fn relay(ours: Upgrade, theirs: OnUpgrade) -> io::Result<()> {
    let theirs = TokioIo::new(theirs.await.map_err(io::Error::other)?);
    let (mut from_client, mut to_client) = tokio::io::split(ours.upgraded().await?);
    let (from_upstream, mut to_upstream) = tokio::io::split(theirs);
    let up = async {
        tokio::io::copy(&mut from_client, &mut to_upstream).await?;
        to_upstream.shutdown().await
    };
    let down = async {
        tokio::io::copy(&mut Upstream(from_upstream), &mut to_client).await?;
        to_client.shutdown().await
    };
    tokio::try_join!(up, down)?;
    Ok(())
}

/// What an upstream sends. Many end without the end of TLS, but WebSocket has an end of its own (RFC 6455 §5.5.1).
struct Upstream<R>(R);

impl<R: AsyncRead + Unpin> AsyncRead for Upstream<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.0).poll_read(cx, buffer));
        let is_end = |error: &io::Error| error.kind() == io::ErrorKind::UnexpectedEof;
        Poll::Ready(read.or_else(|error| if is_end(&error) { Ok(()) } else { Err(error) }))
    }
}
