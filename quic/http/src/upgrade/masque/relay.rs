//! The side of a tunnel that has the socket.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::BytesMut;
use http::StatusCode;
use tokio::{
    net::UdpSocket,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use super::{
    forward::room,
    target::{Host, Target},
    tunnel::{TunnelError, UdpTunnel},
};
use crate::{Peer, Tls};

/// The decision about a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The client may reach it.
    Allow,
    /// The client gets status 403, unless another address of the same name is allowed.
    Deny,
}

/// Limits on the tunnels of a [`Proxy`](super::Proxy).
///
/// # Examples
/// ```
/// let mut limits = hybriq_http::masque::Limits::default();
/// limits.tunnels = 10_000;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Largest number of tunnels, each of which has a UDP socket. Further requests get status 503. Default: 1024.
    pub tunnels: usize,
    /// Largest number of tunnels of one connection. Default: 64.
    pub tunnels_per_connection: usize,
    /// Largest number of names that are resolved at once; others wait. One connection may have a quarter of them in
    /// progress or waiting; further ones get status 503. Default: 32.
    pub lookups: usize,
    /// Time to resolve a name, including the wait for other names. Default: 5 s.
    pub lookup_time: Duration,
    /// Time after which an idle tunnel ends. At least 2 minutes are recommended (RFC 9298 §6.5). Default: 2 minutes.
    pub idle_time: Duration,
    /// Bytes of payloads that wait in a tunnel, in each direction. Each counts as 96 bytes in addition to its payload.
    /// The oldest are dropped when there are more. Default: 256 KiB.
    pub queue: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tunnels: 1024,
            tunnels_per_connection: 64,
            lookups: 32,
            lookup_time: Duration::from_secs(5),
            idle_time: Duration::from_secs(120),
            queue: super::tunnel::QUEUE,
        }
    }
}

/// Counters of a [`Proxy`](super::Proxy).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyStats {
    /// Tunnels that are open, or whose target is being looked up.
    pub open: usize,
    /// Tunnels that were accepted.
    pub accepted: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Payloads that were passed to targets.
    pub to_targets: u64,
    /// Payloads that were passed to clients.
    pub to_clients: u64,
    /// Payloads that were dropped: too large, more than a queue holds, or of an unknown context.
    pub dropped: u64,
}

pub(super) type Allow = dyn Fn(&Target, SocketAddr, &Peer) -> Decision + Send + Sync;
pub(super) type Resolve = dyn Fn(String, Lookup) -> Resolving + Send + Sync;
pub(super) type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// What the clones of a proxy share.
pub(super) struct Relays {
    pub(super) limits: Limits,
    places: Mutex<Places>,
    lookups: Arc<Semaphore>,
    accepted: AtomicU64,
    refused: AtomicU64,
    to_targets: AtomicU64,
    to_clients: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Default)]
struct Places {
    open: usize,
    /// Of each connection, which the address of its record identifies.
    by_connection: HashMap<usize, OfConnection>,
}

#[derive(Clone, Copy, Default)]
struct OfConnection {
    tunnels: usize,
    lookups: usize,
}

/// The place of a lookup among those that [`Limits`] allow, until it is dropped.
pub(super) struct Lookup {
    relays: Arc<Relays>,
    connection: Arc<Tls>,
    permit: Option<OwnedSemaphorePermit>,
}

/// The place of a tunnel among those that [`Limits`] allow, until it is dropped.
pub(super) struct Place {
    relays: Arc<Relays>,
    /// Keeps the record, so that no other has its address.
    connection: Arc<Tls>,
}

/// Reason why a tunnel is refused, with a type of RFC 9209 §2.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The target is malformed.
    Target,
    Limit,
    Lookup,
    LookupTime,
    Denied,
    Unroutable,
    /// There is no room for a socket.
    Internal,
}

impl Refusal {
    /// Returns the status, and the type of the error.
    pub(super) const fn head(self) -> (StatusCode, &'static str) {
        match self {
            Self::Target => (StatusCode::BAD_REQUEST, "http_request_error"),
            Self::Limit => (StatusCode::SERVICE_UNAVAILABLE, "connection_limit_reached"),
            Self::Lookup => (StatusCode::BAD_GATEWAY, "dns_error"),
            Self::LookupTime => (StatusCode::GATEWAY_TIMEOUT, "dns_timeout"),
            Self::Denied => (StatusCode::FORBIDDEN, "destination_ip_prohibited"),
            Self::Unroutable => (StatusCode::BAD_GATEWAY, "destination_ip_unroutable"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "proxy_internal_error"),
        }
    }
}

impl Relays {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            places: Mutex::default(),
            lookups: Arc::new(Semaphore::new(limits.lookups.min(Semaphore::MAX_PERMITS))),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            to_targets: AtomicU64::new(0),
            to_clients: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stats(&self) -> ProxyStats {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ProxyStats {
            open: self.places().open,
            accepted: get(&self.accepted),
            refused: get(&self.refused),
            to_targets: get(&self.to_targets),
            to_clients: get(&self.to_clients),
            dropped: get(&self.dropped),
        }
    }

    /// Opens the socket to a target, and keeps a place for it.
    pub(super) async fn open(
        self: &Arc<Self>,
        target: &Target,
        peer: &Peer,
        allow: &Allow,
        resolve: &Arc<Resolve>,
    ) -> Result<(Place, UdpSocket), Refusal> {
        let place = self.place(peer).ok_or(Refusal::Limit)?;
        let opened = match target.host() {
            Host::Address(address) => vec![*address],
            Host::Name(name) => self.look_up(name, resolve, peer).await?,
        };
        let mut refusal = Refusal::Denied;
        for address in opened {
            // An IPv4 address in an IPv6 address is judged as what it is.
            let address = SocketAddr::new(address.to_canonical(), target.port());
            if allow(target, address, peer) == Decision::Deny {
                continue;
            }
            match connected(address).await {
                Ok(socket) => {
                    self.accepted.fetch_add(1, Ordering::Relaxed);
                    return Ok((place, socket));
                }
                Err(error) if is_unroutable(&error) => {
                    tracing::debug!(%error, %address, "a target cannot be reached");
                }
                Err(error) => {
                    tracing::warn!(%error, "no socket for a tunnel; raise the limit of open files, or lower Limits::tunnels");
                    return Err(Refusal::Internal);
                }
            }
            refusal = Refusal::Unroutable;
        }
        Err(refusal)
    }

    pub(super) fn on_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    fn place(self: &Arc<Self>, peer: &Peer) -> Option<Place> {
        let mut places = self.places();
        if places.open >= self.limits.tunnels {
            return None;
        }
        let of_connection = places.of_connection(&peer.tls);
        if of_connection.tunnels >= self.limits.tunnels_per_connection {
            return None;
        }
        of_connection.tunnels += 1;
        places.open += 1;
        drop(places);
        Some(Place {
            relays: self.clone(),
            connection: peer.tls.clone(),
        })
    }

    fn lookup(self: &Arc<Self>, peer: &Peer) -> Option<Lookup> {
        let mut places = self.places();
        let of_connection = places.of_connection(&peer.tls);
        if of_connection.lookups >= (self.limits.lookups / 4).max(1) {
            return None;
        }
        of_connection.lookups += 1;
        drop(places);
        Some(Lookup {
            relays: self.clone(),
            connection: peer.tls.clone(),
            permit: None,
        })
    }

    /// Resolves a name.
    async fn look_up(
        self: &Arc<Self>,
        name: &str,
        resolve: &Arc<Resolve>,
        peer: &Peer,
    ) -> Result<Vec<IpAddr>, Refusal> {
        let mut lookup = self.lookup(peer).ok_or(Refusal::Limit)?;
        let looked_up = async {
            let permit = self.lookups.clone().acquire_owned().await;
            lookup.permit = Some(permit.map_err(io::Error::other)?);
            resolve(name.to_owned(), lookup).await
        };
        match tokio::time::timeout(self.limits.lookup_time, looked_up).await {
            Ok(Ok(addresses)) if !addresses.is_empty() => Ok(addresses),
            Ok(Ok(_)) => Err(Refusal::Lookup),
            Ok(Err(error)) => {
                tracing::debug!(%error, "the name of a target cannot be resolved");
                Err(Refusal::Lookup)
            }
            Err(_) => Err(Refusal::LookupTime),
        }
    }
}

impl Places {
    fn of_connection(&mut self, connection: &Arc<Tls>) -> &mut OfConnection {
        let connection = Arc::as_ptr(connection).addr();
        self.by_connection.entry(connection).or_default()
    }

    fn release(&mut self, connection: &Arc<Tls>, release: impl FnOnce(&mut OfConnection)) {
        let of_connection = self.of_connection(connection);
        release(of_connection);
        if of_connection.tunnels == 0 && of_connection.lookups == 0 {
            let connection = Arc::as_ptr(connection).addr();
            self.by_connection.remove(&connection);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.relays.places();
        places.open -= 1;
        places.release(&self.connection, |it| it.tunnels -= 1);
    }
}

impl Drop for Lookup {
    fn drop(&mut self) {
        let mut places = self.relays.places();
        places.release(&self.connection, |it| it.lookups -= 1);
    }
}

/// Resolves by the system, which cannot be stopped: the lookup has its place until it ends.
pub(super) fn resolve(name: String, lookup: Lookup) -> Resolving {
    let found = tokio::spawn(async move {
        let _lookup = lookup;
        let addresses = tokio::net::lookup_host((name, 0)).await?;
        Ok(addresses.map(|address| address.ip()).collect())
    });
    Box::pin(async move { found.await.map_err(io::Error::other)? })
}

/// Returns true if an address cannot be reached, whatever this host has left.
fn is_unroutable(error: &io::Error) -> bool {
    use io::ErrorKind;

    matches!(
        error.kind(),
        ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::AddrNotAvailable
            | ErrorKind::InvalidInput
            | ErrorKind::PermissionDenied
    )
}

/// Returns a socket that sends to this address, and takes nothing from others (RFC 9298 §3.1) from now on.
async fn connected(address: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(address).await?;
    Ok(socket)
}

/// Passes payloads on in both directions until the tunnel is over, or nothing comes for too long.
pub(super) async fn relay(place: &Place, tunnel: &UdpTunnel, socket: &UdpSocket) {
    let relays = &place.relays;
    let time = relays.limits.idle_time;
    let mut last = Instant::now();
    let mut idle = std::pin::pin!(tokio::time::sleep(time));
    let mut dropped = 0;
    // Packets of other senders may have arrived before the socket was connected.
    let Ok(target) = socket.peer_addr() else {
        return;
    };
    loop {
        tokio::task::consume_budget().await;
        tokio::select! {
            payload = tunnel.recv() => {
                let Ok(Some(payload)) = payload else {
                    break;
                };
                // Errors tell of earlier packets, or that the payload is lost, as in networks.
                match socket.send(&payload).await {
                    Ok(_) => relays.to_targets.fetch_add(1, Ordering::Relaxed),
                    Err(_) => relays.dropped.fetch_add(1, Ordering::Relaxed),
                };
                last = Instant::now();
            }
            ready = socket.readable() => {
                let room = room(tunnel);
                let mut payload = BytesMut::with_capacity(room);
                match ready.and_then(|()| socket.try_recv_buf_from(&mut payload)) {
                    Ok((_, from)) if (from.ip(), from.port()) != (target.ip(), target.port()) => {
                        continue;
                    }
                    Ok((len, _)) if len < room => match tunnel.send(payload.freeze()) {
                        Ok(()) => {
                            relays.to_clients.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(TunnelError::TooLarge { .. }) => dropped += 1,
                        Err(_) => break,
                    },
                    Ok(_) => dropped += 1,
                    // An ICMP message is reported once, for packets that were sent before, and may be forged.
                    Err(error) if is_passing(&error) => continue,
                    Err(error) => {
                        tracing::debug!(%error, "the socket of a tunnel failed");
                        break;
                    }
                }
                last = Instant::now();
            }
            () = idle.as_mut() => {
                if last.elapsed() >= time {
                    break;
                }
                idle.as_mut().reset(last + time);
            }
        }
    }
    let stats = tunnel.stats();
    let dropped = dropped + stats.dropped + stats.unknown;
    relays.dropped.fetch_add(dropped, Ordering::Relaxed);
}

/// Returns true for errors after which a socket still works.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind;

    matches!(
        error.kind(),
        ErrorKind::WouldBlock
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::PermissionDenied
    )
}
