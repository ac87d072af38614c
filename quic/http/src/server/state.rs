//! The state of a connection over QUIC that its requests share.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use h3::error::Code;
use hybriq::{Blocked, Connection, Direction, EarlyConnection, Side, StreamId};
use hybriq_h3::{EarlyRequests, Protocols, webtransport::Sessions};
use tokio::sync::{Notify, watch};

use super::{
    Connect, Features,
    handle::Shared,
    watch::{Admission, QUIC_CONNECTION, REQUEST, Stalls, Standing, Watched},
};
use crate::Tls;

/// Time from the first GOAWAY, after which clients send no more requests, to the one that tells them
/// which requests are answered (RFC 9114 §5.2): requests that were on their way have come by then.
pub(super) const GOAWAY_PAUSE: Duration = Duration::from_millis(250);

/// Number of answered streams from which on those that are over are removed.
const MANY: usize = 64;

/// Time between two looks for responses that are still on their way, when a server drains.
const DELIVERY_LOOK: Duration = Duration::from_millis(10);

/// A connection over QUIC, for its requests.
pub(super) struct Quic {
    pub(super) shared: Arc<Shared>,
    /// Set when the handshake is complete.
    established: watch::Sender<Option<Arc<Established>>>,
    /// Facts that are known before that.
    early: OnceLock<(EarlyConnection, Arc<Tls>)>,
    replayable: EarlyRequests,
    /// Requests of extended CONNECT, if they are allowed.
    pub(super) protocols: Option<Protocols>,
    /// Sessions of WebTransport, if they are allowed.
    pub(super) sessions: Option<Sessions>,
    /// Requests that are being answered.
    running: AtomicU64,
    /// Told whenever one of them ends.
    ended: Notify,
    pub(super) standing: Standing,
    /// Responses that the client does not take.
    stalls: Mutex<Stalls>,
    /// Streams of ordinary requests that were answered, where other streams of clients are not requests.
    answered: Mutex<Vec<StreamId>>,
}

/// A connection whose handshake is complete.
pub(super) struct Established {
    pub(super) connection: Connection,
    pub(super) tls: Arc<Tls>,
}

/// A request that is being answered, until it is dropped.
pub(super) struct Running(pub(super) Arc<Quic>);

impl Quic {
    /// Makes the state of a connection, and turns on what the server allows.
    pub(super) fn new(
        shared: Arc<Shared>,
        peer: SocketAddr,
        transport: &mut hybriq_h3::Connection,
    ) -> Arc<Self> {
        let Features {
            connect,
            webtransport,
        } = shared.features;
        let extended = connect == Connect::Extended || webtransport.is_some();
        let protocols = extended.then(|| transport.extended_connect());
        let header_time = shared.limits.header_time;
        let sessions = webtransport.map(|mut limits| {
            limits.header_time = limits.header_time.min(header_time);
            transport.webtransport(limits)
        });
        let replayable = transport.early_requests();
        Arc::new(Self {
            shared,
            protocols,
            sessions,
            established: watch::Sender::new(None),
            early: OnceLock::new(),
            replayable,
            running: AtomicU64::new(0),
            ended: Notify::new(),
            standing: Standing::new(peer),
            stalls: Mutex::default(),
            answered: Mutex::default(),
        })
    }

    pub(super) fn establish(&self, connection: Connection) {
        let tls = Arc::new(Tls::of_quic(&connection));
        let established = Established { connection, tls };
        self.established.send_replace(Some(Arc::new(established)));
    }

    /// Notes the connection before its handshake is complete.
    pub(super) fn begin(&self, connection: EarlyConnection) {
        let tls = Arc::new(Tls::of_early(&connection));
        // A connection begins once.
        let _ = self.early.set((connection, tls));
    }

    /// Returns true if a request may be a replay.
    pub(super) fn is_replayable(&self, stream: h3::quic::StreamId) -> bool {
        self.replayable.contains(stream)
    }

    /// Returns the connection, once its handshake is complete.
    pub(super) async fn established(&self) -> Option<Arc<Established>> {
        if let Some(established) = &*self.established.borrow() {
            return Some(established.clone());
        }
        let mut established = self.established.subscribe();
        // The sender is alive, so this cannot fail.
        let established = established.wait_for(Option::is_some).await.ok()?;
        established.clone()
    }

    /// Returns what is known before the handshake is complete.
    pub(super) fn early(&self) -> Option<&(EarlyConnection, Arc<Tls>)> {
        self.early.get()
    }

    /// Waits until no request is under way, and the client has all responses.
    pub(super) async fn drained(&self) {
        self.answered().await;
        // A close loses what was not acknowledged.
        let Some(established) = self.established().await else {
            return;
        };
        let connection = &established.connection;
        while connection.undelivered_streams() > 0 && connection.close_reason().is_none() {
            tokio::time::sleep(DELIVERY_LOOK).await;
        }
    }

    async fn answered(&self) {
        loop {
            let ended = self.ended.notified();
            if self.running.load(Ordering::Acquire) == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Decides about a request.
    pub(super) fn admit(&self) -> Admission {
        self.standing.admit(&self.shared.limits, &self.shared.watch)
    }

    /// Counts a request that the client cancelled before its response began.
    pub(super) fn on_cancelled(&self) {
        let running = self.running.load(Ordering::Relaxed);
        self.standing.on_cancelled(running, &self.shared.limits);
    }

    /// Notes that the stream of an ordinary request is answered: its data is bound to be taken.
    pub(super) fn on_answer(&self, stream: StreamId) {
        if self.protocols.is_none() {
            return;
        }
        let Some(established) = self.established_now() else {
            return;
        };
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        if answered.len() >= MANY && answered.len().is_power_of_two() {
            let open = established.connection.blocked_streams();
            answered.retain(|id| open.iter().any(|open| open.id == *id));
        }
        answered.push(stream);
    }

    /// Closes the connection, if its handshake is complete.
    pub(super) fn close(&self, code: Code, reason: &[u8]) {
        if let Some(established) = self.established_now() {
            established.connection.close(code.value(), reason);
        }
    }

    fn established_now(&self) -> Option<Arc<Established>> {
        self.established.borrow().clone()
    }
}

impl Watched for Quic {
    fn standing(&self) -> &Standing {
        &self.standing
    }

    fn running(&self) -> u64 {
        self.running.load(Ordering::Relaxed)
    }

    fn memory(&self) -> u64 {
        let transport = self.established_now().map_or(0, |established| {
            let held = established.connection.memory_held();
            held.iter().map(|(_, bytes)| bytes).sum()
        });
        QUIC_CONNECTION + self.running() * REQUEST + transport
    }

    fn end_stalled(&self, now: Instant, time: Duration) {
        let Some(established) = self.established_now() else {
            return;
        };
        let connection = &established.connection;
        let blocked = connection.blocked_streams();
        let mut stalls = self.stalls.lock().unwrap_or_else(PoisonError::into_inner);
        if blocked.is_empty() && stalls.is_empty() {
            return;
        }
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.retain(|id| blocked.iter().any(|blocked| blocked.id == *id));
        // Streams of other protocols may wait for their client as long as they like.
        let is_response = |blocked: &Blocked| {
            let id = blocked.id;
            let is_request = id.direction() == Direction::Bidi && id.initiator() == Side::Client;
            is_request && (self.protocols.is_none() || answered.contains(&id))
        };
        for id in stalls.look(blocked.into_iter().filter(is_response), now, time) {
            let peer = self.standing.peer();
            tracing::debug!(%peer, stream = id.0, "a response is not taken: its stream is reset");
            connection.reset_stream(id, Code::H3_REQUEST_CANCELLED.value(), 0);
        }
    }
}

impl Running {
    pub(super) fn new(quic: Arc<Quic>) -> Self {
        quic.running.fetch_add(1, Ordering::AcqRel);
        Self(quic)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
        self.0.ended.notify_one();
    }
}
