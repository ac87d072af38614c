//! Requests over HTTP/2 and HTTP/1.1.

mod http1;
mod http2;
mod interim;
mod proxy;

use std::{error::Error, io, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use http::{Request, Response, Uri, Version, request::Parts};
use hyper::{body::Incoming, client::conn::TrySendError};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, rustls::pki_types::ServerName};

use self::proxy::Way;
pub use self::proxy::{InvalidProxy, Proxy};
pub(super) use self::{http1::Http1, http2::Http2};
use super::{
    error::{ClientError, Failure, ProxyError, Repeat},
    origin::Origin,
    outgoing::Sending,
};
use crate::{
    Peer, Tls,
    usage::{Ending, Idle, Usage},
};

/// Application protocols over TCP, first choice first.
pub(super) const ALPN: [&str; 2] = ["h2", HTTP1];
pub(super) const HTTP1: &str = "http/1.1";

/// Settings of connections.
pub(super) struct Settings {
    pub(super) tls: TlsConnector,
    /// The same for HTTP/1.1 alone.
    pub(super) http1: TlsConnector,
    pub(super) header_list: u64,
    pub(super) idle_time: Duration,
    /// Silence after which the client checks whether a server with requests is still there.
    pub(super) keep_alive: Duration,
    pub(super) idle: Arc<Idle>,
    pub(super) proxy: Option<Proxy>,
}

impl Settings {
    /// Returns the proxy on the way to a server.
    pub(super) fn proxy_for(&self, server: &Origin) -> Option<&Proxy> {
        self.proxy.as_ref().filter(|proxy| proxy.is_for(server))
    }
}

/// Versions that a server may choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    All,
    /// HTTP/1.1, on a connection for a request that may switch it to another protocol (RFC 9110 §7.8).
    Switch,
}

/// A connection.
pub(super) enum Connection {
    Http1(Http1),
    Http2(Http2),
}

impl Connection {
    pub(super) fn usage(&self) -> &Usage {
        match self {
            Self::Http1(http1) => http1.usage(),
            Self::Http2(http2) => http2.usage(),
        }
    }
}

/// Facts about a connection.
struct Facts {
    server: Origin,
    address: SocketAddr,
    local_address: SocketAddr,
    tls: Arc<Tls>,
    usage: Arc<Usage>,
}

/// The task of a connection, which ends with it.
type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Connects to an address of a server, or of the proxy on the way to it, and returns the connection with its task.
pub(super) async fn connect(
    settings: &Settings,
    server: &Origin,
    address: SocketAddr,
    offer: Offer,
) -> io::Result<(Connection, Task)> {
    let name = ServerName::try_from(server.host().to_owned()).map_err(io::Error::other)?;
    let (stream, local_address) = if let Some(proxy) = settings.proxy_for(server) {
        let through = async {
            let (stream, local_address) = open(settings, address).await?;
            let tunnel = proxy.tunnel(stream, &settings.http1, server).await?;
            Ok::<_, ProxyError>((tunnel, local_address))
        };
        through.await.map_err(io::Error::other)?
    } else {
        let (stream, local_address) = open(settings, address).await?;
        (Way::Direct(stream), local_address)
    };
    let tls = match offer {
        Offer::All => &settings.tls,
        Offer::Switch => &settings.http1,
    };
    let stream = tls.connect(name, stream).await?;
    let tls = stream.get_ref().1;
    let is_http2 = tls.alpn_protocol() == Some(b"h2");
    let facts = Arc::new(Facts {
        server: server.clone(),
        address,
        local_address,
        tls: Arc::new(Tls::of_server(tls, server.host())),
        usage: Usage::new(settings.idle.clone()),
    });
    let connection = if is_http2 {
        http2::start(settings, stream, facts).await
    } else {
        http1::start(settings, stream, facts, offer).await
    };
    connection.map_err(io::Error::other)
}

/// Opens a TCP connection. Returns its local address, too.
async fn open(settings: &Settings, address: SocketAddr) -> io::Result<(TcpStream, SocketAddr)> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    if let Err(error) = keep_alive(&stream, settings.keep_alive) {
        tracing::debug!(%error, "cannot set keep-alive on a TCP connection");
    }
    let local_address = stream.local_addr()?;
    Ok((stream, local_address))
}

/// Lets the system detect servers that are gone while nothing is sent.
fn keep_alive(stream: &TcpStream, time: Duration) -> io::Result<()> {
    let keep_alive = socket2::TcpKeepalive::new().with_time(time);
    // Not every system lets programs set more than the first wait.
    #[cfg(any(
        target_os = "linux",
        target_os = "android",
        target_vendor = "apple",
        windows
    ))]
    let keep_alive = keep_alive.with_interval(time);
    socket2::SockRef::from(stream).set_tcp_keepalive(&keep_alive)
}

/// Runs a connection until it ends or is no longer used.
async fn drive(
    connection: impl Future<Output = hyper::Result<()>>,
    usage: Arc<Usage>,
    idle: Duration,
) {
    let usage = Ending(usage);
    tokio::select! {
        ended = connection => if let Err(error) = ended {
            tracing::debug!(%error, "a TCP connection failed");
        },
        () = usage.0.over(idle) => {}
    }
}

impl Facts {
    fn with_peer(&self, mut response: Response<Incoming>) -> Response<Incoming> {
        let peer = Peer {
            address: self.address,
            local_address: self.local_address,
            version: response.version(),
            tls: self.tls.clone(),
            early: false,
        };
        response.extensions_mut().insert(peer);
        response
    }

    fn failure(&self, mut error: TrySendError<Request<Sending>>) -> Failure {
        let unsent = error.take_message().is_some();
        let error = error.into_error();
        let reason = error
            .source()
            .and_then(|source| source.downcast_ref::<h2::Error>());
        if reason.is_some_and(interim::is_too_many) {
            return Failure::interim(self.server.to_string());
        }
        let refused = reason.is_some_and(|reason| {
            // h2 reports a GOAWAY only to streams beyond its last one, which were not processed (RFC 9113 §6.8).
            let is_beyond = reason.is_go_away() && reason.is_remote();
            reason.reason() == Some(h2::Reason::REFUSED_STREAM) || is_beyond
        });
        let repeat = if unsent || refused {
            Repeat::Any
        } else if error.is_user() || error.is_parse() {
            Repeat::Never
        } else {
            Repeat::Idempotent
        };
        let cause: Arc<dyn Error + Send + Sync> = Arc::new(error);
        let error = if cause
            .downcast_ref::<hyper::Error>()
            .is_some_and(hyper::Error::is_user)
        {
            ClientError::Body(cause)
        } else {
            let server = self.server.to_string();
            ClientError::Lost { server, cause }
        };
        Failure::new(error, repeat)
    }
}

/// Returns the head of a request.
fn head(request: &Parts, version: Version, uri: Uri) -> Request<()> {
    let mut head = Request::new(());
    *head.method_mut() = request.method.clone();
    *head.uri_mut() = uri;
    *head.version_mut() = version;
    head.headers_mut().clone_from(&request.headers);
    head
}
