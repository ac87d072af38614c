//! The state of a connection over QUIC that its requests share.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use h3::{error::Code, quic::StreamId};
use hybriq::{Census, Connection, EarlyConnection};
use hybriq_h3::{EarlyRequests, Protocols, webtransport::Sessions};
use tokio::sync::{Notify, watch};

use super::{
    Connect, Features, clock,
    connections::{Holds, Registered},
    handle::Shared,
};
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
    /// Place among the parts of connections, which are asked what they hold.
    _registered: Registered,
    /// Progress of the handshake. The sender belongs to the task that does it, so that its failure ends all
    /// waits.
    handshake: watch::Receiver<Progress>,
    /// Facts that are known before the handshake is complete, if requests are answered then.
    early: Option<(EarlyConnection, Arc<Tls>)>,
    replayable: EarlyRequests,
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

/// The outcome of a handshake, `None` before it is complete.
type Progress = Option<Arc<Established>>;

/// The end of a handshake that somebody waits for. Dropping it before the handshake is complete says that
/// it failed.
pub(super) struct Handshake(watch::Sender<Progress>);

/// Reason why nobody waits for a response any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Gone {
    /// The client stopped the stream.
    #[error("the client needs no more of the response")]
    Stopped,
    /// The handshake will not become complete.
    #[error("the handshake of the connection failed")]
    Handshake,
    /// The connection is over.
    #[error("the connection is over")]
    Connection,
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

impl Holds for Quic {
    fn count(&self, census: &mut Census) {
        let running = self.running.load(Ordering::Relaxed);
        census.add(
            "requests",
            usize::try_from(running).unwrap_or(usize::MAX),
            0,
        );
    }
}

impl Handshake {
    pub(super) fn complete(self, connection: Connection) {
        self.0.send_replace(Some(Established::new(connection)));
    }
}

impl Established {
    fn new(connection: Connection) -> Arc<Self> {
        let tls = Arc::new(Tls::of_quic(&connection));
        Arc::new(Self { connection, tls })
    }
}

impl Quic {
    /// Makes the state of a connection whose handshake is complete.
    pub(super) fn established_at_once(
        shared: Arc<Shared>,
        transport: &mut hybriq_h3::Connection,
        connection: Connection,
    ) -> Arc<Self> {
        let (_, seen) = watch::channel(Some(Established::new(connection)));
        Self::new(shared, transport, seen, None)
    }

    /// Makes the state of a connection before its handshake is complete.
    pub(super) fn early(
        shared: Arc<Shared>,
        transport: &mut hybriq_h3::Connection,
        connection: EarlyConnection,
    ) -> (Arc<Self>, Handshake) {
        let (handshake, seen) = watch::channel(None);
        let tls = Arc::new(Tls::of_early(&connection));
        let early = Some((connection, tls));
        let quic = Self::new(shared, transport, seen, early);
        (quic, Handshake(handshake))
    }

    /// Turns on what the server allows.
    fn new(
        shared: Arc<Shared>,
        transport: &mut hybriq_h3::Connection,
        handshake: watch::Receiver<Progress>,
        early: Option<(EarlyConnection, Arc<Tls>)>,
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
        Arc::new_cyclic(|quic: &Weak<Self>| Self {
            _registered: shared.connections.register(quic.clone()),
            shared,
            protocols,
            sessions,
            handshake,
            early,
            replayable,
            running: AtomicU64::new(0),
            ended: Notify::new(),
            cancelled: Cancelled::default(),
        })
    }

    /// Returns true if a request may be a replay.
    pub(super) fn is_replayable(&self, stream: StreamId) -> bool {
        self.replayable.contains(stream)
    }

    /// Returns the connection for a request, once its handshake is complete.
    pub(super) async fn established(
        &self,
        stream: hybriq::StreamId,
    ) -> Result<Arc<Established>, Gone> {
        if let Some(established) = &*self.handshake.borrow() {
            return Ok(established.clone());
        }
        Box::pin(self.unless_gone(None, stream, self.completed())).await?
    }

    /// Waits until the handshake is complete.
    async fn completed(&self) -> Result<Arc<Established>, Gone> {
        let mut handshake = self.handshake.clone();
        let established = handshake.wait_for(Option::is_some).await;
        let established = established.ok().and_then(|established| established.clone());
        established.ok_or(Gone::Handshake)
    }

    /// Returns what is known before the handshake is complete.
    pub(super) fn before_handshake(&self) -> Option<&(EarlyConnection, Arc<Tls>)> {
        self.early.as_ref()
    }

    /// Waits for what the service makes for a response, unless nobody needs it any more. Nothing is asked
    /// of the connection if it is there at once.
    pub(super) async fn unless_gone<T>(
        &self,
        established: Option<&Established>,
        stream: hybriq::StreamId,
        made: impl Future<Output = T>,
    ) -> Result<T, Gone> {
        tokio::select! {
            biased;
            made = made => Ok(made),
            gone = self.gone(established, stream) => Err(gone),
        }
    }

    /// Waits until nobody needs a response any more.
    async fn gone(&self, established: Option<&Established>, stream: hybriq::StreamId) -> Gone {
        let stopped = match (established, &self.early) {
            (Some(established), _) => established.connection.stream_stopped(stream).await,
            (None, Some((early, _))) => early.stream_stopped(stream).await,
            (None, None) => return Gone::Connection,
        };
        stopped.map_or(Gone::Connection, |_| Gone::Stopped)
    }

    /// Waits until no request has been under way for a while, and the client has all responses: it sends no
    /// requests after GOAWAY, and those that it sent before have come.
    pub(super) async fn drained(&self) {
        self.answered().await;
        // A close loses what was not acknowledged.
        let Ok(established) = self.completed().await else {
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
    pub(super) fn on_cancelled(&self) {
        if self
            .cancelled
            .add(clock::now(), self.shared.limits.cancelled)
        {
            self.close(Code::H3_EXCESSIVE_LOAD, b"too many cancelled requests");
        }
    }

    /// Closes the connection, before its handshake is complete too.
    fn close(&self, code: Code, reason: &[u8]) {
        if let Some(established) = &*self.handshake.borrow() {
            established.connection.close(code.value(), reason);
        } else if let Some((early, _)) = &self.early {
            early.close(code.value(), reason);
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
