//! The connections of one `connect`: in a closed loop, or as they arrive in an open one.

use std::cell::OnceCell;
use std::rc::Rc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, timeout};

use super::attempt::{Attempt, Live};
use super::making::Making;
use crate::engine::record::failing::InARow;
use crate::engine::script::Scope;
use crate::engine::time::clock;
use crate::engine::time::turns::Turns;
use crate::scenario::Connect;
use crate::system::outcome::{Failed, Kind};

/// State shared by the connections of one operation.
pub(crate) struct Connecting<'a> {
    pub(crate) making: Making<'a>,
    pub(crate) connect: &'a Connect,
    pub(crate) failures: InARow,
}

impl<'a> Connecting<'a> {
    /// Makes all connections, and returns when the last one has ended.
    pub(crate) async fn run(&self) {
        let phase = self.making.phase;
        let connections = phase.at_most(self.connect.connections);
        let mut turns = Turns::new(connections, self.connect.rate, self.connect.arrivals);
        let mut running = FuturesUnordered::new();
        let mut stopping = phase.stopping();
        while let Some(due) = turns.due() {
            if self.failures.is_too_many() || phase.is_stopping() {
                break;
            }
            if running.len() >= self.connect.concurrency.max(1) as usize {
                tokio::select! {
                    biased;
                    _ = running.next() => {}
                    () = &mut stopping => {}
                }
                continue;
            }
            if due > Instant::now() {
                // Connections in progress continue meanwhile.
                tokio::select! {
                    biased;
                    Some(()) = running.next() => {}
                    () = clock::until(due) => {}
                    () = &mut stopping => {}
                }
                continue;
            }
            turns.advance();
            running.push(self.connection(due));
        }
        // Connections that were due but held back until the end also count.
        if let Some(end) = phase.stopped_at() {
            let count = turns.count_due(end);
            phase.recorder.never_began(self.making.label, count);
        }
        while running.next().await.is_some() {}
    }

    /// Makes one connection, which was scheduled at that time.
    async fn connection(&self, intended: Instant) {
        let phase = self.making.phase;
        let attempt = Rc::new(Attempt::begin(phase, self.making.label, intended));
        let live = OnceCell::new();
        let outcome = timeout(self.connect.timeout, self.exchange(&attempt, &live))
            .await
            .unwrap_or_else(|_| Err(self.timed_out(live.get())));
        self.failures.judge(&outcome, phase);
        // A connection that was not resumed still has to leave a ticket to the next.
        let ended_well = match &outcome {
            Ok(()) => true,
            Err(failed) => failed.kind == Kind::Mismatch,
        };
        attempt.end(outcome);
        if let Some(live) = live.get().filter(|_| ended_well) {
            self.making.close(&attempt, live).await;
        } else {
            // An immediate failure must not starve the rest of the process.
            tokio::task::yield_now().await;
        }
    }

    fn timed_out(&self, live: Option<&Live<'_>>) -> Failed {
        let what = if live.is_some_and(Live::was_established) {
            "the script was not done"
        } else {
            "the handshake was not complete"
        };
        let after = self.connect.timeout;
        Failed::new(Kind::Timeout, format_args!("{what} after {after:?}"))
    }

    async fn exchange(
        &self,
        attempt: &Rc<Attempt<'a>>,
        live: &OnceCell<Live<'a>>,
    ) -> Result<(), Failed> {
        let made = self.making.make().await?;
        let live = live.get_or_init(|| made);
        let session = self.making.session(attempt, live);
        let script = async {
            let scope = Scope::default();
            session.run(&self.connect.ops, &scope).await?;
            session.finish(&scope).await?;
            session.wait_until_delivered().await
        };
        self.making.first((attempt, live), &session, script).await
    }
}
