//! Watches the connections of a server. One task visits all of them from time to time, so that none needs a timer of
//! its own.

mod cancels;
mod count;
mod hosts;
mod memory;
mod orders;
mod proxy;
mod standing;

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use hybriq::stats::Census;

use super::clock;
use crate::Limits;
pub(super) use count::{Connections, Kind, Served};
pub(super) use hosts::Hosts;
pub use hosts::Misdirected;
pub(super) use memory::{
    Account, HTTP1_CONNECTION, HTTP1_REQUEST, HTTP2_CONNECTION, HTTP2_REQUEST, HTTP3_REQUEST,
    Memory, QUIC_CONNECTION, Share,
};
pub(super) use orders::{Cause, Order};
pub(super) use proxy::{Addresses, ProxyError};
pub use proxy::{ProxyNetworkError, ProxyProtocol};
pub(super) use standing::{Admission, LATE, Standing};

/// Connections that are looked at before other tasks get a turn.
const TOGETHER: usize = 64;

/// Bounds of the time between two looks.
const LOOKS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(5));

/// The same if there is a memory budget: between two visits, memory is estimated.
const LOOK_AT_MEMORY: Duration = Duration::from_millis(250);

/// Most log lines about misbehaving clients in a second.
const LINES: u64 = 10;

/// A connection of either kind.
pub(super) trait Watched: Send + Sync {
    fn standing(&self) -> &Standing;

    /// Returns the number of requests in progress.
    fn running(&self) -> u64;

    /// Adds the entries of its tables.
    fn count(&self, census: &mut Census);

    /// Ends the responses of which the client has accepted nothing for `time`.
    fn end_stalled(&self, now: Instant, time: Duration);

    /// Ends the connection if the fields of a request take too long, unless the request does that itself.
    fn end_slow(&self, _now: Instant) {}

    /// Sends PINGs after this time of silence while a request is in progress, unless the protocol does that itself.
    fn keep_alive(&self, _silence: Duration) {}

    /// Returns true if the client can be told to send no more requests while it may be sending one.
    fn has_go_away(&self) -> bool {
        true
    }

    /// Returns the account of the memory that the connection takes.
    fn account(&self) -> &Account;

    /// Returns the bytes that the connection takes in addition to its account.
    fn memory(&self) -> u64;
}

/// All connections of a server, the oldest first.
pub(super) struct Watch {
    limits: Limits,
    connections: Mutex<BTreeMap<u64, Weak<dyn Watched>>>,
    next: AtomicU64,
    pub(super) memory: Arc<Memory>,
    /// Second since the start in which something was logged last, and the number of lines in it.
    lines: Mutex<(u64, u64)>,
    start: Instant,
}

/// A watched connection, until this is dropped.
pub(super) struct Seat {
    watch: Arc<Watch>,
    key: u64,
}

impl Watch {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            memory: Arc::new(Memory::new(limits.memory)),
            limits,
            connections: Mutex::default(),
            next: AtomicU64::new(0),
            lines: Mutex::default(),
            start: clock::now(),
        })
    }

    /// Watches a connection.
    pub(super) fn add(self: &Arc<Self>, connection: Weak<dyn Watched>) -> Seat {
        let key = self.next.fetch_add(1, Ordering::Relaxed);
        self.connections().insert(key, connection);
        Seat {
            watch: self.clone(),
            key,
        }
    }

    /// Adds the entries of all connections.
    pub(super) fn census(&self, census: &mut Census) {
        census.add("watched connections", self.connections().len(), 0);
        self.each(|connection| connection.count(census));
    }

    /// Returns the bytes that all connections take.
    pub(super) fn memory_of_all(&self) -> u64 {
        let mut all = self.memory.booked();
        self.each(|connection| all = all.saturating_add(connection.memory()));
        all
    }

    /// Gives all connections an order.
    pub(super) fn tell_all(&self, order: Order, cause: Cause) {
        self.each(|connection| {
            connection.standing().tell(order, cause);
        });
    }

    /// Asks the clients of all connections to go, where they can be asked at any time.
    pub(super) fn ask_to_leave(&self) {
        self.each(|connection| {
            if connection.has_go_away() {
                connection.standing().tell(Order::Drain, Cause::Shutdown);
            }
        });
    }

    /// Starts the task that visits all connections until the server is gone.
    pub(super) fn begin(self: &Arc<Self>, keep_alive: Option<Duration>) {
        let limits = &self.limits;
        let time = limits
            .header_time
            .min(limits.stall_time)
            .min(limits.idle_time)
            .min(keep_alive.unwrap_or(Duration::MAX));
        let mut pause = (time / 4).clamp(LOOKS.0, LOOKS.1);
        if self.memory.is_bounded() {
            pause = pause.min(LOOK_AT_MEMORY);
        }
        let watch = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let (mut after, mut memory) = (None, 0);
                loop {
                    let Some(watch) = watch.upgrade() else {
                        return;
                    };
                    after = watch.look(after, keep_alive, &mut memory);
                    if after.is_none() {
                        let bytes = watch.memory.on_look(memory);
                        watch.shed(bytes);
                        break;
                    }
                    drop(watch);
                    tokio::task::yield_now().await;
                }
            }
        });
    }

    /// Ends connections without requests, the oldest first, until they will free `bytes`.
    fn shed(&self, mut bytes: u64) {
        if bytes == 0 {
            return;
        }
        let mut ended = 0;
        self.each(|connection| {
            if bytes == 0 || connection.running() > 0 {
                return;
            }
            let standing = connection.standing();
            let is_new = standing.tell(Order::Finish, Cause::Memory);
            ended += u64::from(is_new);
            // One that ends for another reason takes its time.
            if is_new || standing.cause() == Cause::Memory {
                let booked = connection.account().bytes();
                let taken = booked.saturating_add(connection.memory());
                bytes = bytes.saturating_sub(taken);
            }
        });
        if self.may_log() {
            tracing::warn!(
                ended,
                "the memory budget is exhausted: ending idle connections and answering new requests with 503"
            );
        }
    }

    /// Visits the connections that follow `after`. Returns the last of them if there may be more.
    fn look(
        &self,
        after: Option<u64>,
        keep_alive: Option<Duration>,
        memory: &mut u64,
    ) -> Option<u64> {
        let (last, some) = self.some(after);
        let now = clock::now();
        for connection in some {
            let standing = connection.standing();
            standing.end_if_idle(connection.running(), now, &self.limits);
            connection.end_stalled(now, self.limits.stall_time);
            connection.end_slow(now);
            if let Some(silence) = keep_alive {
                connection.keep_alive(silence);
            }
            if self.memory.is_bounded() {
                *memory = memory.saturating_add(connection.memory());
            }
        }
        last
    }

    fn each(&self, mut act: impl FnMut(&dyn Watched)) {
        let mut after = None;
        loop {
            let (last, some) = self.some(after);
            for connection in some {
                act(&*connection);
            }
            if last.is_none() {
                return;
            }
            after = last;
        }
    }

    /// Returns the connections that follow `after`, and the last of them if there may be more.
    fn some(&self, after: Option<u64>) -> (Option<u64>, Vec<Arc<dyn Watched>>) {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let connections = self.connections();
        let mut last = None;
        let mut some = Vec::new();
        for (count, (key, connection)) in connections.range((from, Bound::Unbounded)).enumerate() {
            if count == TOGETHER {
                return (last, some);
            }
            last = Some(*key);
            some.extend(connection.upgrade());
        }
        (None, some)
    }

    /// Returns true if a line about a client may be logged now. A flood must not fill the disk.
    pub(super) fn may_log(&self) -> bool {
        let second = clock::now().duration_since(self.start).as_secs();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.0 != second {
            *lines = (second, 0);
        }
        lines.1 += 1;
        lines.1 <= LINES
    }

    fn connections(&self) -> MutexGuard<'_, BTreeMap<u64, Weak<dyn Watched>>> {
        let connections = self.connections.lock();
        connections.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let connection = self.watch.connections().remove(&self.key);
        // Whatever this frees is freed without the lock.
        drop(connection);
    }
}
