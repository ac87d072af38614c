//! Opens sessions as a client.

use std::future::poll_fn;

use h3::ext::Protocol;
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use hybriq::Endpoint;
use hybriq_h3::{Payload, webtransport as wire};

use super::{DRAFT02, Limits, Session};
use crate::upgrade::Tunnel;

/// Reason why a session could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address is not `https://host[:port]/path`.
    #[error("'{0}' is not the address of a session; use https://host[:port]/path")]
    Address(Uri),
    /// The name of the server could not be resolved.
    #[error("cannot resolve '{host}': {cause}; check the name")]
    Lookup {
        /// Name of the server.
        host: String,
        /// Error of the system.
        cause: std::io::Error,
    },
    /// The server cannot be reached, or the handshake failed.
    #[error(transparent)]
    Quic(#[from] hybriq::ConnectError),
    /// The connection failed.
    #[error("the HTTP/3 connection failed")]
    Connection(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The request failed.
    #[error("the request failed")]
    Request(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server does not speak WebTransport.
    #[error("the server does not support WebTransport, according to its SETTINGS")]
    Unsupported,
    /// The server refused the session.
    #[error("the server refused the session with status {0}")]
    Refused(StatusCode),
}

/// Opens a session on a connection of its own. The request has an address such as `https://example.com:4433/chat`,
/// and may have fields; its method is replaced.
///
/// The endpoint's configuration should have the application protocol `h3` ([`hybriq_h3::ALPN`]). Dropping
/// the session closes the connection.
///
/// # Errors
/// The server cannot be reached, does not speak WebTransport, or refuses the session.
///
/// # Cancel safety
/// Dropping the future before it is ready closes the connection.
///
/// # Examples
/// ```no_run
/// use http::Request;
/// use hybriq::{ClientConfig, Endpoint};
/// use hybriq_http::webtransport;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = Endpoint::client(ClientConfig::new().alpn([hybriq_h3::ALPN]))?;
/// let request = Request::get("https://localhost:4433/chat").body(())?;
/// let session = webtransport::connect(&endpoint, request).await?;
/// session.send_datagram(b"hello")?;
/// session.close(0, "done");
/// # Ok(())
/// # }
/// ```
pub async fn connect(endpoint: &Endpoint, request: Request<()>) -> Result<Session, ConnectError> {
    let uri = request.uri();
    let is_https = uri.scheme() == Some(&http::uri::Scheme::HTTPS);
    let Some(host) = uri.host().filter(|_| is_https) else {
        return Err(ConnectError::Address(uri.clone()));
    };
    let host = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let port = uri.port_u16().unwrap_or(443);
    let connection = reach(endpoint, &host, port).await?;
    let mut transport = hybriq_h3::Connection::new(connection.clone());
    let sessions = transport.webtransport(Limits::default());
    let mut settings = transport.peer_settings();
    let mut builder = h3::client::builder();
    let builder = builder.enable_datagram(true).enable_extended_connect(true);
    let (mut driver, mut requests) = Box::pin(builder.build::<_, _, Payload>(transport))
        .await
        .map_err(lost)?;
    let open = async {
        // A client must not ask before it has the settings (draft-ietf-webtrans-http3 §3.1).
        let enabled = settings.get(wire::ENABLE).await;
        let sessions = settings.get(wire::MAX_SESSIONS).await;
        if enabled.unwrap_or(0) == 0 && sessions.unwrap_or(0) == 0 {
            return Err(ConnectError::Unsupported);
        }
        let sent = Box::pin(requests.send_request(connect_request(request))).await;
        let mut stream = sent.map_err(failed)?;
        let response = Box::pin(stream.recv_response()).await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(ConnectError::Refused(response.status()));
        }
        Ok(stream)
    };
    let stream = tokio::select! {
        opened = open => opened?,
        error = poll_fn(|cx| driver.poll_close(cx)) => return Err(lost(error)),
    };
    let id = stream.id();
    let (send, recv) = stream.split();
    let (tunnel, ends) = Tunnel::new(connection.clone(), id, send, recv);
    let session = Session::start(&sessions, connection.clone(), id, tunnel);
    connection.spawn(async move {
        tokio::select! {
            _ = poll_fn(|cx| driver.poll_close(cx)) => {}
            _ = ends.dropped => {}
        }
        drop(requests);
    });
    Ok(session)
}

fn lost(cause: h3::error::ConnectionError) -> ConnectError {
    ConnectError::Connection(cause.into())
}

fn failed(cause: h3::error::StreamError) -> ConnectError {
    ConnectError::Request(cause.into())
}

fn connect_request(mut request: Request<()>) -> Request<()> {
    *request.method_mut() = Method::CONNECT;
    request.extensions_mut().insert(Protocol::WEB_TRANSPORT);
    let fields = request.headers_mut();
    fields.insert(DRAFT02, HeaderValue::from_static("1"));
    request
}

/// Connects to the first address of a server that answers.
async fn reach(
    endpoint: &Endpoint,
    host: &str,
    port: u16,
) -> Result<hybriq::Connection, ConnectError> {
    let lookup = |cause| ConnectError::Lookup {
        host: host.to_owned(),
        cause,
    };
    let addresses = tokio::net::lookup_host((host, port)).await;
    let mut failed = lookup(std::io::ErrorKind::NotFound.into());
    for address in addresses.map_err(lookup)? {
        match endpoint.connect(address, host).await {
            Ok(connection) => return Ok(connection),
            Err(error) => failed = error.into(),
        }
    }
    Err(failed)
}
