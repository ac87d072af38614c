//! The state of a connection over QUIC that its requests share.

use std::{
    collections::VecDeque,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use h3::{error::Code, quic::StreamId};
use hybriq::{Connection, EarlyConnection};
use hybriq_h3::{EarlyRequests, Protocols, Requests, webtransport::Sessions};
use tokio::sync::{Notify, watch};

use super::{Connect, Features, clock, handle::Shared};
use crate::Tls;

/// Time in which [`Limits::cancelled`](crate::Limits::cancelled) requests may be cancelled.
const CANCEL_WINDOW: Duration = Duration::from_secs(10);

/// Time from the first GOAWAY, after which clients send no more requests, to the one that tells them
/// which requests are answered (RFC 9114 §5.2): requests that were on their way have come by then.
pub(super) const GOAWAY_PAUSE: Duration = Duration::from_millis(250);

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
    /// Requests whose fields have not come.
    pub(super) requests: Requests,
    /// Requests of extended CONNECT, if they are allowed.
    pub(super) protocols: Option<Protocols>,
    /// Sessions of WebTransport, if they are allowed.
    pub(super) sessions: Option<Sessions>,
    /// Requests that are being answered.
    running: AtomicU64,
    /// Told whenever one of them ends.
    ended: Notify,
    cancelled: Cancelled,
}

/// A connection whose handshake is complete.
pub(super) struct Established {
    pub(super) connection: Connection,
    pub(super) tls: Arc<Tls>,
}

/// A request that is being answered, until it is dropped.
pub(super) struct Running(pub(super) Arc<Quic>);

/// The times at which a client cancelled requests.
#[derive(Default)]
struct Cancelled(std::sync::Mutex<VecDeque<Instant>>);

impl Quic {
    /// Makes the state of a connection, and turns on what the server allows.
    pub(super) fn new(shared: Arc<Shared>, transport: &mut hybriq_h3::Connection) -> Arc<Self> {
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
        let requests = transport.requests();
        Arc::new(Self {
            shared,
            protocols,
            sessions,
            established: watch::Sender::new(None),
            early: OnceLock::new(),
            replayable,
            requests,
            running: AtomicU64::new(0),
            ended: Notify::new(),
            cancelled: Cancelled::default(),
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
    pub(super) fn is_replayable(&self, stream: StreamId) -> bool {
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

    /// Waits until no request has been under way for a while, and the client has all responses: it sends no
    /// requests after GOAWAY, and those that it sent before have come.
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
        tokio::time::sleep(GOAWAY_PAUSE).await;
        loop {
            let ended = self.ended.notified();
            if self.running.load(Ordering::Acquire) == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Counts a request that the client cancelled. Closes the connection if there are too many.
    pub(super) fn on_cancelled(&self, connection: &Connection) {
        if self
            .cancelled
            .add(clock::now(), self.shared.limits.cancelled)
        {
            connection.close(
                Code::H3_EXCESSIVE_LOAD.value(),
                b"too many cancelled requests",
            );
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

impl Cancelled {
    /// Adds a cancelled request. Returns true if there are more than `most` in the window.
    fn add(&self, now: Instant, most: u32) -> bool {
        let mut times = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        while times
            .front()
            .is_some_and(|&time| now.duration_since(time) > CANCEL_WINDOW)
        {
            times.pop_front();
        }
        times.push_back(now);
        times.len() > most as usize
    }
}
