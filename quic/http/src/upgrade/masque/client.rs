//! Opens tunnels as a client.

use std::{fmt, sync::Arc};

use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hybriq::{Connection, Endpoint};
use hybriq_h3::{Code, MAX_FIELD_SECTION, Protocol};
use tokio::sync::oneshot;

use super::{
    CAPSULE_PROTOCOL, PROTOCOL, PROXY_STATUS, WAITING,
    target::Target,
    template::Template,
    tunnel::{QUEUE, UdpTunnel},
};
use crate::{
    upgrade::{Datagrams, Flow, Tunnel},
    versions::http3::{Link, Setup, StreamError, Transport},
};

/// Interim responses before the final one, at most.
const MOST_INTERIM: usize = 16;

/// A connection to a proxy over HTTP/3, for any number of tunnels. It is closed when the last clone and the last tunnel
/// are dropped.
///
/// # Examples
/// ```no_run
/// use hybriq::{ClientConfig, Endpoint};
/// use hybriq_http::masque::{ProxyClient, Template};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = Endpoint::client(ClientConfig::new().alpn([hybriq_h3::ALPN]))?;
/// let proxy = ProxyClient::connect(&endpoint, Template::well_known("proxy.example")?).await?;
/// let tunnel = proxy.connect_udp(&"[2001:db8::42]:53".parse()?).await?;
/// tunnel.send("a query".into())?;
/// let answer = tunnel.recv().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ProxyClient {
    template: Template,
    fields: HeaderMap,
    connection: Connection,
    link: Arc<Link>,
    datagrams: Datagrams,
    keep: Arc<oneshot::Sender<()>>,
}

/// Reason why a tunnel could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The name of the proxy could not be resolved.
    #[error("cannot resolve '{host}': {cause}; check the template of the proxy")]
    Lookup {
        /// Name of the proxy.
        host: String,
        /// Error of the system.
        cause: std::io::Error,
    },
    /// The proxy cannot be reached, or the handshake failed.
    #[error(transparent)]
    Quic(#[from] hybriq::ConnectError),
    /// The connection failed.
    #[error("the HTTP/3 connection to the proxy failed")]
    Connection(#[source] StreamError),
    /// The request failed.
    #[error("the request for a tunnel failed")]
    Request(#[source] StreamError),
    /// The proxy does not support extended CONNECT (RFC 9220).
    #[error("the proxy does not support CONNECT-UDP, according to its SETTINGS")]
    Unsupported,
    /// The proxy refused the tunnel.
    #[error("the proxy refused the tunnel with status {status}{}", because(.reason.as_deref()))]
    Refused {
        /// Status of the response.
        status: StatusCode,
        /// Type of the error by the field `proxy-status` (RFC 9209 §2.3), such as `dns_error`, if the proxy has sent one.
        reason: Option<String>,
    },
}

fn because(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(" ({reason})"))
}

/// Opens a tunnel on a separate connection: see [`ProxyClient`].
///
/// # Errors
/// The proxy cannot be reached, does not support CONNECT-UDP, or refuses the tunnel.
///
/// # Cancel safety
/// Dropping the future before it is ready closes the connection.
pub async fn connect_udp(
    endpoint: &Endpoint,
    template: Template,
    target: &Target,
) -> Result<UdpTunnel, ConnectError> {
    let proxy = Box::pin(ProxyClient::connect(endpoint, template)).await?;
    proxy.connect_udp(target).await
}

impl ProxyClient {
    /// Connects to the proxy of a template. The endpoint's configuration should have the application protocol `h3`
    /// ([`hybriq_h3::ALPN`]).
    ///
    /// # Errors
    /// The proxy cannot be reached, or does not support CONNECT-UDP.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready closes the connection.
    pub async fn connect(endpoint: &Endpoint, template: Template) -> Result<Self, ConnectError> {
        let (host, port) = template.proxy();
        let addresses = tokio::net::lookup_host((host, port)).await;
        let addresses = addresses.map_err(|cause| ConnectError::Lookup {
            host: host.to_owned(),
            cause,
        })?;
        let connection = endpoint.connect_any(addresses, host).await?;
        let mut setup = Setup::new(MAX_FIELD_SECTION);
        setup.config.settings.h3_datagram = true;
        let link = Link::begin(Transport::Established(connection.clone()), setup).await;
        let link = link.map_err(ConnectError::Connection)?;
        let (keep, kept) = oneshot::channel();
        let driven = link.clone();
        connection.spawn(async move {
            tokio::select! {
                _ = driven.drive() => {}
                // Ends when the sender is dropped.
                _ = kept => {}
            }
            driven.close(Code::H3_NO_ERROR, "");
        });
        let settings = tokio::select! {
            // A client must not ask before it has the settings (RFC 9220 §3, RFC 8441 §3).
            settings = link.peer_settings() => settings,
            reason = connection.closed() => return Err(ConnectError::Connection(reason.into())),
        };
        if !settings.enable_connect_protocol {
            return Err(ConnectError::Unsupported);
        }
        Ok(Self {
            template,
            fields: HeaderMap::new(),
            connection,
            link,
            datagrams: Datagrams::new(WAITING),
            keep: Arc::new(keep),
        })
    }

    /// Sets fields that all requests have, such as `proxy-authorization`.
    #[must_use]
    pub fn fields(mut self, fields: HeaderMap) -> Self {
        self.fields = fields;
        self
    }

    /// Returns the connection to the proxy.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Opens a tunnel to a target.
    ///
    /// # Errors
    /// The proxy refuses the tunnel, or the connection is over.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready cancels the request.
    pub async fn connect_udp(&self, target: &Target) -> Result<UdpTunnel, ConnectError> {
        let mut request = Request::new(());
        *request.method_mut() = Method::CONNECT;
        *request.uri_mut() = self.template.expand(target);
        *request.headers_mut() = self.fields.clone();
        let is_capsules = HeaderValue::from_static("?1");
        request.headers_mut().insert(CAPSULE_PROTOCOL, is_capsules);
        request
            .extensions_mut()
            .insert(Protocol::from_static(PROTOCOL));
        let stream = Box::pin(self.link.request(&request)).await;
        let (mut send, mut recv) = stream.map_err(ConnectError::Request)?;
        // Forgets the request if it is refused.
        let (datagrams, link) = (self.datagrams.clone(), self.link.clone());
        let flow = Flow::new(datagrams, link, self.connection.clone(), recv.id());
        send.flush().await.map_err(ConnectError::Request)?;
        let mut interims = 0;
        let response = loop {
            let response = Box::pin(recv.head()).await.map_err(ConnectError::Request)?;
            if !response.status().is_informational() {
                break response;
            }
            interims += 1;
            if interims > MOST_INTERIM {
                return Err(ConnectError::Refused {
                    status: response.status(),
                    reason: None,
                });
            }
        };
        if !response.status().is_success() {
            return Err(ConnectError::Refused {
                status: response.status(),
                reason: reason(response.headers()),
            });
        }
        let (tunnel, ends) = Tunnel::new(self.connection.clone(), send, recv);
        drop(ends);
        let keep = self.keep.clone();
        Ok(UdpTunnel::start(tunnel, Some(flow), QUEUE, Some(keep)))
    }
}

impl fmt::Debug for ProxyClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyClient")
            .field("template", &self.template)
            .finish_non_exhaustive()
    }
}

/// Returns the type of the error of the last proxy (RFC 9209 §2).
fn reason(fields: &HeaderMap) -> Option<String> {
    let field = fields
        .get_all(PROXY_STATUS)
        .iter()
        .next_back()?
        .to_str()
        .ok()?;
    let last = field.rsplit(',').next()?;
    let mut parameters = last.split(';').map(str::trim);
    let error = parameters.find_map(|parameter| parameter.strip_prefix("error="))?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!error.is_empty() && error.bytes().all(is_token)).then(|| error.to_owned())
}
