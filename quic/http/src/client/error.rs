//! Errors of the client, and the failures of requests that may be sent again.

use std::{error::Error, io, sync::Arc, time::Duration};

use http::{Method, StatusCode, Uri};
use hybriq::ConnectError;
use hybriq_h3::Code;

use crate::StreamError;

/// An error of any type.
pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// Largest number of interim responses to a request.
pub(super) const MOST_INTERIM: usize = 16;

/// Reason why a request has no response. Its text says what to do next.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URI does not name a server by https.
    #[error(
        "'{0}' does not name a server; use a URI such as https://example.com/path, without user information"
    )]
    Uri(Uri),
    /// The text is not a URI.
    #[error("{0}; use a URI such as https://example.com/path")]
    InvalidUri(String),
    /// The client does not send requests with this method.
    #[error("this client sends no {0} requests; ClientBuilder::proxy makes tunnels")]
    Method(Method),
    /// The request has a `host` field that names no host, or several.
    #[error(
        "the field 'host' must be there at most once, with a host and perhaps a port; the URI names the host if it is \
         left out"
    )]
    Host,
    /// No connection could be made.
    #[error("no connection to {server}: {}", causes(quic.as_deref(), tcp.as_deref()))]
    Connect {
        /// Host and port.
        server: String,
        /// Why QUIC failed, if it was tried.
        quic: Option<Arc<QuicError>>,
        /// Why TCP failed, if it was tried.
        tcp: Option<Arc<io::Error>>,
    },
    /// The [`Proxy`](crate::Proxy) made no connection to the server.
    #[error("no connection to {server} by the proxy {proxy}: {cause}")]
    Proxy {
        /// Host and port of the server.
        server: String,
        /// Host and port of the proxy.
        proxy: String,
        /// What the proxy did.
        cause: Arc<ProxyError>,
    },
    /// The body of the request returned an error.
    #[error("the body of the request could not be read: {0}")]
    Body(Arc<dyn Error + Send + Sync>),
    /// The fields of the request are larger than the server accepts.
    #[error(
        "the fields of the request have {size} bytes, but the server accepts only {most}; send fewer"
    )]
    Fields {
        /// Size of the fields (RFC 9114 §4.2.2).
        size: u64,
        /// Largest size that the server accepts.
        most: u64,
    },
    /// The fields of the response are larger than
    /// [`ClientBuilder::header_list`](crate::ClientBuilder::header_list).
    #[error(
        "the fields of the response are larger than {0} bytes; raise ClientBuilder::header_list"
    )]
    ResponseFields(u64),
    /// The server ended the request without a response.
    #[error("the server ended the request with {0}; it may have processed part of it")]
    Reset(Code),
    /// The connection ended before the response arrived, or the response broke a rule of HTTP.
    #[error(
        "no response from {server}: {cause}; the server may have processed the request: repeat it only \
         if that does no harm"
    )]
    Lost {
        /// Host and port.
        server: String,
        /// The end of the connection, or the broken rule.
        cause: Arc<dyn Error + Send + Sync>,
    },
    /// The server sent more interim responses (1xx) than the client accepts, and no final one.
    #[error(
        "no final response from {server}, but more than {most} interim ones (1xx); the server may have processed \
         the request: repeat it only if that does no harm"
    )]
    Interim {
        /// Host and port.
        server: String,
        /// Largest number of interim responses to a request.
        most: usize,
    },
    /// The server refused the request on every connection that was tried.
    #[error("{server} refused the request on every connection; try again later")]
    Refused {
        /// Host and port.
        server: String,
    },
}

/// Reason why a connection over QUIC could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuicError {
    /// The name of the server could not be resolved.
    #[error("cannot resolve the name ({0}); check the name and the network")]
    Resolve(io::Error),
    /// The server offered a host that its own address does not allow it to offer:
    /// see [`OfferedHosts`](crate::OfferedHosts).
    #[error("the host that it offers by alt-svc has no address as public as its own")]
    Excluded,
    /// No socket could be opened.
    #[error(transparent)]
    Endpoint(#[from] hybriq::EndpointError),
    /// The handshake failed.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// HTTP/3 could not be started on the connection.
    #[error("HTTP/3 could not start")]
    Http3(#[from] StreamError),
    /// The server did not answer in time.
    #[error("no answer within {0:?}; check that UDP reaches the server, or raise connect_timeout")]
    TimedOut(Duration),
}

/// Reason why a [`Proxy`](crate::Proxy) made no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The connection to the proxy could not be made, ended, or took too long.
    #[error("{0}; check its address")]
    Io(io::Error),
    /// The proxy wants other credentials: status 407 (RFC 9110 §15.5.8), or a refusal by SOCKS5 (RFC 1929).
    #[error("it does not let this client in; check Proxy::credentials")]
    Credentials,
    /// The answer to CONNECT is not 2xx (RFC 9110 §9.3.6).
    #[error("it answered with status {0}")]
    Refused(StatusCode),
    /// The reply of SOCKS5 is not 0, success (RFC 1928 §6).
    #[error("it answered with {0}: {text}", text = reply(*.0))]
    Reply(u8),
    /// The bytes are no answer of this protocol, or not only an answer.
    #[error("it does not speak {0}; check the scheme and the port")]
    Malformed(&'static str),
    /// The answer to CONNECT has more bytes than this.
    #[error("its answer has more than {0} bytes")]
    TooLong(usize),
    /// The request must go over HTTP/3, which is not spoken through proxies for TCP.
    #[error(
        "HTTP/3 does not go through it; choose another Http3, or except the server by Proxy::except"
    )]
    Http3,
}

impl From<io::Error> for ProxyError {
    fn from(cause: io::Error) -> Self {
        Self::Io(cause)
    }
}

/// Returns what a reply of SOCKS5 means (RFC 1928 §6).
fn reply(code: u8) -> &'static str {
    match code {
        1 => "it failed",
        2 => "its rules do not allow the connection",
        3 => "the network cannot be reached",
        4 => "the host cannot be reached",
        5 => "the server refused the connection",
        6 => "a TTL expired",
        7 => "it does not know CONNECT",
        8 => "it does not know this type of address",
        _ => "an unknown reason",
    }
}

impl ClientError {
    /// Returns the error of a request without a connection.
    pub(super) fn connect(
        server: String,
        quic: Option<QuicError>,
        tcp: Option<io::Error>,
        proxy: Option<String>,
    ) -> Self {
        let tcp = match (tcp, proxy) {
            (Some(tcp), Some(proxy)) => match tcp.downcast::<ProxyError>() {
                Ok(cause) => {
                    let cause = Arc::new(cause);
                    return Self::Proxy {
                        server,
                        proxy,
                        cause,
                    };
                }
                Err(tcp) => Some(tcp),
            },
            (tcp, _) => tcp,
        };
        Self::Connect {
            server,
            quic: quic.map(Arc::new),
            tcp: tcp.map(Arc::new),
        }
    }
}

/// Returns the reasons why there is no connection.
fn causes(quic: Option<&QuicError>, tcp: Option<&io::Error>) -> String {
    let quic = quic.map(|cause| format!("over QUIC: {}", with_causes(cause)));
    let tcp = tcp.map(|cause| format!("over TCP: {cause}"));
    let causes: Vec<_> = quic.into_iter().chain(tcp).collect();
    causes.join("; ")
}

/// Returns the text of an error, with those of its causes.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// A request that got no response.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: ClientError,
    pub(super) repeat: Repeat,
}

/// Which requests may be sent again after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// All: the server did not process the request (RFC 9114 §4.1.1).
    Any,
    /// All, but not over HTTP/3 (H3_VERSION_FALLBACK).
    OverTcp,
    /// Those of idempotent methods: it is unknown what the server did (RFC 9110 §9.2.2).
    Idempotent,
    /// None: the failure would be the same.
    Never,
}

impl Failure {
    /// Returns the failure of a request that got too many interim responses.
    pub(super) fn interim(server: String) -> Self {
        let most = MOST_INTERIM;
        Self::new(ClientError::Interim { server, most }, Repeat::Never)
    }

    pub(super) fn new(error: ClientError, repeat: Repeat) -> Self {
        Self { error, repeat }
    }

    /// Returns the failure for a request that may be sent again in any case.
    pub(super) fn anyway(self) -> Self {
        Self {
            repeat: match self.repeat {
                Repeat::Idempotent => Repeat::Any,
                repeat => repeat,
            },
            ..self
        }
    }

    /// Returns true if a request of this method may be sent again.
    pub(super) fn may_repeat(&self, method: &Method) -> bool {
        match self.repeat {
            Repeat::Any | Repeat::OverTcp => true,
            Repeat::Idempotent => method.is_idempotent(),
            Repeat::Never => false,
        }
    }
}
