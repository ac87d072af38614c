//! The requests of a connection, and whether the next one is served.

use std::{
    net::SocketAddr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use super::{
    super::clock,
    Watch,
    cancels::{Cancels, Verdict},
    orders::{Cause, Order, Told},
};
use crate::Limits;

/// Requests after the end that may have been on their way when the client was told, in addition to
/// [`Limits::cancelled`].
pub(crate) const LATE: u64 = 128;

/// The requests of a connection, and what it was told.
pub(crate) struct Standing {
    told: Told,
    /// Requests that arrived.
    requests: AtomicU64,
    /// Requests that arrived after the end.
    late: AtomicU64,
    cancels: Cancels,
    seen: Mutex<Seen>,
    peer: SocketAddr,
}

/// What the watch saw at its last visit.
struct Seen {
    requests: u64,
    /// Time at which a request last arrived or was in progress.
    active: Instant,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Serve,
    /// It is served, and is the last one of the connection.
    ServeLast,
    /// It is refused unprocessed; the client may send it again.
    Refuse,
}

impl Standing {
    pub(crate) fn new(peer: SocketAddr) -> Self {
        Self {
            told: Told::default(),
            requests: AtomicU64::new(0),
            late: AtomicU64::new(0),
            cancels: Cancels::default(),
            seen: Mutex::new(Seen {
                requests: 0,
                active: clock::now(),
            }),
            peer,
        }
    }

    /// Returns the number of requests that arrived.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Decides about a request that arrived. One task calls this.
    pub(crate) fn admit(&self, limits: &Limits, watch: &Watch) -> Admission {
        // Nobody else writes it.
        let number = self.requests() + 1;
        self.requests.store(number, Ordering::Relaxed);
        if self.told.order() >= Order::Finish {
            self.on_late(limits);
            return Admission::Refuse;
        }
        if self.cancels.is_over() {
            let verdict = self.cancels.judge(clock::now(), limits.cancelled);
            if verdict != Verdict::Serve {
                self.on_refused(verdict, watch);
                return Admission::Refuse;
            }
        }
        if number >= limits.requests {
            self.told.tell(Order::Finish, Cause::Requests);
            return Admission::ServeLast;
        }
        Admission::Serve
    }

    fn on_refused(&self, verdict: Verdict, watch: &Watch) {
        let (peer, failed) = (self.peer, self.cancels.failed());
        if verdict == Verdict::Finish {
            if self.told.tell(Order::Finish, Cause::Cancelled) && watch.may_log() {
                tracing::warn!(%peer, failed, "a client cancels too many requests: ending its connection");
            }
        } else if failed.is_power_of_two() && watch.may_log() {
            tracing::warn!(%peer, failed, "a client cancels too many requests: refusing new ones");
        }
    }

    /// Counts a request that arrived after its client was told to send none.
    fn on_late(&self, limits: &Limits) {
        let late = self.late.fetch_add(1, Ordering::Relaxed) + 1;
        if late > u64::from(limits.cancelled) + LATE {
            self.told.tell(Order::Close, self.told.cause_of_deaf());
        }
    }

    /// Counts a request that the client cancelled before its response began.
    pub(crate) fn on_cancelled(&self, running: u64, limits: &Limits) {
        let over = self.requests().saturating_sub(running);
        self.cancels
            .on_cancelled(clock::now(), over, limits.cancelled);
    }

    /// Ends the connection if it has had no request in progress for too long.
    pub(super) fn end_if_idle(&self, running: u64, now: Instant, limits: &Limits) {
        let requests = self.requests();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if running > 0 || requests != seen.requests {
            *seen = Seen {
                requests,
                active: now,
            };
            return;
        }
        let idle = now.saturating_duration_since(seen.active);
        if requests == 0 && idle >= limits.header_time {
            self.told.tell(Order::Finish, Cause::Silent);
        } else if idle >= limits.idle_time {
            self.told.tell(Order::Drain, Cause::Idle);
        }
    }

    /// Gives the connection an order.
    pub(crate) fn tell(&self, order: Order, cause: Cause) -> bool {
        self.told.tell(order, cause)
    }

    /// Waits for this order, or a later one. One task waits at a time.
    pub(crate) async fn told(&self, order: Order) -> Order {
        self.told.at_least(order).await
    }

    /// Returns why the connection ends.
    pub(crate) fn cause(&self) -> Cause {
        self.told.cause()
    }

    /// Returns the address of the client.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }
}
