//! The state that the requests of a QUIC connection share.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use hybriq::{
    Connection, Direction, EarlyConnection, ServerConfig, StreamId, stats::Census, tls::Side,
    transport::Blocked,
};
use hybriq_h3::Code;
use tokio::sync::{Notify, watch};

use super::stalls::{Answered, Stalls, forget_taken};
use crate::{
    Limits, Tls,
    limits::Patience,
    server::{
        connections::{Account, Admission, HTTP3_REQUEST, Hosts, Share, Standing, Watched},
        state::{Connect, Features, Shared},
    },
    upgrade::{Datagrams, masque::WAITING},
    versions::http3::{Link, Setup, Transport},
    webtransport::Sessions,
};

/// Number of answered streams above which those that are over are removed.
const MANY: usize = 64;

/// Time between two checks for responses still on their way, while a server drains.
pub(super) const DELIVERY_LOOK: Duration = Duration::from_millis(10);

/// A QUIC connection, as its requests see it.
pub(super) struct Quic {
    pub(super) shared: Arc<Shared>,
    /// The connection, since somebody has seen that its handshake is complete.
    established: OnceLock<Arc<Established>>,
    /// What there is before, if requests are answered then.
    early: Option<Box<Early>>,
    pub(super) link: Arc<Link>,
    /// True if requests of extended CONNECT are allowed.
    extended: bool,
    /// WebTransport sessions, if they are allowed.
    pub(super) sessions: Option<Sessions>,
    /// HTTP Datagrams, if they are allowed.
    pub(super) datagrams: Option<Datagrams>,
    /// Requests that are being answered.
    running: AtomicU64,
    /// Notified whenever one of them ends.
    ended: Notify,
    pub(super) standing: Standing,
    pub(super) hosts: Hosts,
    account: Arc<Account>,
    /// Responses that the client does not accept.
    stalls: Mutex<Stalls>,
    /// True while PINGs keep the connection alive.
    is_kept_alive: AtomicBool,
    /// Streams of ordinary requests that were answered, if clients may open other streams too, or if the requests have
    /// a patience.
    answered: Mutex<Vec<Answered>>,
}

/// A connection whose handshake was not complete when its requests began to be answered.
pub(super) struct Early {
    pub(super) connection: EarlyConnection,
    pub(super) tls: Arc<Tls>,
    /// Progress of the handshake. The sender belongs to the task that performs it, so that a failure ends all waits.
    handshake: watch::Receiver<Progress>,
}

/// A client whose connection begins.
pub(super) struct Client {
    pub(super) address: SocketAddr,
    pub(super) account: Arc<Account>,
    pub(super) hosts: Hosts,
}

/// A response that is being sent, until it is dropped.
pub(super) struct Answer<'a> {
    quic: &'a Quic,
    stream: StreamId,
    is_noted: bool,
}

/// The outcome of a handshake, `None` before it is complete.
type Progress = Option<Arc<Established>>;

/// The end of a handshake that others wait for. Dropping this before the handshake is complete means that it failed.
pub(super) struct Handshake {
    progress: watch::Sender<Progress>,
    account: Arc<Account>,
}

/// Reason why a response is no longer needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Gone {
    /// The client stopped the stream.
    #[error("the client no longer needs the response")]
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
pub(super) struct Running(
    pub(super) Arc<Quic>,
    /// The memory of the request.
    pub(super) Share,
);

impl Handshake {
    pub(super) fn complete(self, connection: Connection) {
        self.account.prove();
        self.progress
            .send_replace(Some(Established::new(connection)));
    }
}

impl Established {
    fn new(connection: Connection) -> Arc<Self> {
        let tls = Arc::new(Tls::of_quic(&connection));
        Arc::new(Self { connection, tls })
    }
}

/// Returns what the server allows on a connection.
fn setup(limits: &Limits, features: Features) -> (Setup, Option<Sessions>, Option<Datagrams>) {
    let mut setup = Setup::new(limits.most_fields());
    setup.tables(limits.most_table());
    setup.reserved(features.reserved);
    if features.connect >= Connect::Extended {
        setup.extended_connect();
    }
    let has_udp = features.connect == Connect::Udp;
    setup.config.settings.h3_datagram |= has_udp;
    let waiting = features.webtransport.map(|limits| limits.waiting_datagrams);
    let waiting = waiting.or(has_udp.then_some(WAITING));
    let datagrams = waiting.map(Datagrams::new);
    let sessions = features.webtransport.zip(datagrams.clone());
    let sessions = sessions.map(|(mut webtransport, datagrams)| {
        webtransport.header_time = webtransport.header_time.min(limits.header_time);
        Sessions::new(webtransport, datagrams, &mut setup)
    });
    (setup, sessions, datagrams)
}

/// Prepares the configuration of the transport for HTTP/3. Clients remember the settings of their last connection for
/// 0-RTT data, so that none is accepted if they were others (RFC 9114 §7.2.4.2, RFC 9204 §3.2.3).
pub(in crate::server) fn for_http3(
    config: ServerConfig,
    limits: &Limits,
    features: Features,
) -> ServerConfig {
    let mut settings = Vec::new();
    setup(limits, features)
        .0
        .config
        .settings
        .write(&mut settings);
    config.alpn([hybriq_h3::ALPN]).early_settings(settings)
}

impl Quic {
    /// Creates the state of a connection whose handshake is complete.
    pub(super) fn established_at_once(
        shared: Arc<Shared>,
        client: Client,
        connection: Connection,
    ) -> Arc<Self> {
        let transport = Transport::Established(connection.clone());
        let established = Established::new(connection);
        Self::new(shared, client, transport, Ok(established))
    }

    /// Creates the state of a connection for this server name before its handshake is complete.
    pub(super) fn early(
        shared: Arc<Shared>,
        client: Client,
        connection: EarlyConnection,
        server_name: Option<String>,
    ) -> (Arc<Self>, Handshake) {
        let transport = Transport::Early(connection.clone());
        let (progress, handshake) = watch::channel(None);
        let tls = Arc::new(Tls::of_early(&connection, server_name));
        let early = Box::new(Early {
            connection,
            tls,
            handshake,
        });
        let account = client.account.clone();
        let quic = Self::new(shared, client, transport, Err(early));
        (quic, Handshake { progress, account })
    }

    /// Creates the state, and enables what the server allows.
    fn new(
        shared: Arc<Shared>,
        client: Client,
        transport: Transport,
        established: Result<Arc<Established>, Box<Early>>,
    ) -> Arc<Self> {
        let (established, early) = match established {
            Ok(established) => (established.into(), None),
            Err(early) => (OnceLock::new(), Some(early)),
        };
        let (setup, sessions, datagrams) = setup(&shared.limits, shared.features);
        let extended = setup.config.settings.enable_connect_protocol;
        let link = Arc::new(Link::new(transport, setup));
        Arc::new(Self {
            account: client.account,
            hosts: client.hosts,
            shared,
            link,
            extended,
            sessions,
            datagrams,
            established,
            early,
            running: AtomicU64::new(0),
            ended: Notify::new(),
            standing: Standing::new(client.address),
            stalls: Mutex::default(),
            is_kept_alive: AtomicBool::new(false),
            answered: Mutex::default(),
        })
    }

    /// Books bytes of a request.
    pub(super) fn share(&self, bytes: u64) -> Share {
        self.account.share(bytes)
    }

    /// Returns the connection for a request, once its handshake is complete.
    pub(super) async fn established(&self, stream: hybriq::StreamId) -> Result<&Established, Gone> {
        if let Some(established) = self.established_now() {
            return Ok(established);
        }
        Box::pin(self.unless_gone(None, stream, self.completed())).await?
    }

    /// Waits until the handshake is complete.
    async fn completed(&self) -> Result<&Established, Gone> {
        if let Some(early) = &self.early {
            let mut handshake = early.handshake.clone();
            // Otherwise it failed.
            let _ = handshake.wait_for(Option::is_some).await;
        }
        self.established_now().ok_or(Gone::Handshake)
    }

    /// Returns what is known before the handshake is complete.
    pub(super) fn before_handshake(&self) -> Option<&Early> {
        self.early.as_deref()
    }

    /// Waits for a part of a response from the service, unless it is no longer needed. If the part is ready at
    /// once, the connection is not asked.
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

    /// Waits until a response is no longer needed.
    async fn gone(&self, established: Option<&Established>, stream: hybriq::StreamId) -> Gone {
        let stopped = match (established, &self.early) {
            (Some(established), _) => established.connection.stream_stopped(stream).await,
            (None, Some(early)) => early.connection.stream_stopped(stream).await,
            (None, None) => return Gone::Connection,
        };
        stopped.map_or(Gone::Connection, |_| Gone::Stopped)
    }

    /// Waits until no request is in progress, and the client has all responses.
    pub(super) async fn drained(&self) {
        self.answered().await;
        // A close would lose what was not acknowledged.
        let Ok(established) = self.completed().await else {
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

    /// Notes that the stream of an ordinary request is answered: the client must accept its data.
    pub(super) fn on_answer(
        &self,
        stream: StreamId,
        patience: Option<&Arc<Patience>>,
    ) -> Answer<'_> {
        let is_noted = self.extended || patience.is_some();
        if is_noted {
            let mut answered = self.answered_streams();
            if answered.len() >= MANY && answered.len().is_power_of_two() {
                if let Some(established) = self.established_now() {
                    let connection = &established.connection;
                    forget_taken(&mut answered, |stream| connection.is_delivered(stream));
                }
            }
            answered.push(Answered {
                stream,
                patience: patience.cloned(),
                is_over: false,
            });
        }
        Answer {
            quic: self,
            stream,
            is_noted,
        }
    }

    fn answered_streams(&self) -> MutexGuard<'_, Vec<Answered>> {
        let answered = self.answered.lock();
        answered.unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connection, even before its handshake is complete.
    pub(super) fn close(&self, code: Code, reason: &[u8]) {
        if let Some(established) = self.established_now() {
            established.connection.close(code.0, reason);
        } else if let Some(early) = &self.early {
            early.connection.close(code.0, reason);
        }
    }

    /// Counts what other protocols hold.
    fn count_others(&self, census: &mut Census) {
        if let Some(sessions) = &self.sessions {
            sessions.census(census);
        }
        if let Some(datagrams) = &self.datagrams {
            datagrams.census(census);
        }
    }

    fn established_now(&self) -> Option<&Established> {
        if self.established.get().is_none() {
            let complete = self.early.as_ref()?.handshake.borrow().clone()?;
            // Others would set the same.
            let _ = self.established.set(complete);
        }
        self.established.get().map(Arc::as_ref)
    }
}

impl Watched for Quic {
    fn standing(&self) -> &Standing {
        &self.standing
    }

    fn running(&self) -> u64 {
        self.running.load(Ordering::Relaxed)
    }

    fn count(&self, census: &mut Census) {
        let stalls = self.stalls.lock().unwrap_or_else(PoisonError::into_inner);
        census.add("requests", self.running() as usize, 0);
        census.add("stalled responses", stalls.len(), 0);
        census.add_of::<Answered>("answered streams", self.answered_streams().len());
        self.link.census(census);
        self.count_others(census);
    }

    fn account(&self) -> &Account {
        &self.account
    }

    fn memory(&self) -> u64 {
        let transport = self.established_now().map_or(0, |established| {
            let held = established.connection.memory_held();
            held.by_label().map(|(_, bytes)| bytes).sum()
        });
        let mut census = Census::default();
        self.count_others(&mut census);
        let others = census.holdings().iter();
        let others: u64 = others.map(|holding| holding.bytes as u64).sum();
        transport + others + self.link.held() as u64
    }

    fn keep_alive(&self, silence: Duration) {
        let (Some(established), is_needed) = (self.established_now(), self.running() > 0) else {
            return;
        };
        if self.is_kept_alive.swap(is_needed, Ordering::Relaxed) != is_needed {
            let silence = is_needed.then_some(silence);
            established.connection.set_keep_alive(silence);
        }
    }

    fn end_stalled(&self, now: Instant, time: Duration) {
        let Some(established) = self.established_now() else {
            return;
        };
        let connection = &established.connection;
        let blocked = connection.blocked_streams();
        let mut stalls = self.stalls.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answered = self.answered_streams();
        forget_taken(&mut answered, |stream| connection.is_delivered(stream));
        if blocked.is_empty() && stalls.is_empty() {
            return;
        }
        // Streams of other protocols may wait for their client without limit.
        let is_response = |blocked: &Blocked| {
            let id = blocked.id;
            let is_request = id.direction() == Direction::Bidi && id.initiator() == Side::Client;
            let is_answered = || answered.iter().any(|answered| answered.stream == id);
            is_request && (!self.extended || is_answered())
        };
        let patience = |id| {
            let mut answered = answered.iter().filter(|answered| answered.stream == id);
            answered.find_map(|answered| answered.patience.as_deref())
        };
        let blocked = blocked.into_iter().filter(is_response);
        for id in stalls.look(blocked, patience, now, time) {
            let peer = self.standing.peer();
            tracing::debug!(%peer, stream = id.0, "the client does not read a response: resetting its stream");
            connection.reset_stream(id, Code::H3_REQUEST_CANCELLED.0, 0);
        }
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        if !self.is_noted {
            return;
        }
        let mut answered = self.quic.answered_streams();
        let mut latest = answered.iter_mut().rev();
        if let Some(answered) = latest.find(|answered| answered.stream == self.stream) {
            answered.is_over = true;
        }
    }
}

impl Running {
    pub(super) fn new(quic: Arc<Quic>) -> Self {
        quic.running.fetch_add(1, Ordering::AcqRel);
        let share = quic.share(HTTP3_REQUEST);
        Self(quic, share)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
        self.0.ended.notify_one();
    }
}
