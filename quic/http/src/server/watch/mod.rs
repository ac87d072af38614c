//! The watch over the connections of a server: one task looks at all of them from time to time, so that none
//! needs a timer of its own.

mod cancels;
mod stalls;
mod standing;
mod told;

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::clock;
use crate::Limits;

pub(super) use stalls::Stalls;
pub(super) use standing::{Admission, Standing};
pub(super) use told::{Cause, Order};

/// Connections that are looked at before other tasks get a turn.
const TOGETHER: usize = 64;

/// Bounds of the time between two looks.
const LOOKS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(5));

/// Lines of the log about clients that go too far, in a second.
const LINES: u64 = 10;

/// A connection of either kind.
pub(super) trait Watched: Send + Sync {
    fn standing(&self) -> &Standing;

    /// Returns the number of requests that are under way.
    fn running(&self) -> u64;

    /// Ends the responses of which the client has taken nothing for this time.
    fn end_stalled(&self, now: Instant, time: Duration);
}

/// All connections of a server, the oldest first.
pub(super) struct Watch {
    limits: Limits,
    connections: Mutex<BTreeMap<u64, Weak<dyn Watched>>>,
    next: AtomicU64,
    /// Second since the start in which something was logged last, and the number of lines in it.
    lines: Mutex<(u64, u64)>,
    start: Instant,
}

/// Place of a connection under watch, until it is dropped.
pub(super) struct Seat {
    watch: Arc<Watch>,
    key: u64,
}

impl Watch {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
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

    /// Tells all connections something.
    pub(super) fn tell_all(&self, order: Order, cause: Cause) {
        self.each(|connection| {
            connection.standing().tell(order, cause);
        });
    }

    /// Starts the task that looks at all connections until the server is gone.
    pub(super) fn begin(self: &Arc<Self>) {
        let limits = &self.limits;
        let time = limits.header_time.min(limits.stall_time).min(limits.idle_time);
        let pause = (time / 4).clamp(LOOKS.0, LOOKS.1);
        let watch = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let mut after = None;
                loop {
                    let Some(watch) = watch.upgrade() else {
                        return;
                    };
                    after = watch.look(after);
                    drop(watch);
                    if after.is_none() {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            }
        });
    }

    /// Looks at the next connections behind this one. Returns the last of them, if there may be more.
    fn look(&self, after: Option<u64>) -> Option<u64> {
        let (last, some) = self.some(after);
        let now = clock::now();
        for connection in some {
            let standing = connection.standing();
            standing.end_if_idle(connection.running(), now, &self.limits);
            connection.end_stalled(now, self.limits.stall_time);
        }
        last
    }

    fn each(&self, mut act: impl FnMut(&dyn Watched)) {
        let mut after = None;
        loop {
            let (last, some) = self.some(after);
            some.iter().for_each(|connection| act(&**connection));
            if last.is_none() {
                return;
            }
            after = last;
        }
    }

    /// Returns the next connections behind this one, and the last of them, if there may be more.
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

    /// Returns true if a line about a client may be logged now: a flood must not fill the disk.
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
