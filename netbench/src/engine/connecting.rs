//! Makes the connections of one `connect`: in a closed loop, or as they arrive in an open one.

use std::cell::{Cell, OnceCell, RefCell};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, timeout};

use super::arrivals::Arrivals;
use super::attempt::{Attempt, Live};
use super::client::Client;
use super::mismatch::mismatch;
use super::phase::Phase;
use super::plan::{Kind, opens};
use super::recorder::Label;
use super::script::Frame;
use super::session::Session;
use crate::outcome::{self, Failed};
use crate::scenario::{Connect, OnError};

/// How long a connection may take to tell the peer that it is closed.
const CLOSING: Duration = Duration::from_secs(1);

/// As many failures in a row, where nothing ever ended well, end an operation: what fails so often
/// only costs timeouts.
const TOO_MANY_FAILURES: u64 = 10;

/// As many timeouts in a row end it where something ended well before.
const TOO_MANY_TIMEOUTS: u64 = 100;

/// What the connections of one operation share.
pub(super) struct Connecting<'a> {
    pub(super) client: &'a Client,
    pub(super) phase: &'a Phase,
    pub(super) connect: &'a Connect,
    pub(super) kind: &'a Kind,
    /// The server name that says so.
    pub(super) name: &'a str,
    pub(super) label: Label,
    pub(super) failures: InARow,
}

/// Failures since something last ended well.
#[derive(Default)]
pub(super) struct InARow {
    last: RefCell<Option<outcome::Kind>>,
    count: Cell<u64>,
    any_ok: Cell<bool>,
    is_too_many: Cell<bool>,
}

impl Connecting<'_> {
    /// Makes all of them, and returns when the last one has ended.
    pub(super) async fn run(&self) {
        let mut arrivals = self
            .connect
            .rate
            .map(|rate| Arrivals::new(Instant::now(), rate, self.connect.arrivals));
        let mut left = self.connections();
        let mut running = FuturesUnordered::new();
        while left != Some(0) && self.goes_on() {
            if running.len() >= self.connect.concurrency.max(1) as usize {
                running.next().await;
                continue;
            }
            let due = arrivals.as_ref().map_or_else(Instant::now, Arrivals::due);
            if due > Instant::now() {
                // Those under way go on meanwhile.
                tokio::select! {
                    biased;
                    Some(()) = running.next() => continue,
                    _ = self.phase.reaches(due) => continue,
                }
            }
            if let Some(arrivals) = &mut arrivals {
                arrivals.advance();
            }
            left = left.map(|left| left - 1);
            running.push(self.connection(due));
        }
        if let Some(arrivals) = &mut arrivals {
            self.count_those_that_never_began(arrivals, left);
        }
        while running.next().await.is_some() {}
    }

    fn connections(&self) -> Option<u64> {
        match (self.connect.connections, self.phase.limit) {
            (Some(wanted), Some(limit)) => Some(wanted.min(limit)),
            (wanted, limit) => wanted.or(limit),
        }
    }

    fn goes_on(&self) -> bool {
        !self.phase.is_stopping() && !self.failures.is_too_many.get()
    }

    /// What should have begun before the end, and was held back until then, is not to be forgotten.
    fn count_those_that_never_began(&self, arrivals: &mut Arrivals, mut left: Option<u64>) {
        let Some(end) = self.phase.stopped_at() else {
            return;
        };
        let mut count = 0;
        while left != Some(0) && arrivals.due() < end {
            arrivals.advance();
            left = left.map(|left| left - 1);
            count += 1;
        }
        self.phase.recorder.never_began(self.label, count);
    }

    /// Makes one connection, which should have begun at that time.
    async fn connection(&self, intended: Instant) {
        let attempt = Attempt::begin(self.phase, self.label, intended);
        let live = OnceCell::new();
        let outcome = timeout(self.connect.timeout, self.exchange(&attempt, &live))
            .await
            .unwrap_or_else(|_| Err(self.timed_out(live.get())));
        self.judge(&outcome);
        let ended_well = outcome.is_ok();
        attempt.end(outcome);
        if let Some(live) = live.get().filter(|_| ended_well) {
            self.client.await_ticket(&*live.connection).await;
            live.connection.close(0);
            let _ = timeout(CLOSING, live.connection.closed()).await;
        }
    }

    fn timed_out(&self, live: Option<&Live<'_>>) -> Failed {
        let what = match live {
            None => "the handshake was not complete",
            Some(_) => "the script was not done",
        };
        let after = self.connect.timeout;
        Failed::new(
            outcome::Kind::Timeout,
            format_args!("{what} after {after:?}"),
        )
    }

    async fn exchange<'b>(
        &'b self,
        attempt: &Attempt<'_>,
        live: &OnceCell<Live<'b>>,
    ) -> Result<(), Failed> {
        let (connector, server) = self.client.server(self.connect.server)?;
        let connection = connector.connect(server, self.name).await?;
        let live = live.get_or_init(|| Live::new(self.phase, connection));
        let established = async {
            let negotiated = live.connection.established().await?;
            live.is_established();
            attempt.established(&negotiated);
            match mismatch(&self.client.spec.setup.cell, &negotiated) {
                Some(failed) => Err(failed),
                None => Ok(()),
            }
        };
        if self.client.sends_early() {
            tokio::try_join!(established, self.scripts(attempt, live)).map(|_| ())
        } else {
            established.await?;
            self.scripts(attempt, live).await
        }
    }

    async fn scripts(&self, attempt: &Attempt<'_>, live: &Live<'_>) -> Result<(), Failed> {
        let connection = std::rc::Rc::clone(&live.connection);
        let session = Session::new(connection, &self.kind.client, &self.kind.server, attempt);
        session.await_streams(opens(&self.kind.server_ops));
        let script = async {
            let frame = Frame::default();
            session.run(&self.connect.ops, &frame).await?;
            session.finish(&frame).await?;
            session.settle().await
        };
        tokio::pin!(script);
        tokio::select! {
            biased;
            outcome = &mut script => return outcome,
            outcome = session.serve(|outcome| outcome) => outcome?,
        }
        script.await
    }

    /// Decides what follows from how a connection ended.
    fn judge(&self, outcome: &Result<(), Failed>) {
        let Err(failed) = outcome else {
            self.failures.on_ok();
            return;
        };
        if self.connect.on_error == OnError::Stop {
            self.phase
                .complain(format!("stopped at the first failure: {failed}"));
            self.phase.stop();
        }
        if let Some(count) = self.failures.on_failure(failed, self.connect.concurrency) {
            self.phase.complain(format!(
                "given up after {count} failures in a row, the last: {failed}"
            ));
        }
    }
}

impl InARow {
    fn on_ok(&self) {
        self.any_ok.set(true);
        self.count.set(0);
    }

    /// How many there were, where those are too many.
    fn on_failure(&self, failed: &Failed, concurrency: u32) -> Option<u64> {
        let mut last = self.last.borrow_mut();
        if last.as_ref() != Some(&failed.kind) {
            *last = Some(failed.kind.clone());
            self.count.set(0);
        }
        self.count.set(self.count.get() + 1);
        let concurrency = u64::from(concurrency);
        let most = match (self.any_ok.get(), &failed.kind) {
            (false, _) => TOO_MANY_FAILURES.max(concurrency),
            (true, outcome::Kind::Timeout) => TOO_MANY_TIMEOUTS.max(2 * concurrency),
            (true, _) => return None,
        };
        let is_too_many =
            self.count.get() >= most && !self.is_too_many.replace(self.count.get() >= most);
        is_too_many.then(|| self.count.get())
    }
}
