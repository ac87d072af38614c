//! Clients that cancel requests.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Time in which [`Limits::cancelled`](crate::Limits::cancelled) requests may be cancelled.
const WINDOW: Duration = Duration::from_secs(10);

/// Amount by which one request raises a level, so that levels fall by whole steps in a millisecond.
const REQUEST: u64 = WINDOW.as_millis() as u64;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Serve,
    /// It is refused unprocessed; the client may send it again.
    Refuse,
    /// It is refused, and so are all later ones: the client ignores the refusals.
    Finish,
}

/// Counts the requests of a connection that were cancelled before their response began, which make the server work
/// for nothing (CVE-2023-44487, CVE-2025-8671), and decides when there are too many.
///
/// Both counts fall with time. Above the limit, new requests are refused, which costs next to nothing, until the
/// count has fallen. A client with as many refused requests loses its connection. Each answered request makes up for
/// a cancelled one: a proxy with many users has many that give up.
#[derive(Debug, Default)]
pub(crate) struct Cancels {
    is_over: AtomicBool,
    levels: Mutex<Levels>,
}

#[derive(Debug, Default)]
struct Levels {
    cancelled: Level,
    refused: Level,
    /// Requests that were answered when the last one was cancelled.
    answered: u64,
    /// All requests that were cancelled or refused.
    failed: u64,
}

/// A count that falls by the limit in [`WINDOW`].
#[derive(Debug, Default)]
struct Level {
    level: u64,
    at: Option<Instant>,
}

impl Level {
    fn fall(&mut self, now: Instant, most: u32) {
        let passed = self
            .at
            .map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        let millis = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        if millis > 0 || self.at.is_none() {
            self.level = self
                .level
                .saturating_sub(millis.saturating_mul(most.into()));
            self.at = Some(now);
        }
    }

    fn add(&mut self, now: Instant, most: u32) {
        self.fall(now, most);
        self.level += REQUEST;
    }

    /// Returns true if the count is above the limit.
    fn is_over(&self, most: u32) -> bool {
        self.level > u64::from(most) * REQUEST
    }

    /// Returns true if one more is within the limit.
    fn has_room(&self, most: u32) -> bool {
        self.level + REQUEST <= u64::from(most) * REQUEST
    }
}

impl Cancels {
    /// Counts a request that was cancelled before its response began. `over` is the number of the connection's
    /// requests that are over.
    pub(crate) fn on_cancelled(&self, now: Instant, over: u64, most: u32) {
        let mut levels = self.lock();
        levels.failed += 1;
        let answered = over.saturating_sub(levels.failed);
        let paid = answered.saturating_sub(levels.answered);
        levels.answered = levels.answered.max(answered);
        let level = &mut levels.cancelled;
        level.level = level.level.saturating_sub(paid.saturating_mul(REQUEST));
        level.add(now, most);
        if level.is_over(most) {
            self.is_over.store(true, Ordering::Release);
        }
    }

    /// Returns false as long as every request is served. It costs one load.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Decides about a new request, where [`is_over`](Self::is_over).
    pub(crate) fn judge(&self, now: Instant, most: u32) -> Verdict {
        let mut levels = self.lock();
        levels.cancelled.fall(now, most);
        if levels.cancelled.has_room(most) {
            self.is_over.store(false, Ordering::Release);
            return Verdict::Serve;
        }
        levels.failed += 1;
        levels.refused.add(now, most);
        if levels.refused.is_over(most) {
            Verdict::Finish
        } else {
            Verdict::Refuse
        }
    }

    /// Returns the number of requests that were cancelled or refused.
    pub(crate) fn failed(&self) -> u64 {
        self.lock().failed
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Levels> {
        self.levels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a base for virtual time")]
    fn start() -> Instant {
        Instant::now()
    }

    /// Lets a client send requests at a rate and cancel each that is served. Returns how many were served
    /// and refused in this time, and whether the connection had to end.
    fn cancel_all(each_second: u64, seconds: u64, answered: u64) -> (u64, u64, bool) {
        let (cancels, start) = (Cancels::default(), start());
        let (mut served, mut refused) = (0, 0);
        for request in 0..each_second * seconds {
            let now = start + Duration::from_micros(1_000_000 / each_second * request);
            let verdict = if cancels.is_over() {
                cancels.judge(now, 200)
            } else {
                Verdict::Serve
            };
            match verdict {
                Verdict::Serve => {
                    served += 1;
                    // For each that is cancelled, so many are answered.
                    let over = served * (1 + answered) + refused;
                    cancels.on_cancelled(now, over, 200);
                }
                Verdict::Refuse => refused += 1,
                Verdict::Finish => return (served, refused, true),
            }
        }
        (served, refused, false)
    }

    #[test]
    fn a_client_that_gives_up_thirty_requests_a_second_keeps_its_connection() {
        let (served, refused, ended) = cancel_all(30, 120, 0);
        assert!(!ended);
        assert!(served >= 2_400, "twenty a second are served, {served}");
        assert!(refused > 0, "more than the limit");
    }

    #[test]
    fn a_client_below_the_limit_is_not_refused_anything() {
        assert_eq!(cancel_all(20, 120, 0), (2_400, 0, false));
    }

    #[test]
    fn a_flood_is_refused_and_then_ends() {
        let (served, refused, ended) = cancel_all(10_000, 10, 0);
        assert!(ended);
        assert!((200..210).contains(&served), "{served}");
        assert!((200..210).contains(&refused), "{refused}");
    }

    #[test]
    fn answered_requests_pay_for_cancelled_ones() {
        let (served, refused, ended) = cancel_all(1_000, 10, 1);
        assert_eq!((served, refused, ended), (10_000, 0, false));
    }
}
