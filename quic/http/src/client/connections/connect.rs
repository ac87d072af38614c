//! Connects to servers: over QUIC first if they are known to speak HTTP/3, and over TCP if that fails or takes long.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hybriq::{
    ClientConfig, ConnectError, EarlyConnection, Endpoint, EndpointError,
    memory::ServerKey,
    tls::{EarlyData, SupportedGroups},
};
use tokio::{sync::watch, time::Instant};

use super::{
    addresses::Lookup,
    pool::{Http3, Pool, Progress},
    route::{Candidates, Route},
};
use crate::{
    client::{
        error::{ClientError, ProxyError, QuicError},
        http3::{self, Established, Handshake, Remembered},
        origin::Origin,
        tcp,
    },
    usage::Usage,
    versions::http3::{Reserved, Transport},
};

/// The state that the requests of a client share.
pub(in crate::client) struct Shared {
    pub(in crate::client) pool: Pool,
    pub(in crate::client) quic: Quic,
    pub(in crate::client) tcp: tcp::Settings,
    pub(in crate::client) lookup: Arc<Lookup>,
    pub(in crate::client) times: Times,
    pub(in crate::client) http3: Http3,
    /// Exceptions from `http3`.
    pub(in crate::client) http3_for: Vec<(Origin, Http3)>,
}

/// Time limits for connecting, and for going ahead.
#[derive(Clone, Copy, Debug)]
pub(in crate::client) struct Times {
    /// Longest time to connect.
    pub(in crate::client) connect: Duration,
    /// Time after which the next address is tried, or TCP in addition to QUIC.
    pub(in crate::client) delay: Duration,
    /// Time after which the body of a request with `expect: 100-continue` is sent in any case.
    pub(in crate::client) go_ahead: Duration,
}

/// The endpoint of QUIC connections, and its configuration.
pub(in crate::client) struct Quic {
    pub(in crate::client) config: ClientConfig,
    pub(in crate::client) endpoint: Mutex<Option<Endpoint>>,
    pub(in crate::client) reserved: Reserved,
}

impl Quic {
    /// Returns the endpoint, which is created with the first connection.
    fn endpoint(&self) -> Result<Endpoint, EndpointError> {
        let mut endpoint = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(endpoint) = &*endpoint {
            return Ok(endpoint.clone());
        }
        let config = &self.config;
        let made = Endpoint::client(config.clone()).or_else(|error| {
            // A machine without IPv6.
            let over_v4 = Endpoint::builder().client(config.clone());
            let over_v4 = over_v4.bind((Ipv4Addr::UNSPECIFIED, 0));
            over_v4.map_err(|_| error)
        })?;
        Ok(endpoint.insert(made).clone())
    }

    /// Forgets the endpoint, which ends with its runtime.
    fn forget_endpoint(&self) {
        *self.endpoint.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Moves to another socket.
    pub(in crate::client) fn rebind(&self) -> Result<(), EndpointError> {
        let endpoint = self.endpoint.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(endpoint) = &*endpoint {
            let rebound = endpoint.rebind((Ipv6Addr::UNSPECIFIED, 0));
            rebound.or_else(|_| endpoint.rebind((Ipv4Addr::UNSPECIFIED, 0)))?;
        }
        Ok(())
    }
}

impl Shared {
    /// Returns when HTTP/3 is used with a server.
    pub(in crate::client) fn http3_for(&self, origin: &Origin) -> Http3 {
        let mut exceptions = self.http3_for.iter().rev();
        let exception = exceptions.find(|(server, _)| server == origin);
        exception.map_or(self.http3, |(_, http3)| *http3)
    }

    /// Returns when HTTP/3 is used for a request: never through a proxy for TCP. Proxies for UDP (RFC 9298) would have
    /// their place here.
    ///
    /// # Errors
    /// The request must go over HTTP/3 and through a proxy.
    pub(in crate::client) fn version_for(&self, origin: &Origin) -> Result<Http3, ClientError> {
        match (self.http3_for(origin), self.tcp.proxy_for(origin)) {
            (http3, None) => Ok(http3),
            (Http3::Only, Some(proxy)) => Err(ClientError::Proxy {
                server: origin.to_string(),
                proxy: proxy.place().to_string(),
                cause: Arc::new(ProxyError::Http3),
            }),
            (_, Some(_)) => Ok(Http3::Off),
        }
    }

    /// Returns the error of a request for which no connection could be made.
    pub(in crate::client) fn not_connected(
        &self,
        origin: &Origin,
        quic: Option<QuicError>,
        tcp: Option<io::Error>,
    ) -> ClientError {
        let proxy = self.tcp.proxy_for(origin);
        let proxy = proxy.map(|proxy| proxy.place().to_string());
        ClientError::connect(origin.to_string(), quic, tcp, proxy)
    }

    /// Connects in its own task, which continues even if no request waits any longer. A request that has left HTTP/3
    /// goes over TCP, regardless of the records.
    pub(in crate::client) fn connect(
        self: &Arc<Self>,
        origin: Origin,
        http3: Http3,
        place: Option<Origin>,
        progress: watch::Sender<Progress>,
    ) {
        let shared = self.clone();
        tokio::spawn(async move {
            let route = shared.route(&origin).await;
            let is_discovered =
                place.is_none() && http3 == Http3::Discover && route.way.offers_http3();
            let place = match place {
                None if is_discovered => shared.pool.discover(&origin, Instant::now()),
                place => place,
            };
            let connected = match place {
                None => {
                    let over_tcp = shared.over_tcp(&origin, &route).await;
                    over_tcp.map_err(|tcp| (None, Some(tcp)))
                }
                Some(place) if http3 == Http3::Only => {
                    let over_quic = shared.over_quic(&origin, &place, &route, &progress);
                    over_quic.await.map_err(|quic| (Some(quic), None))
                }
                Some(place) => shared.race(&origin, place, &route, &progress).await,
            };
            let connected =
                connected.map_err(|(quic, tcp)| shared.not_connected(&origin, quic, tcp));
            progress.send_replace(Progress::Done(connected));
        });
    }

    /// Tries a QUIC connection while one over TCP is used.
    pub(in crate::client) fn upgrade(self: &Arc<Self>, origin: Origin, place: Origin) {
        let shared = self.clone();
        tokio::spawn(async move {
            let (progress, _) = watch::channel(Progress::Connecting);
            let route = shared.route(&origin).await;
            let quic = shared.over_quic(&origin, &place, &route, &progress);
            shared.judge(&origin, &place, quic.await);
        });
    }

    /// Connects over QUIC, and also over TCP if that fails or takes long.
    async fn race(
        self: &Arc<Self>,
        origin: &Origin,
        place: Origin,
        route: &Timed,
        progress: &watch::Sender<Progress>,
    ) -> Result<(), (Option<QuicError>, Option<io::Error>)> {
        let mut quic = {
            let (shared, origin, place) = (self.clone(), origin.clone(), place.clone());
            let (route, progress) = (route.clone(), progress.clone());
            Box::pin(async move { shared.over_quic(&origin, &place, &route, &progress).await })
        };
        let early = tokio::time::timeout(self.times.delay, &mut quic).await;
        let mut tcp = pin!(self.over_tcp(origin, route));
        let failed = match early {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(failed)) => failed,
            Err(_) => tokio::select! {
                ended = &mut quic => match ended {
                    Ok(()) => return Ok(()),
                    Err(failed) => failed,
                },
                ended = &mut tcp => match ended {
                    Ok(()) => {
                        // The QUIC connection may be ready for later requests.
                        let (shared, origin) = (self.clone(), origin.clone());
                        tokio::spawn(async move { shared.judge(&origin, &place, quic.await) });
                        return Ok(());
                    }
                    Err(tcp) => return quic.await.map_err(|quic| (Some(quic), Some(tcp))),
                },
            },
        };
        match tcp.await {
            Ok(()) => {
                self.judge(origin, &place, Err(failed));
                Ok(())
            }
            Err(tcp) => Err((Some(failed), Some(tcp))),
        }
    }

    /// Stops using a place for a while if HTTP/3 fails there although TCP works.
    fn judge(&self, origin: &Origin, place: &Origin, over_quic: Result<(), QuicError>) {
        if let Err(error) = over_quic {
            tracing::debug!(%origin, %place, %error, "HTTP/3 failed: not trying it for a while");
            self.pool.on_broken(origin, place, Instant::now());
        }
    }

    /// Connects over TCP, for the pool.
    async fn over_tcp(self: &Arc<Self>, origin: &Origin, route: &Timed) -> io::Result<()> {
        let connection = self.dial_by(origin, route, tcp::Offer::All).await?;
        self.pool.add_tcp(origin, connection);
        Ok(())
    }

    /// Finds the way to a server, or to the proxy on the way to it.
    async fn route(self: &Arc<Self>, origin: &Origin) -> Timed {
        let end = Instant::now() + self.times.connect;
        if let Some(proxy) = self.tcp.proxy_for(origin) {
            // The proxy looks up the server's name.
            let way = Route::without_records(&self.lookup, proxy.place());
            return Timed { way, end };
        }
        let way = tokio::time::timeout_at(end, Route::to(&self.lookup, origin)).await;
        let way = way.unwrap_or_else(|_| Route::without_records(&self.lookup, origin));
        Timed { way, end }
    }

    /// Connects over TCP.
    pub(in crate::client) async fn dial(
        self: &Arc<Self>,
        origin: &Origin,
        offer: tcp::Offer,
    ) -> io::Result<tcp::Connection> {
        let route = self.route(origin).await;
        self.dial_by(origin, &route, offer).await
    }

    async fn dial_by(
        self: &Arc<Self>,
        origin: &Origin,
        route: &Timed,
        offer: tcp::Offer,
    ) -> io::Result<tcp::Connection> {
        let proxy = self.tcp.proxy_for(origin);
        let of_proxy = |error| match proxy {
            Some(_) => io::Error::other(ProxyError::Io(error)),
            None => error,
        };
        let connect = |address| tcp::connect(&self.tcp, origin, address, offer);
        let candidates = route.way.over_tcp();
        let connected = candidates.first(self.times.delay, connect, of_proxy);
        let Ok(connected) = tokio::time::timeout_at(route.end, connected).await else {
            let time = self.times.connect;
            let text =
                format!("no answer within {time:?}; check the address, or raise connect_timeout");
            return Err(of_proxy(io::Error::new(io::ErrorKind::TimedOut, text)));
        };
        let (connection, task) = connected?;
        tokio::spawn(self.until_end(origin, task));
        Ok(connection)
    }

    /// Runs the task of a connection, and forgets the connection when the task ends.
    fn until_end<F: Future<Output = ()> + Send>(
        self: &Arc<Self>,
        origin: &Origin,
        task: F,
    ) -> impl Future<Output = ()> + Send + use<F> {
        let (shared, origin) = (Arc::downgrade(self), origin.clone());
        async move {
            task.await;
            if let Some(shared) = shared.upgrade() {
                shared.pool.prune(&origin);
            }
        }
    }

    /// Connects over QUIC, for the pool.
    async fn over_quic(
        self: &Arc<Self>,
        origin: &Origin,
        place: &Origin,
        route: &Timed,
        progress: &watch::Sender<Progress>,
    ) -> Result<(), QuicError> {
        let _tried = Tried(&self.pool, origin);
        let is_own = place == origin;
        let attempt = Attempt {
            shared: self,
            origin,
            place,
            progress,
            groups: route.way.groups().filter(|_| is_own),
            has_early: AtomicBool::new(false),
        };
        let connected = async {
            let candidates = if is_own {
                route.way.over_quic()
            } else {
                let mut addresses = self.lookup.find(place).await.map_err(QuicError::Resolve)?;
                self.pool.reach(origin, place).keep(&mut addresses);
                if addresses.is_empty() {
                    return Err(QuicError::Excluded);
                }
                Candidates::of(addresses)
            };
            let connect = |address| attempt.to(address);
            let connected = candidates.first(self.times.delay, connect, QuicError::Resolve);
            connected.await
        };
        let connected = tokio::time::timeout_at(route.end, connected).await;
        let connected = connected.unwrap_or(Err(QuicError::TimedOut(self.times.connect)));
        connected.map(|http3| self.pool.add_http3(origin, http3))
    }
}

/// The way to a server, and the time by which a connection must be made.
#[derive(Clone)]
struct Timed {
    way: Route,
    end: Instant,
}

/// Reports the end of an attempt over QUIC when this is dropped.
struct Tried<'a>(&'a Pool, &'a Origin);

impl Drop for Tried<'_> {
    fn drop(&mut self) {
        self.0.on_quic_tried(self.1);
    }
}

/// An attempt to connect over QUIC, to several addresses.
struct Attempt<'a> {
    shared: &'a Arc<Shared>,
    origin: &'a Origin,
    place: &'a Origin,
    progress: &'a watch::Sender<Progress>,
    /// Groups to begin with.
    groups: Option<&'a SupportedGroups>,
    /// True once a connection was asked for early data.
    has_early: AtomicBool,
}

impl Attempt<'_> {
    /// Connects to an address.
    async fn to(&self, address: SocketAddr) -> Result<Arc<http3::Connection>, QuicError> {
        let quic = &self.shared.quic;
        match self.on(quic.endpoint()?, address).await {
            Err(QuicError::Connect(
                ConnectError::EndpointClosed
                | ConnectError::Connection(hybriq::ConnectionError::SocketFailed(_)),
            )) => {
                quic.forget_endpoint();
                self.on(quic.endpoint()?, address).await
            }
            connected => connected,
        }
    }

    /// Returns the configuration of a connection.
    fn config(&self) -> ClientConfig {
        let config = self.shared.quic.config.clone();
        match self.groups {
            Some(groups) => config.dns_groups(self.origin.host(), groups),
            None => config,
        }
    }

    /// Connects to an address by an endpoint.
    async fn on(
        &self,
        endpoint: Endpoint,
        address: SocketAddr,
    ) -> Result<Arc<http3::Connection>, QuicError> {
        let mut connecting;
        // Replayable requests go to one address only.
        if self.has_early.swap(true, Ordering::Relaxed) {
            connecting = endpoint.connect_with(self.config(), address, self.origin.host());
        } else {
            connecting = endpoint.connect_early_with(self.config(), address, self.origin.host());
            match connecting.early().await {
                Ok(early) => {
                    if let Some(http3) = self.early(early).await? {
                        return Ok(http3);
                    }
                    connecting = endpoint.connect_with(self.config(), address, self.origin.host());
                }
                Err(too_early) => connecting = too_early,
            }
        }
        let connection = connecting.await?;
        let established = Handshake::Complete(Established::new(connection.clone(), 0));
        let (_, handshake) = watch::channel(established);
        let transport = Transport::Established(connection.clone());
        let idle_time = self.shared.tcp.idle_time;
        let started = http3::start(transport, self.new_connection(handshake), idle_time);
        let (http3, task) = started.await?;
        connection.spawn(self.shared.until_end(self.origin, task));
        Ok(http3)
    }

    /// Offers a connection to requests before its handshake is complete. Returns `None` if the server refuses early
    /// data.
    async fn early(
        &self,
        early: EarlyConnection,
    ) -> Result<Option<Arc<http3::Connection>>, QuicError> {
        let (handshake, seen) = watch::channel(Handshake::Pending);
        let transport = Transport::Early(early.clone());
        let idle_time = self.shared.tcp.idle_time;
        let started = http3::start(transport, self.new_connection(seen), idle_time);
        let (http3, task) = started.await?;
        tokio::spawn(self.shared.until_end(self.origin, task));
        let unless = EndUnlessEstablished(http3.clone());
        self.progress.send_if_modified(|progress| {
            let first = matches!(progress, Progress::Connecting);
            if first {
                *progress = Progress::Early(http3.clone());
            }
            first
        });
        let mut others = self.progress.subscribe();
        let is_done = |progress: &Progress| matches!(progress, Progress::Done(_));
        let other = async { drop(others.wait_for(is_done).await) };
        let completed = tokio::select! {
            completed = early.complete() => completed,
            () = other => {
                handshake.send_replace(Handshake::Slow);
                early.complete().await
            }
        };
        let outcome = match completed? {
            (connection, EarlyData::Accepted) => {
                let established = Established::new(connection, http3.usage().exchanges());
                handshake.send_replace(Handshake::Complete(established));
                Some(http3)
            }
            _ => None,
        };
        drop(unless);
        Ok(outcome)
    }

    fn new_connection(&self, handshake: watch::Receiver<Handshake>) -> http3::New {
        http3::New {
            usage: Usage::new(self.shared.tcp.idle.clone()),
            handshake,
            place: self.place.clone(),
            header_list: self.shared.tcp.header_list,
            reserved: self.shared.quic.reserved,
            remembered: Remembered {
                servers: self.shared.quic.config.servers(),
                server: ServerKey::new(self.origin.host()),
            },
        }
    }
}

/// Ends a connection unless its handshake becomes complete.
struct EndUnlessEstablished(Arc<http3::Connection>);

impl Drop for EndUnlessEstablished {
    fn drop(&mut self) {
        if !self.0.is_established() {
            self.0.usage().end();
        }
    }
}
