//! A TCP connection: its requests, and the responses in progress.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use hybriq::stats::Census;

use super::{
    http2::Observer,
    responses::Response,
    streams::{Head, Line},
};
use crate::{
    Limits,
    server::{
        connections::{
            Account, Admission, Cause, HTTP1_CONNECTION, HTTP1_REQUEST, HTTP2_CONNECTION,
            HTTP2_REQUEST, Order, Share, Standing, Watch, Watched,
        },
        fields,
    },
    upgrade::{Outcome, Rest},
    versions::http2::inflow::{Inflow, Reader},
};

/// Smallest size of the buffers of HTTP/1.1.
pub(crate) const LEAST_BUFFER: usize = 8 << 10;

/// Number of responses above which the list is cleaned.
const FEW: usize = 16;

/// Time between two checks for requests still in progress, while a connection drains.
const LOOK: Duration = Duration::from_millis(50);

/// A TCP connection.
pub(super) struct Activity {
    pub(super) standing: Standing,
    version: Over,
    limits: Limits,
    watch: Arc<Watch>,
    account: Arc<Account>,
    /// Requests that are not completely answered.
    requests: AtomicU64,
    /// HTTP/2 tasks that send responses, and streams of other protocols.
    tasks: AtomicU64,
    responses: Mutex<Responses>,
    /// Unread data of HTTP/2 requests.
    inflow: Option<Arc<Inflow>>,
    /// The incomplete head of HTTP/1.1.
    head: Arc<Head>,
    /// Since when the server has been waiting for the rest of an HTTP/2 field block.
    field_block: Mutex<Option<Instant>>,
    /// The connection itself, while HTTP uses it.
    line: Mutex<Weak<dyn Line>>,
}

/// Stands in for the connection before HTTP begins, and after it ends.
struct NoLine;

impl Line for NoLine {
    fn is_gone(&self) -> bool {
        false
    }
}

/// HTTP version of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Http1,
    Http2,
}

/// Responses with a body, including some that are over.
#[derive(Default)]
struct Responses {
    all: Vec<Weak<Response>>,
    /// Number above which those that are over are removed.
    most: usize,
}

/// A task that sends a response, or the stream of another protocol, until this is dropped.
pub(super) struct Working(Arc<Activity>);

/// The stream of another protocol, until this is dropped.
#[expect(dead_code, reason = "both count until they are dropped")]
pub(super) struct Tunnel(Working, Share);

/// A request that is answered, until this is dropped.
pub(super) struct Answering {
    activity: Arc<Activity>,
    stage: Stage,
    share: Share,
}

/// Progress of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The service has not answered. If the request ends here, the client has cancelled it.
    Asked,
    /// The response has a body that has not been polled yet.
    Answered,
    /// The response has begun, or there will be none.
    Over,
}

impl Activity {
    pub(super) fn new(
        peer: SocketAddr,
        version: Over,
        limits: &Limits,
        watch: &Arc<Watch>,
    ) -> Arc<Self> {
        let bytes = match version {
            Over::Http1 => HTTP1_CONNECTION,
            Over::Http2 => HTTP2_CONNECTION,
        };
        Arc::new(Self {
            standing: Standing::new(peer),
            account: Account::open(&watch.memory, bytes),
            version,
            limits: limits.clone(),
            watch: watch.clone(),
            requests: AtomicU64::new(0),
            tasks: AtomicU64::new(0),
            responses: Mutex::default(),
            inflow: (version == Over::Http2).then(Arc::default),
            head: Arc::default(),
            field_block: Mutex::default(),
            line: Mutex::new(Weak::<NoLine>::new()),
        })
    }

    pub(super) fn is_http2(&self) -> bool {
        self.version == Over::Http2
    }

    /// Returns the counter of unread bodies, for HTTP/2.
    pub(super) fn inflow(&self) -> Option<&Arc<Inflow>> {
        self.inflow.as_ref()
    }

    /// Returns the counter of the incomplete head of HTTP/1.1.
    pub(super) fn head(&self) -> &Arc<Head> {
        &self.head
    }

    /// Returns the number of unread bytes.
    fn unread(&self) -> u64 {
        if let Some(inflow) = &self.inflow {
            return inflow.unread();
        }
        if self.running() > 0 {
            return 0;
        }
        let buffer = LEAST_BUFFER as u64;
        // The connection's account already includes its first buffer.
        let most = self.limits.most_fields().saturating_sub(buffer);
        self.head.len().saturating_sub(buffer).min(most)
    }

    /// From now on, checks whether the client has closed the connection while requests are in progress. HTTP/1.1
    /// notices that only if nothing follows the request.
    pub(super) fn watch_line(&self, line: Weak<dyn Line>) {
        *self.line() = line;
    }

    /// Leaves the connection to another protocol, which may use only one of its directions.
    pub(super) fn leave_line(&self) {
        *self.line() = Weak::<NoLine>::new();
    }

    fn field_block(&self) -> MutexGuard<'_, Option<Instant>> {
        let since = self.field_block.lock();
        since.unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self) -> MutexGuard<'_, Weak<dyn Line>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn memory_of_block(&self, len: u64) -> u64 {
        fields::most_memory(len, self.limits.most_fields())
    }

    /// Decides about a request.
    pub(super) fn admit(&self) -> Admission {
        self.standing.admit(&self.limits, &self.watch)
    }

    /// Counts a request that the client cancelled before its response began.
    fn on_cancelled(&self) {
        // Without the tasks: every request counts until it is over.
        let running = self.requests.load(Ordering::Relaxed);
        self.standing.on_cancelled(running, &self.limits);
    }

    /// Notes a request whose fields take this many bytes of memory.
    pub(super) fn on_request(self: &Arc<Self>, fields: u64) -> Answering {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.head.begin();
        Answering {
            activity: self.clone(),
            stage: Stage::Asked,
            share: self.share(fields),
        }
    }

    /// Books the bytes of a request with these fields, including its task.
    fn share(&self, fields: u64) -> Share {
        let request = match self.version {
            Over::Http1 => HTTP1_REQUEST,
            Over::Http2 => HTTP2_REQUEST,
        };
        self.account.share(request + fields)
    }

    /// Notes the stream of another protocol, whose request is over.
    pub(super) fn on_tunnel(self: &Arc<Self>) -> Tunnel {
        Tunnel(self.on_task(), self.share(0))
    }

    /// Notes a task of the connection.
    pub(super) fn on_task(self: &Arc<Self>) -> Working {
        self.tasks.fetch_add(1, Ordering::Relaxed);
        Working(self.clone())
    }

    /// Runs the task of a tunnel. If the client accepts nothing of the rest that the service left, it is told to
    /// reconnect: a part may be stuck below the stream.
    pub(super) async fn send_rest(self: &Arc<Self>, rest: Rest, task: impl Future) {
        let tunnel = self.on_tunnel();
        let outcome = rest.send(task, self.limits.stall_time).await;
        drop(tunnel);
        if outcome == Outcome::NotTaken && self.standing.tell(Order::Finish, Cause::Stalled) {
            let peer = self.standing.peer();
            tracing::debug!(%peer, "the client does not read the end of a tunnel: ending its connection");
        }
    }

    /// Returns once no request is in progress any longer, after a pause that begins now.
    pub(super) async fn drained(&self, pause: Duration) {
        tokio::time::sleep(pause).await;
        self.standing.tell(Order::Finish, self.standing.cause());
        while self.running() > 0 || self.has_data() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Returns true if a body has yielded data that was not sent.
    fn has_data(&self) -> bool {
        let responses = self.responses();
        let mut all = responses.all.iter().filter_map(Weak::upgrade);
        all.any(|response| response.held() > 0)
    }

    fn add(&self, response: &Arc<Response>) {
        let mut responses = self.responses();
        if responses.all.len() >= responses.most.max(FEW) {
            responses.all.retain(|response| response.strong_count() > 0);
            responses.most = 2 * responses.all.len();
        }
        responses.all.push(Arc::downgrade(response));
    }

    fn responses(&self) -> MutexGuard<'_, Responses> {
        self.responses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Activity {
    fn requests(&self) -> u64 {
        self.standing.requests()
    }

    fn on_failed(&self) {
        if self.admit() != Admission::Refuse {
            self.on_cancelled();
        }
    }

    fn on_data(&self, len: u64) {
        if let Some(inflow) = &self.inflow {
            inflow.on_arrived(len);
        }
    }

    fn on_trailers(&self, len: u64) -> u64 {
        let bytes = self.memory_of_block(len);
        if let Some(inflow) = &self.inflow {
            inflow.on_trailers(bytes);
        }
        bytes
    }

    fn on_closed(&self, bytes: u64) {
        if let Some(inflow) = &self.inflow {
            inflow.on_closed(bytes);
        }
    }

    fn on_partial_block(&self, len: u64) {
        if let Some(inflow) = &self.inflow {
            inflow.set_fields(self.memory_of_block(len));
        }
    }

    fn on_field_block(&self, since: Option<Instant>) {
        *self.field_block() = since;
    }
}

impl Watched for Activity {
    fn standing(&self) -> &Standing {
        &self.standing
    }

    fn has_go_away(&self) -> bool {
        self.is_http2()
    }

    fn running(&self) -> u64 {
        self.requests.load(Ordering::Relaxed) + self.tasks.load(Ordering::Relaxed)
    }

    fn count(&self, census: &mut Census) {
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed) as usize;
        census.add("requests", count(&self.requests), 0);
        census.add("tasks of requests", count(&self.tasks), 0);
        let responses = self.responses().all.len();
        census.add_of::<Weak<Response>>("responses", responses);
        let unread = self.unread() as usize;
        census.add("unread input", usize::from(unread > 0), unread);
    }

    fn end_slow(&self, now: Instant) {
        let since = *self.field_block();
        let time = since.map(|since| now.saturating_duration_since(since));
        // No other frame may come before its end (RFC 9113 §4.3), so nothing else can go on.
        if time.is_some_and(|time| time >= self.limits.header_time) {
            self.standing.tell(Order::Close, Cause::Fields);
        }
    }

    fn account(&self) -> &Account {
        &self.account
    }

    fn memory(&self) -> u64 {
        let responses = self.responses();
        let all = responses.all.iter().filter_map(Weak::upgrade);
        let held: u64 = all.map(|response| response.held()).sum();
        held + self.unread()
    }

    fn end_stalled(&self, now: Instant, time: Duration) {
        let line = self.line().upgrade();
        if self.running() > 0 && line.is_some_and(|line| line.is_gone()) {
            self.standing.tell(Order::Close, Cause::Gone);
        }
        let all: Vec<_> = {
            let mut responses = self.responses();
            responses.all.retain(|response| response.strong_count() > 0);
            responses.all.iter().filter_map(Weak::upgrade).collect()
        };
        for response in all {
            if !response.has_stalled(now, time) {
                continue;
            }
            let peer = self.standing.peer();
            // Data stuck below a stream can only end with the connection, but other streams need not end with it.
            let order = match (self.version, self.running()) {
                (Over::Http1, _) | (Over::Http2, 0) => Order::Close,
                (Over::Http2, _) => Order::Finish,
            };
            if response.end() {
                tracing::debug!(%peer, "the client does not read a response: resetting its stream");
            } else if !response.has_task() && self.standing.tell(order, Cause::Stalled) {
                tracing::debug!(%peer, ?order, "the client does not read a response: ending its connection");
            }
        }
    }
}

impl Answering {
    /// Returns a reader for what arrives on the stream of the request after its body.
    pub(super) fn reader(&self) -> Option<Reader> {
        self.activity.inflow.as_ref().map(Inflow::reader)
    }

    /// Books further bytes.
    pub(super) fn grow(&mut self, bytes: u64) {
        self.share.grow(bytes);
    }

    /// Notes a response with a body.
    pub(super) fn on_response(&mut self, response: &Arc<Response>) {
        self.activity.add(response);
        if self.activity.version == Over::Http2 {
            Response::tell_task(response);
        }
        self.stage = Stage::Answered;
    }

    /// Notes that the response has begun, or that there will be none.
    pub(super) fn on_over(&mut self) {
        self.stage = Stage::Over;
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let activity = &self.activity;
        activity.requests.fetch_sub(1, Ordering::Relaxed);
        activity.head.begin();
        if self.stage != Stage::Over {
            activity.on_cancelled();
        }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.tasks.fetch_sub(1, Ordering::Relaxed);
    }
}
