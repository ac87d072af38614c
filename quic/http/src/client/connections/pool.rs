//! The connections and alternatives of each server.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::{HeaderMap, header::ALT_SVC};
use hybriq::{memory::ServerStore, stats::Census};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::Instant,
};

use super::{
    alt_svc::{AltSvc, OfferedHosts, Reach},
    sharing::{add, begin},
};
use crate::{
    client::{
        error::ClientError,
        http3,
        origin::Origin,
        tcp::{Connection, Http1, Http2},
    },
    usage::{Exchange, Usage},
};

/// All connections of a client.
pub(in crate::client) struct Pool {
    state: Mutex<State>,
    limits: Limits,
}

/// Bounds of a pool.
pub(in crate::client) struct Limits {
    /// Servers whose connections and alternatives are remembered.
    pub(in crate::client) servers: usize,
    /// Connections of HTTP/1.1 to a server.
    pub(in crate::client) http1: usize,
    /// Connections of HTTP/2 to a server, and of HTTP/3.
    pub(in crate::client) shared: usize,
    /// Hosts that servers may offer.
    pub(in crate::client) offered: OfferedHosts,
}

struct State {
    servers: HashMap<Origin, Server>,
    alt_svc: AltSvc,
}

/// Connections to a server.
struct Server {
    http3: Vec<Arc<http3::Connection>>,
    http2: Vec<Http2>,
    /// Connections without a request.
    http1: Vec<Http1>,
    http1_slots: Arc<Semaphore>,
    /// True if the server did not speak HTTP/2 at the last connection.
    is_http1: bool,
    /// The current attempt to connect.
    attempt: Option<watch::Receiver<Progress>>,
    /// True while a QUIC connection is tried.
    tries_quic: bool,
    used: Instant,
}

/// Progress of an attempt to connect.
#[derive(Clone)]
pub(in crate::client) enum Progress {
    Connecting,
    /// Requests may be sent in 0-RTT packets.
    Early(Arc<http3::Connection>),
    Done(Result<(), ClientError>),
}

/// When a [`Client`](crate::Client) uses HTTP/3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Http3 {
    /// HTTP/3 with servers that offered it with `alt-svc` in an earlier response (RFC 7838), otherwise HTTP/2 or
    /// HTTP/1.1.
    #[default]
    Discover,
    /// HTTP/3 first, even without an offer. If UDP does not get through, HTTP/2 or HTTP/1.1.
    First,
    /// Only HTTP/3.
    Only,
    /// Only HTTP/2 or HTTP/1.1.
    Off,
}

/// Connections that a request may use.
#[derive(Clone, Copy)]
pub(in crate::client) struct Wanted {
    pub(in crate::client) http3: Http3,
    /// True if one more is opened where the others have no room.
    pub(in crate::client) more: bool,
    /// Time of the request.
    pub(in crate::client) now: Instant,
}

/// How a request gets a connection.
pub(in crate::client) enum Choice {
    Http3(Arc<http3::Connection>, Exchange),
    /// The connection, and an alternative to try in parallel.
    Http2(Http2, Exchange, Option<Origin>),
    Http1(Box<(Http1, Exchange, OwnedSemaphorePermit)>, Option<Origin>),
    /// All HTTP/1.1 connections are in use: get a permit, and choose again with it.
    Full(Arc<Semaphore>),
    /// Open one more connection over TCP.
    Another(OwnedSemaphorePermit),
    /// Wait for the current attempt.
    Wait(watch::Receiver<Progress>),
    /// Connect, over QUIC to this place if there is one, and report the progress.
    Connect(Option<Origin>, watch::Sender<Progress>),
}

impl Server {
    fn new(limits: &Limits, now: Instant) -> Self {
        Self {
            http3: Vec::new(),
            http2: Vec::new(),
            http1: Vec::new(),
            http1_slots: Arc::new(Semaphore::new(limits.http1.max(1))),
            is_http1: false,
            attempt: None,
            tries_quic: false,
            used: now,
        }
    }

    /// Forgets connections that take no more requests.
    fn prune(&mut self) {
        self.http3.retain(|http3| !http3.usage().is_over());
        self.http2.retain(|http2| !http2.usage().is_over());
        self.http1.retain(|http1| !http1.usage().is_over());
        let is_done = |attempt: &watch::Receiver<Progress>| {
            matches!(&*attempt.borrow(), Progress::Done(_)) || attempt.has_changed().is_err()
        };
        self.attempt = self.attempt.take().filter(|attempt| !is_done(attempt));
    }

    fn is_unused(&self) -> bool {
        self.http3.is_empty()
            && self.http2.is_empty()
            && self.http1.is_empty()
            && self.attempt.is_none()
    }

    /// Ends the connections without requests. Returns true if none is left.
    fn end_idle(&mut self) -> bool {
        for usage in self.usages() {
            usage.end_if_idle();
        }
        self.prune();
        self.is_unused()
    }

    /// Returns true if no request uses a connection or waits for one.
    fn is_idle(&self, limits: &Limits) -> bool {
        self.attempt.is_none()
            && self.http1_slots.available_permits() >= limits.http1.max(1)
            && self.usages().all(Usage::is_idle)
    }

    /// Returns the place to try over QUIC, unless one is being tried already.
    fn upgrade(&mut self, place: Option<Origin>) -> Option<Origin> {
        let place = place.filter(|_| !self.tries_quic)?;
        self.tries_quic = true;
        Some(place)
    }

    /// Chooses an HTTP/1.1 connection, if the server speaks nothing else over TCP.
    fn choose_http1(
        &mut self,
        permit: Option<OwnedSemaphorePermit>,
        place: Option<&Origin>,
    ) -> Option<Choice> {
        let permit = permit.or_else(|| self.http1_slots.clone().try_acquire_owned().ok());
        let Some(permit) = permit else {
            return Some(Choice::Full(self.http1_slots.clone()));
        };
        while let Some(http1) = self.http1.pop() {
            if let Some(exchange) = http1.begin() {
                let place = self.upgrade(place.cloned());
                return Some(Choice::Http1(Box::new((http1, exchange, permit)), place));
            }
        }
        // If there is an alternative, it is tried first.
        let is_alone = place.is_none() || self.tries_quic;
        is_alone.then_some(Choice::Another(permit))
    }

    fn usages(&self) -> impl Iterator<Item = &Usage> {
        let http3 = self.http3.iter().map(|http3| http3.usage());
        let http2 = self.http2.iter().map(Http2::usage);
        let http1 = self.http1.iter().map(Http1::usage);
        http3.chain(http2).chain(http1)
    }
}

impl Pool {
    pub(in crate::client) fn new(limits: Limits, memory: Arc<dyn ServerStore>) -> Self {
        Self {
            state: Mutex::new(State {
                servers: HashMap::new(),
                alt_svc: AltSvc::new(limits.servers, limits.offered).stored_in(memory),
            }),
            limits,
        }
    }

    /// Adds the entries of the pool.
    pub(in crate::client) fn census(&self, census: &mut Census) {
        let state = self.lock();
        let (known, broken) = state.alt_svc.entries();
        census.add("servers", state.servers.len(), 0);
        census.add("alternatives", known, 0);
        census.add("failed alternatives", broken, 0);
        for name in ["connections", "exchanges", "attempts"] {
            census.add(name, 0, 0);
        }
        for server in state.servers.values() {
            let attempts = usize::from(server.attempt.is_some()) + usize::from(server.tries_quic);
            census.add("attempts", attempts, 0);
            for usage in server.usages() {
                census.add("connections", 1, 0);
                census.add("exchanges", usage.exchanges(), 0);
            }
            let free = server.http1_slots.available_permits();
            let taken = self.limits.http1.max(1).saturating_sub(free);
            census.add("places of connections of HTTP/1.1", taken, 0);
        }
    }

    /// Chooses a connection for a request. `permit` is for an HTTP/1.1 connection.
    pub(in crate::client) fn choose(
        &self,
        origin: &Origin,
        wanted: Wanted,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Choice {
        let mut state = self.lock();
        let State { servers, alt_svc } = &mut *state;
        if !servers.contains_key(origin) {
            alt_svc.recall(origin, wanted.now);
        }
        let server = Self::server(servers, &self.limits, origin, wanted.now);
        if wanted.http3 != Http3::Off {
            let more = wanted.more && server.http3.len() < self.limits.shared;
            if let Some((http3, exchange)) = begin(&mut server.http3, more) {
                return Choice::Http3(http3, exchange);
            }
        }
        let place = place(alt_svc, origin, wanted);
        if wanted.http3 != Http3::Only {
            let more = wanted.more && server.http2.len() < self.limits.shared;
            if let Some((http2, exchange)) = begin(&mut server.http2, more) {
                return Choice::Http2(http2, exchange, server.upgrade(place));
            }
            if server.is_http1 {
                if let Some(choice) = server.choose_http1(permit, place.as_ref()) {
                    return choice;
                }
            }
        }
        server.prune();
        if let Some(attempt) = &server.attempt {
            return Choice::Wait(attempt.clone());
        }
        let place = match wanted.http3 {
            Http3::Only => place,
            Http3::First | Http3::Discover | Http3::Off => server.upgrade(place),
        };
        let (sender, attempt) = watch::channel(Progress::Connecting);
        server.attempt = Some(attempt);
        Choice::Connect(place, sender)
    }

    /// Returns the connections to a server, making room if there are too many servers.
    fn server<'a>(
        servers: &'a mut HashMap<Origin, Server>,
        limits: &Limits,
        origin: &Origin,
        now: Instant,
    ) -> &'a mut Server {
        if !servers.contains_key(origin) {
            while servers.len() >= limits.servers.max(1) {
                servers.values_mut().for_each(Server::prune);
                let unused = servers.iter().filter(|(_, server)| server.is_unused());
                let oldest = unused.min_by_key(|(_, server)| server.used);
                let oldest = oldest.or_else(|| {
                    let idle = servers.iter().filter(|(_, server)| server.is_idle(limits));
                    idle.min_by_key(|(_, server)| server.used)
                });
                let Some(oldest) = oldest.map(|(origin, _)| origin.clone()) else {
                    // Requests of the application use all of them.
                    break;
                };
                if let Some(mut server) = servers.remove(&oldest) {
                    server.end_idle();
                }
            }
        }
        let server = servers.entry(origin.clone());
        let server = server.or_insert_with(|| Server::new(limits, now));
        server.used = now;
        server
    }

    /// Adds a connection of HTTP/3.
    pub(in crate::client) fn add_http3(&self, origin: &Origin, http3: Arc<http3::Connection>) {
        let mut state = self.lock();
        state.alt_svc.on_success(origin, &http3.place);
        if let Some(server) = state.servers.get_mut(origin) {
            add(&mut server.http3, http3, self.limits.shared);
        } else {
            // The pool has forgotten this server in the meantime.
            http3.usage().end();
        }
    }

    /// Adds a new connection over TCP.
    pub(in crate::client) fn add_tcp(&self, origin: &Origin, connection: Connection) {
        let mut state = self.lock();
        match (state.servers.get_mut(origin), connection) {
            (Some(server), Connection::Http2(http2)) => {
                server.is_http1 = false;
                add(&mut server.http2, http2, self.limits.shared);
            }
            (Some(server), Connection::Http1(http1)) => {
                server.is_http1 = true;
                server.http1.push(http1);
            }
            (None, connection) => connection.usage().end(),
        }
    }

    /// Returns true if requests to a server share a connection.
    pub(in crate::client) fn is_connected(&self, origin: &Origin) -> bool {
        let state = self.lock();
        let server = state.servers.get(origin);
        server.is_some_and(|server| !server.http3.is_empty() || !server.http2.is_empty())
    }

    /// Takes back an HTTP/1.1 connection.
    pub(in crate::client) fn put_back(&self, origin: &Origin, http1: Http1) {
        match self.lock().servers.get_mut(origin) {
            Some(server) if !http1.usage().is_over() => server.http1.push(http1),
            _ => http1.usage().end(),
        }
    }

    /// Returns the server itself as the place to try over QUIC, because its records say that it speaks HTTP/3. `None`
    /// if it failed there recently, or is being tried.
    pub(in crate::client) fn discover(&self, origin: &Origin, now: Instant) -> Option<Origin> {
        let mut state = self.lock();
        let place = Some(origin.clone()).filter(|_| !state.alt_svc.is_broken(origin, origin, now));
        state.servers.get_mut(origin)?.upgrade(place)
    }

    /// Notes that no QUIC connection is being tried any longer.
    pub(in crate::client) fn on_quic_tried(&self, origin: &Origin) {
        if let Some(server) = self.lock().servers.get_mut(origin) {
            server.tries_quic = false;
        }
    }

    /// Learns alternatives from a response from this address.
    pub(in crate::client) fn learn(
        &self,
        origin: &Origin,
        fields: &HeaderMap,
        from: IpAddr,
        now: Instant,
    ) {
        if fields.contains_key(ALT_SVC) {
            self.lock().alt_svc.learn(origin, fields, from, now);
        }
    }

    /// Returns how public an address of a place must be, so that the server may send the client there.
    pub(in crate::client) fn reach(&self, origin: &Origin, place: &Origin) -> Reach {
        self.lock().alt_svc.reach(origin, place)
    }

    /// Notes that HTTP/3 with a server fails in a place although TCP works.
    pub(in crate::client) fn on_broken(&self, origin: &Origin, place: &Origin, now: Instant) {
        self.lock().alt_svc.on_failure(origin, place, now);
    }

    /// Notes that an alternative of a server is not responsible for it.
    pub(in crate::client) fn on_misdirected(&self, origin: &Origin, place: &Origin, now: Instant) {
        let mut state = self.lock();
        state.alt_svc.forget(origin, now);
        // The server may continue to offer it.
        state.alt_svc.on_failure(origin, place, now);
        if let Some(server) = state.servers.get_mut(origin) {
            for http3 in server.http3.drain(..) {
                http3.usage().end();
            }
        }
    }

    /// Forgets connections of a server that have ended.
    pub(in crate::client) fn prune(&self, origin: &Origin) {
        if let Some(server) = self.lock().servers.get_mut(origin) {
            server.prune();
        }
    }

    /// Ends connections without requests.
    pub(in crate::client) fn end_idle(&self) {
        let mut state = self.lock();
        for server in state.servers.values_mut() {
            server.end_idle();
        }
    }

    /// Forgets what was valid only in the previous network.
    pub(in crate::client) fn on_network_change(&self) {
        let mut state = self.lock();
        state.alt_svc.on_network_change();
        for server in state.servers.values_mut() {
            for usage in server.usages() {
                usage.end();
            }
            server.prune();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pool {
    /// Ends the connections once their requests in progress have ended.
    fn drop(&mut self) {
        for server in self.lock().servers.values() {
            for usage in server.usages() {
                usage.end();
            }
        }
    }
}

/// Returns the place to connect to over QUIC.
fn place(alt_svc: &AltSvc, origin: &Origin, wanted: Wanted) -> Option<Origin> {
    let found = alt_svc.find(origin, wanted.now);
    match wanted.http3 {
        Http3::Off => None,
        Http3::Discover => found,
        Http3::First => found.or_else(|| {
            let is_broken = alt_svc.is_broken(origin, origin, wanted.now);
            (!is_broken).then(|| origin.clone())
        }),
        Http3::Only => Some(found.unwrap_or_else(|| origin.clone())),
    }
}
