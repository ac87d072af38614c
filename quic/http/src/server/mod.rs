//! Servers.

mod activity;
mod answers;
mod app;
mod clock;
mod connections;
mod fields;
mod handle;
mod heads;
mod http2;
mod lent;
mod linger;
mod quic;
mod request;
mod responses;
mod sockets;
mod state;
mod tcp;
mod tunnel;
mod watch;
mod worst_case;

use std::{
    error::Error,
    io,
    net::{SocketAddr, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use http::{Request, Response};
use hybriq::{EndpointBuilder, EndpointError, ServerConfig, error::ConfigError};
use tower_service::Service;

use self::{
    app::Tower,
    handle::{Settings, Shared},
};
use crate::{Body, Limits, webtransport};
pub use handle::Handle;
pub use worst_case::WorstCaseMemory;

/// Application protocols over TCP.
const ALPN_TCP: [&str; 2] = ["h2", "http/1.1"];

/// Time for which clients remember that there is HTTP/3, if nothing else is said.
const ALT_SVC_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// A server of HTTP/1.1, HTTP/2 and HTTP/3 on one port number.
///
/// # Examples
/// See the [crate](crate)'s documentation.
pub struct Server {
    shared: Arc<Shared>,
    tcp: Option<tokio::net::TcpListener>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

/// Settings of a server. [`Server::builder`] makes one.
#[derive(Default)]
pub struct ServerBuilder {
    endpoint: EndpointBuilder,
    limits: Limits,
    protocols: Protocols,
    alt_svc_age: Option<Duration>,
    features: Features,
}

impl std::fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerBuilder").finish_non_exhaustive()
    }
}

/// Protocols on the streams of requests.
#[derive(Clone, Copy, Debug, Default)]
struct Features {
    connect: Connect,
    webtransport: Option<webtransport::Limits>,
}

/// Requests of extended CONNECT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Connect {
    #[default]
    Refused,
    Extended,
}

/// Protocols that a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Protocols {
    #[default]
    All,
    Http3Only,
}

/// Error of making a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The endpoint of QUIC cannot be made.
    #[error("for HTTP/3: {0}")]
    Quic(EndpointError),
    /// The address cannot be used for TCP.
    #[error(
        "for HTTP/1.1 and HTTP/2: cannot listen on TCP {address}: {cause}; {}, or call \
         ServerBuilder::without_tcp",
        remedy(cause)
    )]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// Error of the system.
        cause: std::io::Error,
    },
}

impl From<EndpointError> for BindError {
    fn from(cause: EndpointError) -> Self {
        Self::Quic(cause)
    }
}

/// Returns what to do about an address that cannot be used.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "stop the program that has the port",
        io::ErrorKind::PermissionDenied => {
            "take a port above 1023, or give the program the capability CAP_NET_BIND_SERVICE"
        }
        io::ErrorKind::AddrNotAvailable => "take an address that this machine has",
        // A system without IPv6 does not know its sockets.
        _ => "take another address, 0.0.0.0 where there is no IPv6",
    }
}

impl Server {
    /// Makes a server on an address, for TCP and UDP. Port 0 picks one that is free for both.
    ///
    /// The application protocols of the configuration are replaced by those of HTTP.
    ///
    /// # Errors
    /// The configuration or the address cannot be used, or there is no tokio runtime. Each
    /// [`BindError`] says what to do.
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    pub fn bind(address: impl ToSocketAddrs, config: ServerConfig) -> Result<Self, BindError> {
        Self::builder().bind(address, config)
    }

    /// Returns a builder, for other settings.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Returns the address that the server listens on.
    pub fn local_address(&self) -> SocketAddr {
        self.shared.endpoint.local_address()
    }

    /// Returns a handle that can shut the server down and change its configuration.
    pub fn handle(&self) -> Handle {
        Handle::new(self.shared.clone())
    }

    /// Serves requests by a service until the server is [shut down](Handle::shutdown).
    ///
    /// Each connection has a clone of the service, and each request its own task: requests over QUIC run
    /// beside the worker of their connection ([`hybriq::Connection::spawn`]). A request whose client
    /// gives it up is dropped.
    ///
    /// # Cancel safety
    /// A future that is dropped accepts no more connections; those that exist go on.
    pub async fn serve<S, B>(self, service: S)
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
        S::Future: Send,
        B: http_body::Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        let app = Tower(service);
        let Self { shared, tcp } = self;
        shared.watch.begin();
        let over_tcp = async {
            // Dropped after the listener.
            let _listening = shared.listening.subscribe();
            if let Some(listener) = tcp {
                tcp::accept(&shared, &listener, &app).await;
            }
        };
        tokio::join!(over_tcp, quic::accept(&shared, &app));
        shared.ended().await;
    }
}

impl ServerBuilder {
    /// Sets the options of the QUIC endpoint, for example workers and limits of connections. Its server
    /// configuration is replaced.
    #[must_use]
    pub fn endpoint(mut self, endpoint: EndpointBuilder) -> Self {
        self.endpoint = endpoint;
        self
    }

    /// Sets the bounds on what a client may cost. Default: [`Limits::default`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits.with_times_used();
        self
    }

    /// Speaks HTTP/3 alone. Default: HTTP/1.1 and HTTP/2 over TCP, too.
    #[must_use]
    pub fn without_tcp(mut self) -> Self {
        self.protocols = Protocols::Http3Only;
        self
    }

    /// Sets the time for which clients remember that there is HTTP/3 (the `ma` of `Alt-Svc`, RFC 7838
    /// §3.1), in whole seconds. 0 tells them nothing. Default: 24 hours.
    #[must_use]
    pub fn alt_svc_age(mut self, age: Duration) -> Self {
        self.alt_svc_age = Some(age);
        self
    }

    /// Allows requests of extended CONNECT over HTTP/2 (RFC 8441) and HTTP/3 (RFC 9220): the service finds
    /// an [`Upgrade`](crate::Upgrade) in them. Browsers then send WebSockets over HTTP/2, so the service
    /// must know them. Default: not allowed.
    #[must_use]
    pub fn extended_connect(mut self) -> Self {
        self.features.connect = Connect::Extended;
        self
    }

    /// Allows sessions of WebTransport over HTTP/3, within these limits: the service finds a
    /// [`WebTransport`](webtransport::WebTransport) in requests for one. Default: not allowed.
    #[must_use]
    pub fn webtransport(mut self, limits: webtransport::Limits) -> Self {
        self.features.webtransport = Some(limits);
        self
    }

    /// Returns the memory that clients can make a server of these settings and this configuration hold, for
    /// capacity planning.
    ///
    /// # Examples
    /// ```no_run
    /// use hybriq::{Identity, ServerConfig, TransportConfig};
    /// use hybriq_http::Server;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
    /// let config = ServerConfig::new(identity).transport(TransportConfig::new().max_bidi_streams(20));
    /// let worst = Server::builder().worst_case_memory(&config);
    /// println!("fields over HTTP/3: {} bytes for each connection", worst.http3_requests);
    /// println!("1,000 connections of each kind: {} bytes at most", worst.total(1, 1000, 1000));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn worst_case_memory(&self, config: &ServerConfig) -> WorstCaseMemory {
        WorstCaseMemory::of(config, &self.limits, self.features)
    }

    /// Makes the server: see [`Server::bind`].
    ///
    /// # Errors
    /// The configuration or the address cannot be used, or there is no tokio runtime. Each
    /// [`BindError`] says what to do.
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    pub fn bind(
        self,
        address: impl ToSocketAddrs,
        config: ServerConfig,
    ) -> Result<Server, BindError> {
        let tls = config.tcp(ALPN_TCP)?;
        let early = config.accepts_early_data();
        let endpoint = self.endpoint.server(config.alpn([hybriq_h3::ALPN]));
        let (endpoint, tcp) = sockets::bind(endpoint, address, self.protocols)?;
        let age = self.alt_svc_age.unwrap_or(ALT_SVC_AGE).as_secs();
        let port = endpoint.local_address().port();
        let alt_svc = (age > 0).then(|| format!("h3=\":{port}\"; ma={age}"));
        let tls = Arc::new(tls);
        let settings = Settings { tls, early };
        let mut shared = Shared::new(endpoint, settings, self.limits, alt_svc);
        shared.features = self.features;
        Ok(Server {
            shared: Arc::new(shared),
            tcp,
        })
    }
}
