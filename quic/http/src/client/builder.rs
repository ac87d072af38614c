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
    connections::{Http3, Limits, Lookup, OfferedHosts, Pool, Quic, Resolver, Shared, Times},
    origin::Origin,
    tcp,
};
use crate::usage::Idle;

/// Bounds of the time between signs of life over TCP: systems take no fractions, and no days.
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
    max_idle: usize,
    limits: Limits,
    lookup: Lookup,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            http3: Http3::Discover,
            http3_for: Vec::new(),
            times: Times {
                connect: Duration::from_secs(10),
                delay: Duration::from_millis(250),
            },
            idle_timeout: Duration::from_secs(90),
            keep_alive: Duration::from_secs(10),
            header_list: 64 << 10,
            max_idle: 256,
            limits: Limits {
                servers: 256,
                http1: 16,
                offered: OfferedHosts::default(),
            },
            lookup: Lookup {
                fixed: HashMap::new(),
                resolver: None,
            },
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
            .finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// Sets the use of HTTP/3. Default: [`Http3::Discover`].
    #[must_use]
    pub fn http3(mut self, http3: Http3) -> Self {
        self.http3 = http3;
        self
    }

    /// Sets the use of HTTP/3 with one server, by host and port, for example because it is known to speak
    /// it. Default: that of all servers.
    #[must_use]
    pub fn http3_for(mut self, host: &str, port: u16, http3: Http3) -> Self {
        self.http3_for.push((Origin::new(host, port), http3));
        self
    }

    /// Sets which hosts a server may offer by `alt-svc` to be asked over HTTP/3 in its place. Default: its own,
    /// [`OfferedHosts::Same`].
    #[must_use]
    pub fn offered_hosts(mut self, hosts: OfferedHosts) -> Self {
        self.limits.offered = hosts;
        self
    }

    /// Sets the longest time to connect, with the lookup of the name and the TLS handshake. Default: 10 s.
    #[must_use]
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.times.connect = time;
        self
    }

    /// Sets the time after which the next address of a server is tried, and TCP beside QUIC, while there is
    /// no answer (RFC 8305 §5). Default: 250 ms.
    #[must_use]
    pub fn attempt_delay(mut self, time: Duration) -> Self {
        self.times.delay = time;
        self
    }

    /// Sets the time after which a connection without requests is closed. A request ends with its response: the
    /// rest of its body, if the server has answered early, is sent no longer than that. Default: 90 s.
    #[must_use]
    pub fn idle_timeout(mut self, time: Duration) -> Self {
        self.idle_timeout = time;
        self
    }

    /// Sets the silence after which a server is asked for a sign of life: over QUIC at most half the
    /// [idle timeout of the transport](hybriq::TransportConfig::idle_timeout), over TCP from 1 s to an
    /// hour. A server
    /// that gives none is gone: over QUIC after that timeout, over HTTP/2 after 20 s, over HTTP/1.1 when the
    /// system gives it up. Default: 10 s.
    #[must_use]
    pub fn keep_alive(mut self, time: Duration) -> Self {
        self.keep_alive = time;
        self
    }

    /// Sets the largest size of the fields of a response, in bytes, each counted with 32 bytes more (RFC
    /// 9114 §4.2.2). At most [`MAX_FIELD_SECTION`](hybriq_h3::MAX_FIELD_SECTION), 792 KiB, is used: a map of
    /// fields takes no more than 24,576. Default: 64 KiB.
    #[must_use]
    pub fn header_list(mut self, bytes: u64) -> Self {
        self.header_list = bytes.min(hybriq_h3::MAX_FIELD_SECTION);
        self
    }

    /// Sets the largest number of connections without requests. One that is done while there are as many is
    /// closed. Default: 256.
    #[must_use]
    pub fn max_idle(mut self, connections: usize) -> Self {
        self.max_idle = connections;
        self
    }

    /// Sets the number of servers whose connections and offers of HTTP/3 are remembered. Servers in use are
    /// remembered in any case. Default: 256.
    #[must_use]
    pub fn max_servers(mut self, servers: usize) -> Self {
        self.limits.servers = servers;
        self
    }

    /// Sets the largest number of connections of HTTP/1.1 to a server, which take one request each. Further
    /// requests wait. Default: 16.
    #[must_use]
    pub fn max_http1(mut self, connections: usize) -> Self {
        self.limits.http1 = connections;
        self
    }

    /// Sets the addresses of a host, which is not looked up then. Port 0 stands for the port of the URI.
    /// Default: none.
    #[must_use]
    pub fn resolve(mut self, host: &str, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        let origin = Origin::new(host, 0);
        let addresses = addresses.into_iter().collect();
        self.lookup
            .fixed
            .insert(origin.host().to_owned(), addresses);
        self
    }

    /// Sets the function that looks hosts up, by name and port. Default: that of the system.
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

    /// Makes the client. Trust, certificate, key exchange, 0-RTT and transport are those of the
    /// configuration, over TCP too; its application protocols are replaced.
    ///
    /// # Errors
    /// Names the option that cannot be used.
    pub fn build(self, config: ClientConfig) -> Result<Client, ConfigError> {
        let tls = config.tcp(tcp::ALPN)?;
        let keep_alive = self.keep_alive;
        let config = config.alpn([hybriq_h3::ALPN]);
        let config = config.transport_options(|transport| transport.keep_alive(keep_alive));
        // Builds the provider, whose errors are told here.
        config.setup()?;
        Ok(Client::of(Shared {
            pool: Pool::new(self.limits),
            quic: Quic {
                config,
                endpoint: Mutex::default(),
            },
            tcp: tcp::Settings {
                tls: TlsConnector::from(tls.config()),
                header_list: self.header_list,
                idle_time: self.idle_timeout,
                keep_alive: keep_alive.clamp(KEEP_ALIVE.0, KEEP_ALIVE.1),
                idle: Arc::new(Idle::new(self.max_idle)),
            },
            lookup: self.lookup,
            times: self.times,
            http3: self.http3,
            http3_for: self.http3_for,
        }))
    }
}
