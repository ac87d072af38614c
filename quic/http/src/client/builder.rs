//! Settings of clients.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use hybriq::{ClientConfig, error::ConfigError};
use tokio_rustls::TlsConnector;

use super::{
    Client,
    connections::{
        Http3, HttpsResolver, Limits, Lookup, OfferedHosts, Pool, Quic, Resolver, Shared, Times,
    },
    origin::Origin,
    tcp::{self, Proxy},
};
use crate::{usage::Idle, versions::http3::Reserved};

/// Bounds of the keep-alive time over TCP: systems accept neither fractions of a second nor days.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3600));

/// Settings of a [`Client`](crate::Client). Start from [`Client::builder`](crate::Client::builder).
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use hybriq::{ClientConfig, KeyExchange};
/// use hybriq_http::{Client, Http3};
///
/// # fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let config = ClientConfig::new().key_exchange(KeyExchange::RequirePostQuantum);
/// let client = Client::builder()
///     .connect_timeout(Duration::from_secs(5))
///     .http3_for("example.com", 443, Http3::First)
///     .build(config)?;
/// # Ok(())
/// # }
/// ```
pub struct ClientBuilder {
    http3: Http3,
    http3_for: Vec<(Origin, Http3)>,
    times: Times,
    idle_timeout: Duration,
    keep_alive: Duration,
    header_list: u64,
    reserved: Reserved,
    max_idle: usize,
    limits: Limits,
    lookup: Lookup,
    proxy: Option<Proxy>,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            http3: Http3::Discover,
            http3_for: Vec::new(),
            times: Times {
                connect: Duration::from_secs(10),
                delay: Duration::from_millis(250),
                go_ahead: Duration::from_secs(1),
            },
            idle_timeout: Duration::from_secs(90),
            keep_alive: Duration::from_secs(10),
            header_list: 64 << 10,
            reserved: Reserved::default(),
            max_idle: 256,
            limits: Limits {
                servers: 256,
                http1: 16,
                shared: 1,
                offered: OfferedHosts::default(),
            },
            lookup: Lookup {
                fixed: HashMap::new(),
                resolver: None,
                records: None,
            },
            proxy: None,
        }
    }
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("http3", &self.http3)
            .field("http3_for", &self.http3_for)
            .field("times", &self.times)
            .field("idle_timeout", &self.idle_timeout)
            .field("max_idle", &self.max_idle)
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// Sets when HTTP/3 is used. Default: [`Http3::Discover`].
    #[must_use]
    pub fn http3(mut self, http3: Http3) -> Self {
        self.http3 = http3;
        self
    }

    /// Sets when HTTP/3 is used with one server, identified by host and port, for example because it is known to
    /// support HTTP/3. Default: the setting for all servers.
    #[must_use]
    pub fn http3_for(mut self, host: &str, port: u16, http3: Http3) -> Self {
        self.http3_for.push((Origin::new(host, port), http3));
        self
    }

    /// Sets which hosts a server may offer with `alt-svc` to answer its requests over HTTP/3. Default: only its own,
    /// [`OfferedHosts::Same`].
    #[must_use]
    pub fn offered_hosts(mut self, hosts: OfferedHosts) -> Self {
        self.limits.offered = hosts;
        self
    }

    /// Sets the longest time to connect, including the name lookup and the TLS handshake. Default: 10 s.
    #[must_use]
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.times.connect = time;
        self
    }

    /// Sets how long to wait for an answer before the client also tries the server's next address, or TCP in addition
    /// to QUIC (RFC 8305 §5). Default: 250 ms.
    #[must_use]
    pub fn attempt_delay(mut self, time: Duration) -> Self {
        self.times.delay = time;
        self
    }

    /// Sets how long the body of a request with `expect: 100-continue` (RFC 9110 §10.1.1) waits for the server's 100;
    /// after that time it is sent anyway. If the final response arrives first, the body is not sent at all over HTTP/3;
    /// over HTTP/1.1 it is, because the connection needs it. Over HTTP/2 the body does not wait, because hyper does not
    /// report the 100. Default: 1 s.
    #[must_use]
    pub fn continue_timeout(mut self, time: Duration) -> Self {
        self.times.go_ahead = time;
        self
    }

    /// Sets the time after which a connection without requests is closed. A request ends with its response: if the
    /// server answers early, the rest of the request body is sent for at most this time. Default: 90 s.
    #[must_use]
    pub fn idle_timeout(mut self, time: Duration) -> Self {
        self.idle_timeout = time;
        self
    }

    /// Sets the silence after which the client checks whether the server is still there: over QUIC at most half the
    /// [idle timeout of the transport](hybriq::TransportConfig::idle_timeout), over TCP between 1 s and an hour. A
    /// server that does not answer counts as gone: over QUIC after that timeout, over HTTP/2 after 20 s, over
    /// HTTP/1.1 when the system gives up. Default: 10 s.
    #[must_use]
    pub fn keep_alive(mut self, time: Duration) -> Self {
        self.keep_alive = time;
        self
    }

    /// Sets the largest size of a response's fields in bytes, where each field counts 32 bytes extra (RFC 9114
    /// §4.2.2). Larger values than [`MAX_FIELD_SECTION`](hybriq_h3::MAX_FIELD_SECTION), 792 KiB, count as that: a
    /// header map holds at most 24,576 fields. Default: 64 KiB.
    #[must_use]
    pub fn header_list(mut self, bytes: u64) -> Self {
        self.header_list = bytes.min(hybriq_h3::MAX_FIELD_SECTION);
        self
    }

    /// Does not send reserved values over HTTP/3: a setting, a frame and a stream at the start of each connection, which
    /// mean nothing (RFC 9114 §7.2.4.1, §7.2.8 and §6.2.3). They keep servers tolerant of unknown values, so that later
    /// extensions remain possible. Default: they are sent.
    #[must_use]
    pub fn without_grease(mut self) -> Self {
        self.reserved = Reserved::None;
        self
    }

    /// Sets the largest number of connections without requests. A connection whose requests end while there are as
    /// many is closed. Default: 256.
    #[must_use]
    pub fn max_idle(mut self, connections: usize) -> Self {
        self.max_idle = connections;
        self
    }

    /// Sets the largest number of servers whose connections and offers of HTTP/3 are remembered. Servers in use are
    /// always remembered. Default: 256.
    #[must_use]
    pub fn max_servers(mut self, servers: usize) -> Self {
        self.limits.servers = servers;
        self
    }

    /// Sets the largest number of HTTP/1.1 connections to a server, each of which carries one request at a time.
    /// Further requests wait. Default: 16.
    #[must_use]
    pub fn max_http1(mut self, connections: usize) -> Self {
        self.limits.http1 = connections;
        self
    }

    /// Sets the largest number of HTTP/2 connections to a server, and of HTTP/3 connections. Servers take a limited
    /// number of requests at once on a connection, often 100. With 1, the 101st request waits until another one ends;
    /// with more, it opens another connection, and waits if there are as many. Default: 1.
    #[must_use]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.limits.shared = connections;
        self
    }

    /// Sets a proxy for TCP. All requests go through it, except those that it [excepts](Proxy::except), and do not use
    /// HTTP/3. Default: none; the client reads no variables of the environment.
    ///
    /// # Examples
    /// ```
    /// use hybriq_http::{Client, Proxy};
    ///
    /// # fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let proxy: Proxy = "socks5://proxy.example:1080".parse()?;
    /// let proxy = proxy.credentials("me", "secret")?.except("intranet.example");
    /// let builder = Client::builder().proxy(proxy);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = Some(proxy);
        self
    }

    /// Sets the addresses of a host, which is then not looked up. Port 0 stands for the port of the URI. Default:
    /// none.
    #[must_use]
    pub fn resolve(mut self, host: &str, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        let origin = Origin::new(host, 0);
        let addresses = addresses.into_iter().collect();
        self.lookup
            .fixed
            .insert(origin.host().to_owned(), addresses);
        self
    }

    /// Sets the function that resolves a host by name and port. Default: the system's resolver.
    ///
    /// # Examples
    /// ```
    /// use std::net::{Ipv6Addr, SocketAddr};
    ///
    /// use hybriq_http::Client;
    ///
    /// let builder = Client::builder().resolver(async |_name, port| {
    ///     Ok(vec![SocketAddr::from((Ipv6Addr::LOCALHOST, port))])
    /// });
    /// ```
    #[must_use]
    pub fn resolver<F, R>(mut self, resolver: F) -> Self
    where
        F: Fn(String, u16) -> R + Send + Sync + 'static,
        R: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static,
    {
        let resolver: Resolver = Box::new(move |host, port| Box::pin(resolver(host, port)));
        self.lookup.resolver = Some(resolver);
        self
    }

    /// Sets where HTTPS records (RFC 9460) come from, such as `SystemRecords` with the feature `https-records`. Default:
    /// nowhere.
    ///
    /// The records of a server are looked up before a connection, together with its addresses. They name what it speaks:
    /// with `alpn=h3` the first request goes over QUIC without an earlier offer by `alt-svc`, unless [`Http3::Off`] rules
    /// it out. They also name another host, port and addresses for both transports (the rules for ports are those of
    /// [`OfferedHosts`]), and the groups with which a handshake over QUIC begins. Aliases are followed, up to eight.
    /// Encrypted Client Hello is not supported.
    ///
    /// Servers without records, or with malformed ones, are connected to as if this were not set, and so are servers whose
    /// records lead nowhere. The client waits for records at most 50 ms longer than for the addresses. Hosts with fixed
    /// addresses ([`resolve`](Self::resolve)) are not looked up.
    #[must_use]
    pub fn https_records(mut self, resolver: impl HttpsResolver) -> Self {
        self.lookup.records = Some(Arc::new(resolver));
        self
    }

    /// Creates the client. Trust, certificate, key exchange, 0-RTT and transport come from the configuration, over
    /// TCP too; its application protocols are replaced.
    ///
    /// # Errors
    /// An option cannot be used; the error names it.
    pub fn build(self, config: ClientConfig) -> Result<Client, ConfigError> {
        let tls = config.tcp(tcp::ALPN)?;
        let tls = tls.config();
        let mut http1 = (*tls).clone();
        http1.alpn_protocols = vec![tcp::HTTP1.into()];
        let keep_alive = self.keep_alive;
        let config = config.alpn([hybriq_h3::ALPN]);
        let config = config.transport_options(|transport| transport.keep_alive(keep_alive));
        // Builds the provider, so that its errors are reported here.
        config.setup()?;
        Ok(Client::of(Shared {
            pool: Pool::new(self.limits, config.servers()),
            quic: Quic {
                config,
                endpoint: Mutex::default(),
                reserved: self.reserved,
            },
            tcp: tcp::Settings {
                tls: TlsConnector::from(tls),
                http1: TlsConnector::from(Arc::new(http1)),
                header_list: self.header_list,
                idle_time: self.idle_timeout,
                keep_alive: keep_alive.clamp(KEEP_ALIVE.0, KEEP_ALIVE.1),
                idle: Arc::new(Idle::new(self.max_idle)),
                proxy: self.proxy,
            },
            lookup: Arc::new(self.lookup),
            times: self.times,
            http3: self.http3,
            http3_for: self.http3_for,
        }))
    }
}
