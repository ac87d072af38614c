//! Requests over connections that are kept and shared.
//!
//! ```text
//!  arrivals ─► a free connection, the last used first ─► request ─► free again, or lost
//!              else a new one, while there are few enough             │
//!              else wait ◄────────────────────────────────────────────┘
//! ```

use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::{Instant, timeout_at};

use super::attempt::{Attempt, Live};
use super::making::{Making, beside};
use crate::engine::record::failing::InARow;
use crate::engine::record::observer::Observer as _;
use crate::engine::script::Scope;
use crate::engine::script::session::Session;
use crate::engine::time::clock;
use crate::engine::time::turns::Turns;
use crate::scenario::Pool;
use crate::system::outcome::{Failed, Kind};

/// State shared by the requests of one operation.
pub(crate) struct Pooling<'a> {
    pub(crate) making: Making<'a>,
    pub(crate) pool: &'a Pool,
    pub(crate) failures: InARow,
}

/// A kept connection.
struct Kept<'a> {
    attempt: Rc<Attempt<'a>>,
    live: Live<'a>,
    session: Session<'a>,
    /// Time of its last use.
    used: Instant,
}

/// Futures in progress: requests, which may return their connection, and closings.
type Running<'b, 'a> = FuturesUnordered<LocalBoxFuture<'b, Done<'a>>>;

enum Done<'a> {
    Request(Option<Box<Kept<'a>>>),
    Closing,
}

impl<'a> Pooling<'a> {
    /// Makes all requests, and returns when the last one has ended and all connections are closed.
    pub(crate) async fn run(&self) {
        let phase = self.making.phase;
        let mut turns = Some(self.turns());
        let mut running = Running::new();
        // The last used connection is at the end.
        let mut free: Vec<Kept<'a>> = Vec::new();
        let mut busy = 0_usize;
        loop {
            if phase.is_stopping() || self.failures.is_too_many() {
                self.give_up(turns.take());
            }
            let has_room = busy < self.pool.connections.max(1) as usize;
            let due = turns.as_ref().and_then(Turns::due);
            match (&mut turns, due) {
                (Some(turns), Some(due)) if has_room && due <= Instant::now() => {
                    turns.advance();
                    busy += 1;
                    running.push(Box::pin(self.request(free.pop(), due)));
                    continue;
                }
                (_, None) if busy == 0 => break,
                _ => {}
            }
            tokio::select! {
                biased;
                Some(done) = running.next() => if let Done::Request(kept) = done {
                    busy -= 1;
                    free.extend(kept.map(|kept| *kept));
                },
                () = self.is_over(free.first()) => {
                    running.push(Box::pin(self.close(free.remove(0))));
                }
                () = begins(due.filter(|_| has_room)) => {}
                () = phase.stopping(), if turns.is_some() => {}
            }
        }
        running.extend(free.into_iter().map(|kept| self.close(kept).boxed_local()));
        while running.next().await.is_some() {}
    }

    /// Counts turns that were due but held back until the end.
    fn give_up(&self, turns: Option<Turns>) {
        let phase = self.making.phase;
        if let (Some(turns), Some(end)) = (turns, phase.stopped_at()) {
            let count = turns.count_due(end);
            phase.recorder.never_began(self.making.label, count);
        }
    }

    fn turns(&self) -> Turns {
        let pool = self.pool;
        let requests = self.making.phase.at_most(pool.requests);
        let every = pool.every.map(|time| 1.0 / time.as_secs_f64());
        let rate = pool.rate.or(every);
        let turns = Turns::new(requests, rate, pool.arrivals);
        match rate {
            Some(_) => turns.in_bursts(pool.burst),
            None => turns,
        }
    }

    /// Makes one request, scheduled at `due`, on a free or a new connection. Returns the connection
    /// unless the request failed.
    async fn request(&self, kept: Option<Kept<'a>>, due: Instant) -> Done<'a> {
        let mut kept = kept.and_then(Self::if_alive);
        let deadline = due + self.pool.timeout;
        let outcome = timeout_at(deadline, self.play(&mut kept))
            .await
            .unwrap_or_else(|_| {
                let after = self.pool.timeout;
                let detail = format!("the request was not done after {after:?}");
                Err(Failed::new(Kind::Timeout, detail))
            });
        self.failures.judge(&outcome, self.making.phase);
        Done::Request(match (outcome, kept) {
            (Ok(()), Some(mut kept)) => {
                kept.attempt.request(&self.pool.label, due.elapsed());
                kept.used = Instant::now();
                Some(Box::new(kept))
            }
            (Err(failed), Some(kept)) => {
                kept.attempt.end(Err(failed));
                None
            }
            (outcome, None) => {
                let attempt = Attempt::begin(self.making.phase, self.making.label, due);
                attempt.end(outcome);
                None
            }
        })
    }

    /// Returns the connection unless it was closed while unused, and counts that one as done.
    fn if_alive(kept: Kept<'a>) -> Option<Kept<'a>> {
        if kept.live.connection.closed().now_or_never().is_none() {
            return Some(kept);
        }
        kept.attempt.end(Ok(()));
        None
    }

    async fn play(&self, kept: &mut Option<Kept<'a>>) -> Result<(), Failed> {
        let script = async |session: &Session<'a>| {
            let scope = Scope::default();
            session.run(&self.pool.ops, &scope).await?;
            session.finish(&scope).await?;
            session.wait_until_delivered().await
        };
        if let Some(kept) = kept {
            return beside(&kept.session, script(&kept.session)).await;
        }
        let phase = self.making.phase;
        let began = Instant::now();
        let live = self.making.make().await?;
        let attempt = Rc::new(Attempt::begin(phase, self.making.label, began));
        let session = self.making.session(&attempt, &live);
        let Kept {
            attempt,
            live,
            session,
            ..
        } = kept.insert(Kept {
            attempt,
            live,
            session,
            used: began,
        });
        let script = script(session);
        self.making.first((attempt, live), session, script).await
    }

    /// Waits until a connection has been unused for too long.
    async fn is_over(&self, kept: Option<&Kept<'a>>) {
        match (kept, self.pool.keep) {
            (Some(kept), Some(keep)) => clock::until(kept.used + keep).await,
            _ => std::future::pending().await,
        }
    }

    async fn close(&self, kept: Kept<'a>) -> Done<'a> {
        kept.attempt.end(Ok(()));
        self.making.close(&kept.attempt, &kept.live).await;
        Done::Closing
    }
}

async fn begins(due: Option<Instant>) {
    match due {
        Some(due) => clock::until(due).await,
        None => std::future::pending().await,
    }
}
