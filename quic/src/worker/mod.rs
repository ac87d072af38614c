//! The loop between the sockets and the core. A worker owns its sockets, the routing table, the timers
//! and all connections of its shard; there is no task and no channel per connection.
//!
//! One turn: receive a batch → due timers → what the application did → service every connection
//! that was touched → wake applications → let them run → fill and send.

pub(crate) mod admit;
mod connection;
mod life;
mod meter;
mod settings;
mod shared;
pub(crate) mod sockets;
mod turn;

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Poll, Waker},
    time::{Duration, Instant},
};

use hybriq_proto::stats::EndpointStats;
use hybriq_proto::{
    endpoint::{Endpoint, Slot},
    wire::error::ConnectionError,
};
use hybriq_tls::Provider;
use tokio::sync::watch;

use self::{
    connection::{
        attempt::failure,
        migrate::Rebinding,
        table::{Connections, Queues},
    },
    life::end::Closing,
    meter::Meter,
    sockets::{Advice, Sockets, batch::SendBatch, reports::Reports},
    turn::{inbox::Inbox, malloc_trim::MallocTrim},
};
use crate::{
    errors::ConnectError, restart::succession::Succession, sync::timers::Timers, udp::Buffers,
};

pub(crate) use crate::sync::waiters::{Drain, set_waker, wake};
pub use admit::handshakes::{HandshakeCount, HandshakeKind, HandshakeOutcome, RefusalReason};
pub(crate) use connection::attempt::{Attempt, Departure, Promise};
pub(crate) use connection::{Ended, Handle, Polling, Rejected, State, StreamWatch, WaitFor};
pub(crate) use life::start::{Start, first_core};
pub(crate) use settings::{Spent, Watcher, WorkerSettings};
pub(crate) use shared::Shared;
pub(crate) use shared::mailbox::{Command, Mailbox};

/// Number of times in one turn that applications may run before anything is sent. Their data then
/// shares datagrams with protocol frames: a reply with the acknowledgement and HANDSHAKE_DONE, a
/// request with the client's Finished.
const ROUNDS: usize = 3;

/// Largest number of timers that are handled in one turn: the idle timeouts of many connections may
/// expire at once.
const TIMERS: usize = 256;

/// Interval at which the core is told the time of day again, because the clocks drift apart.
const CLOCK_INTERVAL: Duration = Duration::from_secs(60);

/// One worker of an endpoint.
pub(crate) struct Worker {
    index: u8,
    settings: Arc<WorkerSettings>,
    shared: Arc<Shared>,
    inbox: Inbox,
    sockets: Sockets,
    buffers: Buffers,
    batch: SendBatch,
    endpoint: Endpoint,
    connections: Connections,
    timers: Timers,
    /// Current time, read at the start of a turn and after applications ran.
    now: Instant,
    queues: Queues,
    wakes: Vec<Waker>,
    standing: Standing,
    succession: Succession,
    walks: Walks,
    stats: EndpointStats,
    meter: Meter,
    chores: Chores,
    published: Published,
    reports: Reports,
    /// Dropped last, after the sockets.
    _working: watch::Receiver<()>,
}

/// Changes of the whole endpoint that have not yet reached every connection.
#[derive(Default)]
struct Walks {
    /// Close of the endpoint.
    closing: Option<Closing>,
    /// Move to another socket.
    rebinding: Option<Rebinding>,
}

impl Walks {
    const fn are_under_way(&self) -> bool {
        self.closing.is_some() || self.rebinding.is_some()
    }
}

/// Work that is due from time to time, independently of the connections.
#[derive(Default)]
struct Chores {
    /// Time at which the core last learned the time of day.
    clock_set: Option<Instant>,
    malloc_trim: MallocTrim,
    /// Provider that can prepare for its next handshakes.
    unprepared: Option<Arc<dyn Provider>>,
}

/// Numbers of this worker that others read, as last published.
#[derive(Default)]
struct Published {
    /// Clients with an unfinished handshake that [`Shared`] knows about.
    unfinished: usize,
    /// Connections that ended but are not yet published.
    ended: usize,
}

/// Whether the application still uses the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// The endpoint has handles and is open.
    Open,
    /// The last handle was dropped: the connections live on, and no new ones are accepted.
    Released,
    /// The endpoint was closed, and all its connections with it.
    Closed,
    /// The same, and no longer waits for the peers.
    Abandoned,
}

impl Standing {
    fn is_closed(self) -> bool {
        matches!(self, Self::Closed | Self::Abandoned)
    }
}

impl Worker {
    pub(crate) fn new(
        index: u8,
        shared: Arc<Shared>,
        mailbox: Arc<Mailbox>,
        sockets: Sockets,
        settings: Arc<WorkerSettings>,
    ) -> Self {
        let reports = Reports::new(settings.accepts());
        Self {
            _working: shared.working(),
            index,
            shared,
            inbox: Inbox::new(mailbox),
            sockets,
            buffers: Buffers::new(),
            batch: SendBatch::new(),
            endpoint: settings.endpoint(index),
            meter: Meter::new(settings.name.as_ref(), index),
            settings,
            connections: Connections::default(),
            timers: Timers::default(),
            now: crate::sync::clock::now(),
            queues: Queues::default(),
            wakes: Vec::new(),
            standing: Standing::Open,
            succession: Succession::default(),
            walks: Walks::default(),
            stats: EndpointStats::default(),
            chores: Chores::default(),
            published: Published::default(),
            reports,
        }
    }

    /// Runs until the endpoint is closed or forgotten and all its connections are drained.
    pub(crate) async fn run(mut self) {
        loop {
            if life::recovery::caught(self.turn()).await.is_err() {
                self.recover();
            }
            if self.is_done() && self.inbox.try_end() {
                return;
            }
            self.wait().await;
        }
    }

    async fn turn(&mut self) {
        self.now = crate::sync::clock::now();
        self.meter.begin_turn(self.now);
        self.inbox.begin_turn();
        self.set_clock();
        let elsewhere = self
            .shared
            .unfinished()
            .saturating_sub(self.published.unfinished);
        self.endpoint.set_unfinished_elsewhere(elsewhere);
        let crowded = self.shared.is_crowded(self.now, self.shared.unfinished());
        self.endpoint.set_crowded(crowded);
        self.hear_reports();
        self.receive();
        self.on_timeouts();
        self.go_on_closing();
        self.go_on_rebinding();
        for _ in 0..ROUNDS {
            self.take_requests();
            self.service();
            if self.wakes.is_empty() {
                break;
            }
            crate::sync::waiters::wake(&mut self.wakes);
            self.meter.pause();
            tokio::task::yield_now().await;
            self.now = crate::sync::clock::now();
            self.meter.resume(self.now);
        }
        self.take_requests();
        self.service();
        self.transmit();
        self.tell_refused();
        let Self {
            meter, connections, ..
        } = self;
        meter.take_census(self.now, |from| connections.memory_held(from));
        self.publish();
        crate::sync::waiters::wake(&mut self.wakes);
        self.meter.end_turn();
        if self
            .chores
            .malloc_trim
            .is_due(self.now, self.connections.len())
        {
            turn::malloc_trim::give_back();
        }
    }

    fn set_clock(&mut self) {
        let due = |set: Instant| self.now.saturating_duration_since(set) >= CLOCK_INTERVAL;
        if self.chores.clock_set.is_none_or(due) {
            self.chores.clock_set = Some(self.now);
            self.endpoint
                .set_clock(self.now, crate::sync::clock::time_of_day());
        }
    }

    /// Returns the counters of the worker and of its endpoint.
    fn all_stats(&self) -> EndpointStats {
        let mut stats = self.stats;
        stats += self.endpoint.stats();
        stats
    }

    /// Publishes the counters, and then the number of connections that ended in this turn.
    fn publish(&mut self) {
        let stats = self.all_stats();
        self.finish_deciding();
        self.meter.publish(self.now, &stats);
        self.inbox.set_stats(&stats);
        let unfinished = self.endpoint.unfinished();
        self.shared
            .set_unfinished(self.published.unfinished, unfinished);
        self.published.unfinished = unfinished;
        if self.published.ended > 0 {
            self.inbox.on_ended(self.published.ended);
            self.shared.on_ended(self.published.ended, &mut self.wakes);
            self.published.ended = 0;
        }
    }

    /// Returns true if nothing is left to do, now or later.
    fn is_done(&self) -> bool {
        if self.standing == Standing::Abandoned {
            return true;
        }
        self.standing != Standing::Open
            && self.connections.is_empty()
            && self.batch.is_empty()
            && self.queues.touched.is_empty()
            && !self.inbox.has_waiting()
            && (self.shared.workers() == 1 || self.shared.is_idle())
    }

    /// Waits until there is something to do.
    async fn wait(&mut self) {
        let may_send = !self.queues.sending.is_empty() && self.batch.is_empty();
        if may_send || self.walks.are_under_way() || self.inbox.has_waiting() {
            return tokio::task::yield_now().await;
        }
        let mut slept = false;
        let prepares = self.chores.unprepared.is_some();
        let is_idle = poll_fn(|cx| {
            let next = self.next_timeout();
            let ready = self.inbox.poll_requests(cx).is_ready()
                || self.poll_readable(cx).is_ready()
                || self.poll_writable(cx).is_ready()
                || self.timers.poll_alarm(next, cx).is_ready()
                || self.poll_reports(cx).is_ready();
            if ready {
                return Poll::Ready(false);
            }
            if prepares {
                return Poll::Ready(true);
            }
            slept = true;
            Poll::Pending
        })
        .await;
        if is_idle {
            self.prepare();
        }
        if !slept {
            tokio::task::yield_now().await;
        }
    }

    /// Notes a provider that can prepare for its next handshakes.
    fn prepare_for(&mut self, provider: &Arc<dyn Provider>) {
        if provider.may_prepare() {
            self.chores.unprepared = Some(provider.clone());
        }
    }

    /// Prepares for handshakes, one step at a time: datagrams that arrive meanwhile wait for one
    /// step at most.
    fn prepare(&mut self) {
        if let Some(provider) = self.chores.unprepared.take() {
            provider.prepare();
            self.prepare_for(&provider);
        }
    }

    /// Returns ready when datagrams may be waiting.
    fn poll_readable(&self, cx: &mut std::task::Context<'_>) -> Poll<()> {
        let forwarded = self.succession.inlet();
        if forwarded.is_some_and(|inlet| inlet.poll_readable(cx).is_ready()) {
            return Poll::Ready(());
        }
        self.sockets.poll_readable(cx)
    }

    /// Returns ready when the socket that the batch waits for may have room.
    fn poll_writable(&self, cx: &mut std::task::Context<'_>) -> Poll<()> {
        match self.batch.waits_for() {
            Some(socket) => self.sockets.poll_writable(socket, cx),
            None => Poll::Pending,
        }
    }

    /// Returns the time of the next timer. While the socket is full, the endpoint's timers are left
    /// out: their time has already passed, and their datagrams wait for the socket.
    fn next_timeout(&self) -> Option<Instant> {
        let endpoint = self.endpoint.next_timeout();
        let endpoint = endpoint.filter(|&at| self.batch.is_empty() || at > self.now);
        let all = [
            self.timers.next(),
            endpoint,
            self.chores.malloc_trim.next_timeout(),
            self.meter.next_timeout(),
            self.succession.next_timeout(self.now),
            self.sockets.next_trial(self.batch.waits_for(), self.now),
        ];
        all.into_iter().flatten().min()
    }

    fn on_timeouts(&mut self) {
        let now = self.now;
        if self.endpoint.next_timeout().is_some_and(|at| at <= now) {
            self.endpoint.on_timeout(now);
        }
        for _ in 0..TIMERS {
            let Some(slot) = self.timers.pop(now) else {
                return;
            };
            let Some(entry) = self.connections.get(slot) else {
                continue;
            };
            if self.timers.is_due(slot, &mut entry.deadline, now) {
                entry.connection.lock().core.on_timeout(now);
                self.queues.touch(entry);
            } else if entry.deadline.is_quiet(now) {
                let again = entry.connection.lock().core.release_memory(now);
                self.timers.look_again(slot, &mut entry.deadline, again);
            }
        }
    }

    /// Services every connection that was touched: tells the peer that the connection was closed,
    /// supplies connection ids, takes its events.
    fn service(&mut self) {
        let mut touched = std::mem::take(&mut self.queues.touched);
        for slot in touched.drain(..) {
            self.service_one(slot);
        }
        self.queues.touched = touched;
    }

    fn service_one(&mut self, slot: Slot) {
        let Some(entry) = self.connections.get(slot) else {
            return;
        };
        entry.touched = false;
        let connection = entry.connection.clone();
        let mut state = connection.lock();
        state.go_on_leaving(self.now, &mut self.wakes);
        if let Some((code, reason)) = state.take_close() {
            state.core.close(self.now, code, reason);
        }
        let alive = self.endpoint.service(slot, &mut state.core);
        let mut reported = state.take_events(&mut self.wakes);
        state.local_address = self.sockets.local_address(state.core.local());
        if !alive {
            state.end(ConnectionError::TimedOut, &mut self.wakes);
        }
        if !self.sockets.is_single() {
            let useless = state.try_move(self.now, &mut self.wakes);
            let left = state.moving.socket().filter(|_| !alive);
            for socket in useless.into_iter().chain(left) {
                self.sockets.close_unused(socket);
            }
            let core = &state.core;
            self.sockets
                .recount(&mut entry.sockets, |socket| alive && core.uses(socket));
        }
        let is_awaited = entry.promise.is_some() || !entry.told_end;
        let error = state.closed.clone().filter(|_| is_awaited);
        let ended = (!alive).then(|| (Meter::last_stats(&state.core), state.closed.clone()));
        let role = state.core.side();
        drop(state);

        let span = &connection.span;
        reported.report(span, &mut self.meter, &mut entry.life, self.now);
        if let Some((stats, error)) = &ended {
            self.meter
                .on_end(&entry.life, stats, error.as_ref(), self.now);
        }
        if let Some(error) = error.as_ref().filter(|_| !entry.told_end) {
            entry.told_end = true;
            meter::trace::on_closed(span, error);
        }
        let outcome = match (reported.handshake.take(), error) {
            (Some(handshake), _) => Some(Ok((Handle::new(connection), handshake))),
            (None, error) => error.map(|error| Err(ConnectError::Connection(error))),
        };
        if let Some(outcome) = outcome {
            if let Some(promise) = entry.promise.take() {
                self.inbox.count_handshake(role, &outcome);
                promise.keep(outcome, &mut self.wakes);
                if role.is_client() {
                    self.reports.connecting = self.reports.connecting.saturating_sub(1);
                }
            }
        }
        if alive {
            self.queues.let_send(entry);
        } else {
            self.timers.remove(slot, &entry.deadline);
            self.connections.remove(slot);
            self.published.ended += 1;
        }
    }
}

/// Wakes all waiting tasks, even if the worker ends with its runtime.
impl Drop for Worker {
    fn drop(&mut self) {
        let mut wakes = std::mem::take(&mut self.wakes);
        self.published.ended += self.inbox.end();
        self.end_all(failure::RUNTIME, &mut wakes);
        self.meter.finish(&self.all_stats());
        self.shared.on_ended(self.published.ended, &mut wakes);
        self.shared.on_worker_ended(&mut wakes);
        crate::sync::waiters::wake(&mut wakes);
    }
}
