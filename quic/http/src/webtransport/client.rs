//! Opens sessions as a client.

use http::{HeaderValue, Method, Request, StatusCode, Uri};
use hybriq::Endpoint;
use hybriq_h3::{
    Code, MAX_FIELD_SECTION, Protocol, Violation,
    webtransport::{AVAILABLE_PROTOCOLS, Dialect, Unsupported, choice, offer},
};

use super::{DRAFT02, Limits, Protocols, Session, session::Agreed, sessions::Sessions, terms};
use crate::{
    upgrade::{Datagrams, Tunnel},
    versions::http3::{Link, Setup, Transport},
};

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
    Connection(#[source] crate::StreamError),
    /// The request failed.
    #[error("the request failed")]
    Request(#[source] crate::StreamError),
    /// The server does not speak WebTransport.
    #[error(
        "the server does not support WebTransport, according to its SETTINGS and transport parameters"
    )]
    Unsupported,
    /// The server has chosen this protocol, which was not offered (draft-ietf-webtrans-http3 §3.3).
    #[error("the server has chosen the protocol {0:?}, which was not offered")]
    Protocol(String),
    /// The server has chosen none of the protocols that were [required](Protocols::required), or its choice is malformed
    /// (draft-ietf-webtrans-http3 §3.3).
    #[error("the server has chosen none of the required protocols; offer one that it speaks")]
    NoProtocol,
    /// The server refused the session.
    #[error("the server refused the session with status {0}")]
    Refused(StatusCode),
}

/// Opens a session on a separate connection. The request has an address such as `https://example.com:4433/chat`, and
/// may have fields; its method is replaced.
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
/// session.send_datagram(bytes::Bytes::from_static(b"hello"))?;
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
    let mut setup = Setup::new(MAX_FIELD_SECTION);
    let limits = Limits::default();
    let datagrams = Datagrams::new(limits.waiting_datagrams);
    let sessions = Sessions::new(limits, datagrams, &mut setup);
    let link = Link::begin(Transport::Established(connection.clone()), setup).await;
    let link = link.map_err(ConnectError::Connection)?;
    let open = async {
        // A client must not ask before it has the settings (draft-ietf-webtrans-http3 §3.1).
        let settings = link.peer_settings().await;
        let terms = terms(&connection, sessions.windows(), &settings).map_err(|unsupported| {
            if unsupported == Unsupported::Requirements {
                let code = Code::WT_REQUIREMENTS_NOT_MET;
                link.close(code, &unsupported.to_string());
            }
            ConnectError::Unsupported
        })?;
        let protocols = request.extensions().get::<Protocols>().cloned();
        let Protocols { names, is_required } = protocols.unwrap_or_else(|| Protocols::new([""; 0]));
        let request = connect_request(request, terms.dialect, &names);
        let stream = Box::pin(link.request(&request)).await;
        let (mut send, mut recv) = stream.map_err(ConnectError::Request)?;
        send.flush().await.map_err(ConnectError::Request)?;
        let response = Box::pin(recv.head()).await.map_err(ConnectError::Request)?;
        if !response.status().is_success() {
            return Err(ConnectError::Refused(response.status()));
        }
        let chosen = choice(response.headers()).filter(|_| !names.is_empty());
        let refused = match &chosen {
            Some(chosen) if !names.contains(chosen) => ConnectError::Protocol(chosen.clone()),
            None if is_required => ConnectError::NoProtocol,
            _ => {
                let protocol = chosen;
                return Ok((send, recv, Agreed { terms, protocol }));
            }
        };
        let code = Violation::ProtocolNotOffered.code();
        send.reset(code);
        recv.stop(code);
        Err(refused)
    };
    let driven = link.clone();
    let mut driving = Box::pin(async move { driven.drive().await });
    let (send, recv, agreed) = tokio::select! {
        opened = open => opened?,
        error = &mut driving => return Err(ConnectError::Connection(error)),
    };
    let id = recv.id();
    let (tunnel, ends) = Tunnel::new(connection.clone(), send, recv);
    let session = Session::start(&sessions, agreed, &connection, id, tunnel);
    connection.spawn(async move {
        tokio::select! {
            _ = driving => {}
            _ = ends.dropped => {}
        }
        link.close(Code::H3_NO_ERROR, "");
    });
    Ok(session)
}

fn connect_request(
    mut request: Request<()>,
    dialect: Dialect,
    protocols: &[String],
) -> Request<()> {
    *request.method_mut() = Method::CONNECT;
    request
        .extensions_mut()
        .insert(Protocol::from_static(dialect.token()));
    let fields = request.headers_mut();
    if dialect == Dialect::Draft02 {
        fields.insert(DRAFT02, HeaderValue::from_static("1"));
    }
    let offer = offer(protocols.iter().map(String::as_str));
    if let Some(offer) = offer.filter(|_| !protocols.is_empty()) {
        fields.insert(AVAILABLE_PROTOCOLS, offer);
    }
    request
}

/// Connects to the first address of a server that answers (RFC 8305).
async fn reach(
    endpoint: &Endpoint,
    host: &str,
    port: u16,
) -> Result<hybriq::Connection, ConnectError> {
    let addresses = tokio::net::lookup_host((host, port)).await;
    let addresses = addresses.map_err(|cause| ConnectError::Lookup {
        host: host.to_owned(),
        cause,
    })?;
    Ok(endpoint.connect_any(addresses, host).await?)
}
