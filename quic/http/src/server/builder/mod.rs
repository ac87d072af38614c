//! Settings of servers.

mod sockets;
mod worst_case;

use std::{net::ToSocketAddrs, sync::Arc, time::Duration};

use hybriq::{EndpointBuilder, ServerConfig};

use self::sockets::Protocols;
use super::{
    Misdirected, Server,
    state::{ALPN_TCP, Connect, Features, Hints, Settings, Shared},
};
use crate::{Limits, webtransport};
pub use sockets::BindError;
pub use worst_case::WorstCaseMemory;

/// Default of [`ServerBuilder::alt_svc_age`].
const ALT_SVC_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Settings of a [`Server`]. Start from [`Server::builder`].
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
        f.debug_struct("ServerBuilder")
            .field("limits", &self.limits)
            .field("protocols", &self.protocols)
            .field("alt_svc_age", &self.alt_svc_age)
            .field("features", &self.features)
            .finish_non_exhaustive()
    }
}

impl ServerBuilder {
    /// Sets the options of the QUIC endpoint, such as workers and connection limits. Its server configuration is
    /// replaced.
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

    /// Serves HTTP/3 only. Default: also HTTP/1.1 and HTTP/2 over TCP.
    #[must_use]
    pub fn without_tcp(mut self) -> Self {
        self.protocols = Protocols::Http3Only;
        self
    }

    /// Sets how long clients remember that the server speaks HTTP/3 (the `ma` of `Alt-Svc`, RFC 7838 §3.1), in whole
    /// seconds. With 0, no `Alt-Svc` is sent. Default: 24 hours.
    #[must_use]
    pub fn alt_svc_age(mut self, age: Duration) -> Self {
        self.alt_svc_age = Some(age);
        self
    }

    /// Allows extended CONNECT requests over HTTP/2 (RFC 8441) and HTTP/3 (RFC 9220), which carry an
    /// [`Upgrade`](crate::Upgrade) for the service. Browsers then send WebSockets over HTTP/2, so the service must
    /// support that. Default: not allowed.
    #[must_use]
    pub fn extended_connect(mut self) -> Self {
        self.features.connect = Connect::Extended;
        self
    }

    /// Allows WebTransport sessions over HTTP/3, within these limits. A request for a session carries a
    /// [`WebTransport`](webtransport::WebTransport) for the service. Default: not allowed.
    #[must_use]
    pub fn webtransport(mut self, limits: webtransport::Limits) -> Self {
        self.features.webtransport = Some(limits);
        self
    }

    /// Lets the service send interim responses (1xx), such as early hints (103): its requests carry an
    /// [`Interim`](crate::Interim). Default: they do not, which saves some work on each request.
    #[must_use]
    pub fn interim_responses(mut self) -> Self {
        self.features.interim = Hints::Sent;
        self
    }

    /// Sets which requests are answered with 421, because their connection was made for another host. Default:
    /// [`Misdirected::Elsewhere`].
    #[must_use]
    pub fn misdirected(mut self, misdirected: Misdirected) -> Self {
        self.features.misdirected = misdirected;
        self
    }

    /// Returns the memory that clients can make a server with these settings and this configuration hold, for
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

    /// Creates the server; see [`Server::bind`].
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
