//! Settings of servers.

mod alt_svc;
mod sockets;
mod worst_case;

use std::{
    net::{TcpListener, ToSocketAddrs, UdpSocket},
    path::Path,
    sync::Arc,
    time::Duration,
};

use hybriq::{
    EndpointBuilder, ServerConfig, Workers,
    fleet::{CidGenerator, FleetKeys},
};

use self::sockets::{Protocols, Sockets};
use super::{
    Misdirected, ProxyProtocol, Server,
    http3::for_http3,
    state::{Connect, Features, Hints, Settings, Shared},
};
use crate::{Limits, versions::http3::Reserved, webtransport};
pub use alt_svc::AltSvc;
pub use sockets::BindError;
pub use worst_case::WorstCaseMemory;

/// Settings of a [`Server`]. Start from [`Server::builder`].
#[derive(Default)]
pub struct ServerBuilder {
    endpoint: EndpointBuilder,
    limits: Limits,
    protocols: Protocols,
    alt_svc: AltSvc,
    alt_svc_age: Option<Duration>,
    proxies: Vec<ProxyProtocol>,
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

    /// Sets the limits on what a client may cost. Default: [`Limits::default`].
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

    /// Sets where clients are told to find HTTP/3. Default: [`AltSvc::Local`].
    ///
    /// # Examples
    /// ```
    /// use hybriq_http::{AltSvc, Server};
    ///
    /// // UDP port 443 is redirected to the port that the server is bound to.
    /// let builder = Server::builder().alt_svc(AltSvc::Port(443));
    /// ```
    #[must_use]
    pub fn alt_svc(mut self, alt_svc: AltSvc) -> Self {
        self.alt_svc = alt_svc;
        self
    }

    /// Expects a header of the PROXY protocol at the start of TCP connections, on all listeners or on those of [one
    /// port](ProxyProtocol::on_port). May be called for several ports; the first that applies counts. Default: none.
    #[must_use]
    pub fn proxy_protocol(mut self, proxies: ProxyProtocol) -> Self {
        self.proxies.push(proxies);
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
        self.features.connect = self.features.connect.max(Connect::Extended);
        self
    }

    /// Allows requests for UDP proxying (RFC 9298) over all versions: [`extended_connect`](Self::extended_connect) with
    /// HTTP Datagrams (RFC 9297). A [`masque::Proxy`](crate::masque::Proxy) around the service answers them, and limits
    /// what they cost: [`WorstCaseMemory`] has no tunnels. Default: not allowed.
    #[must_use]
    pub fn connect_udp(mut self) -> Self {
        self.features.connect = Connect::Udp;
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

    /// Does not send reserved values over HTTP/3: a setting, a frame and a stream at the start of each connection, which
    /// mean nothing (RFC 9114 §7.2.4.1, §7.2.8 and §6.2.3). They keep clients tolerant of unknown values, so that later
    /// extensions remain possible. Default: they are sent.
    #[must_use]
    pub fn without_grease(mut self) -> Self {
        self.features.reserved = Reserved::None;
        self
    }

    /// Sends a PING after this much silence while a request is in progress: over HTTP/3 and HTTP/2, and over HTTP/1.1 by
    /// the keep-alive of TCP, which takes whole seconds. Default: none over HTTP/3; over the others after
    /// [`Limits::stall_time`].
    ///
    /// A client that waits for a slow handler hears nothing. Its idle timeout (RFC 9000 §10.1), which the client
    /// chooses, then ends the connection, and NATs and firewalls forget its UDP port after 30 s or less. A time of 15 s
    /// keeps both from happening. Connections without a request still end after [`Limits::idle_time`];
    /// [`TransportConfig::keep_alive`](hybriq::TransportConfig::keep_alive) sends PINGs on those, too.
    #[must_use]
    pub fn keep_alive(mut self, silence: Duration) -> Self {
        self.features.keep_alive = Some(silence);
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
        mut self,
        address: impl ToSocketAddrs,
        config: ServerConfig,
    ) -> Result<Server, BindError> {
        let (endpoint, settings) = self.configured(config)?;
        let sockets = sockets::bind(endpoint, address, self.protocols)?;
        self.start(sockets, settings)
    }

    /// Creates the server on sockets that are already open and bound: UDP sockets for HTTP/3, one for each worker and
    /// address (see [`EndpointBuilder::bind_sockets`]), and TCP listeners for HTTP/1.1 and HTTP/2, any number of them.
    /// The ports may differ: `Alt-Svc` names that of the first UDP socket. All sockets are made non-blocking.
    ///
    /// # Errors
    /// As for [`bind`](Self::bind); and if a socket is not of its kind and family, or there are none of a kind.
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    pub fn bind_sockets(
        mut self,
        udp: impl IntoIterator<Item = UdpSocket>,
        tcp: impl IntoIterator<Item = TcpListener>,
        config: ServerConfig,
    ) -> Result<Server, BindError> {
        let (endpoint, settings) = self.configured(config)?;
        let tcp = sockets::adopt(tcp.into_iter().collect(), self.protocols)?;
        let endpoint = endpoint.bind_sockets(udp)?;
        self.start(Sockets { endpoint, tcp }, settings)
    }

    /// Creates the server on the sockets of a service manager such as systemd, with as many workers as it passed UDP
    /// sockets for each address. First take the sockets for other purposes, by their names.
    ///
    /// # Errors
    /// The errors of [`bind_sockets`](Self::bind_sockets), and an error if a socket is left over that no server uses.
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    ///
    /// # Examples
    /// ```no_run
    /// use hybriq::{Identity, ServerConfig, fleet::ListenFds};
    /// use hybriq_http::Server;
    ///
    /// # fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = ServerConfig::new(Identity::from_pem_files("cert.pem", "key.pem")?);
    /// let given = ListenFds::take()?;
    /// let server = if given.is_empty() {
    ///     Server::bind("[::]:443", config)?
    /// } else {
    ///     Server::builder().listen_fds(given, config)?
    /// };
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(unix)]
    pub fn listen_fds(
        self,
        mut given: hybriq::fleet::ListenFds,
        config: ServerConfig,
    ) -> Result<Server, BindError> {
        let udp = given.udp()?;
        let tcp = given.tcp()?;
        given.finish()?;
        if udp.is_empty() {
            return Err(hybriq::EndpointError::NoSocket.into());
        }
        self.workers(udp.workers()).bind_sockets(udp, tcp, config)
    }

    /// Takes over the sockets of the process that waits at the path with [`Handle::hand_over`](super::Handle::hand_over),
    /// or [binds](Self::bind) the address if there is no such process. New clients go to this process, over all
    /// versions; the earlier one finishes with its own.
    ///
    /// Both processes must agree on what [`EndpointBuilder::take_over`] says. The path is that of a socket in a folder of
    /// the service; hand the server over to a later process with [`Handle::hand_over`](super::Handle::hand_over).
    ///
    /// # Errors
    /// As for [`bind`](Self::bind) and [`EndpointBuilder::take_over`].
    ///
    /// # Cancel safety
    /// If the future is dropped, nothing is taken over, and the earlier process continues as before.
    ///
    /// # Panics
    /// The tokio runtime was built without its I/O or time driver; use `enable_all`.
    pub async fn take_over_or_bind(
        mut self,
        path: impl AsRef<Path>,
        address: impl ToSocketAddrs,
        config: ServerConfig,
    ) -> Result<Server, BindError> {
        let (endpoint, settings) = self.configured(config)?;
        let protocols = self.protocols;
        let sockets = sockets::take_over_or_bind(endpoint, path.as_ref(), address, protocols);
        let sockets = Box::pin(sockets).await?;
        self.start(sockets, settings)
    }

    /// Returns the builder of the endpoint and the settings of TCP for a configuration.
    fn configured(
        &mut self,
        config: ServerConfig,
    ) -> Result<(EndpointBuilder, Settings), BindError> {
        self.alt_svc.check()?;
        self.check_times()?;
        let (config, settings) = Settings::of(config, None)?;
        let endpoint = std::mem::take(&mut self.endpoint);
        let endpoint = endpoint.server(for_http3(config, &self.limits, self.features));
        Ok((endpoint, settings))
    }

    /// Checks that no time is 0 that would end everything at once.
    fn check_times(&self) -> Result<(), BindError> {
        let times = [
            ("ServerBuilder::keep_alive", self.features.keep_alive),
            ("Limits::header_time", Some(self.limits.header_time)),
            ("Limits::stall_time", Some(self.limits.stall_time)),
            ("Limits::idle_time", Some(self.limits.idle_time)),
        ];
        let zero = times
            .into_iter()
            .find(|(_, time)| *time == Some(Duration::ZERO));
        zero.map_or(Ok(()), |(setting, _)| Err(BindError::NoTime(setting)))
    }

    fn start(self, sockets: Sockets, settings: Settings) -> Result<Server, BindError> {
        let Sockets { endpoint, tcp } = sockets;
        let has = |port| {
            let mut addresses = tcp.iter().filter_map(|listener| listener.local_addr().ok());
            addresses.any(|address| address.port() == port)
        };
        let ports = self.proxies.iter().filter_map(ProxyProtocol::port);
        if let Some(port) = ports.into_iter().find(|port| !has(*port)) {
            return Err(BindError::ProxyPort(port));
        }
        let port = endpoint.local_address().port();
        let alt_svc = self.alt_svc.field(port, self.alt_svc_age);
        let mut shared = Shared::new(endpoint, settings, self.limits, alt_svc);
        shared.features = self.features;
        shared.proxies = self.proxies;
        shared.listeners = tcp.iter().map(Arc::downgrade).collect();
        Ok(Server {
            shared: Arc::new(shared),
            tcp,
        })
    }
}

/// Writes setters that pass their value on to the builder of the endpoint, whose documentation says what it means.
macro_rules! endpoint_setters {
    ($($(#[$attribute:meta])* $name:ident($value:ident: $type:ty), $what:literal;)*) => {
        impl ServerBuilder {
            $(
                #[doc = $what]
                #[doc = ""]
                #[doc = concat!(
                    "The same as [`EndpointBuilder::", stringify!($name), "`](hybriq::EndpointBuilder::",
                    stringify!($name), "), which see."
                )]
                $(#[$attribute])*
                #[must_use]
                pub fn $name(mut self, $value: $type) -> Self {
                    self.endpoint = self.endpoint.$name($value);
                    self
                }
            )*
        }
    };
}

endpoint_setters! {
    workers(workers: impl Into<Workers>), "Sets the number of QUIC workers. Default: 1.";
    fleet_keys(keys: &FleetKeys), "Sets the keys of tokens and resets, which processes and machines of one service share. \
        Session tickets have theirs from [`ServerConfig::tickets`](hybriq::ServerConfig::tickets). Default: random keys.";
    cid_generator(generator: impl CidGenerator + 'static), "Sets the generator of QUIC connection ids. Default: random ids \
        of 8 bytes.";
    max_connections(connections: usize), "Sets the largest number of QUIC connections at once; \
        [`Limits::tcp_connections`](crate::Limits::tcp_connections) bounds those over TCP. Default: no limit.";
    name(name: impl Into<Arc<str>>), "Sets the name of the server in metrics (feature `metrics`) and traces. Default: \
        none.";
    #[cfg(feature = "qlog")]
    qlog(qlog: &hybriq::qlog::Qlog), "Logs the QUIC connections for tools such as qvis. Default: none.";
}
