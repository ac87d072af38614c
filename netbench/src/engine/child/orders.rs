//! The client process: executes its parent's orders to warm up, measure, and report.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use crate::drivers;
use crate::engine::client::Client;
use crate::engine::record::phase::Phase;
use crate::engine::record::process::Meter;
use crate::engine::record::progress::Progressing;
use crate::engine::{ClientSpec, FromClient, ToClient};
use crate::report::results::Repetition;
use crate::system::failure::Failure;

/// Interval between progress reports.
const PROGRESS: Duration = Duration::from_millis(100);

/// The shortest interval of samples.
const SHORTEST_SAMPLE: u64 = 10;

/// Executes the parent's orders and answers them, until there are no more. Runs in a `LocalSet`.
pub(crate) async fn run(
    spec: ClientSpec,
    orders: Orders,
    tell: impl Fn(FromClient) -> io::Result<()>,
) -> Result<(), Failure> {
    let driver = drivers::driver(spec.setup.cell.client)?;
    Client::new(spec, &*driver)?.obey(orders, tell).await
}

/// Source of the orders.
type Orders = UnboundedReceiver<ToClient>;

impl Client {
    /// Executes orders until there are no more.
    pub(crate) async fn obey(
        &self,
        mut orders: Orders,
        tell: impl Fn(FromClient) -> io::Result<()>,
    ) -> Result<(), Failure> {
        while let Some(order) = orders.recv().await {
            let answer = match order {
                ToClient::WarmUp => self.warm_up(&mut orders).await?,
                ToClient::Measure => self.measure(&mut orders, &tell).await?,
                ToClient::Stop => stopped("before the measurement began"),
            };
            tell(answer)?;
        }
        Ok(())
    }

    /// Runs part of the scripts, to warm up caches, tickets and paths.
    async fn warm_up(&self, orders: &mut Orders) -> Result<FromClient, Failure> {
        self.hold().await?;
        let amount = self.spec.scenario.phases.warm_up;
        let phase = Phase::new(amount.connections);
        let primed = self.prime(&phase, self.script()).await;
        let phase = Phase::new(amount.connections);
        // If scripts run until the measurement ends, the warm-up needs an end too.
        let limit = amount.time.or(self.spec.scenario.phases.measure);
        if amount.connections.is_some() || amount.time.is_some() {
            let mut progress = Progressing::none();
            self.play(&phase, limit, orders, &mut progress).await?;
        }
        if phase.was_interrupted() {
            return Ok(stopped("in the warm-up"));
        }
        Ok(FromClient::Ready {
            connections: primed + phase.recorder.totals.connections.get(),
        })
    }

    async fn measure(
        &self,
        orders: &mut Orders,
        tell: &impl Fn(FromClient) -> io::Result<()>,
    ) -> Result<FromClient, Failure> {
        let limit = self.spec.scenario.phases.measure;
        // For scenarios without a warm-up that did so.
        self.prime(&Phase::new(None), self.script()).await;
        let meter = Meter::start(self.traffic())?;
        let phase = Phase::new(None);
        let mut progress = Progressing::new(&phase, &meter, limit, self.connections(), tell);
        self.play(&phase, limit, orders, &mut progress).await?;
        let samples = progress.end();
        let mut report = Repetition {
            elapsed_us: phase.measured().as_secs_f64() * 1e6,
            error: phase.problem(),
            samples,
            client: meter.read(self.traffic())?,
            ..Repetition::default()
        };
        phase.recorder.report(&mut report);
        Ok(FromClient::Report(Box::new(report)))
    }

    /// Runs the scripts of a phase to their end, or until their time is over and everything in
    /// progress has drained.
    async fn play(
        &self,
        phase: &Phase,
        limit: Option<Duration>,
        orders: &mut Orders,
        progress: &mut Progressing<'_>,
    ) -> Result<(), Failure> {
        // The budget of one task would make all connections wait for each other.
        let ops = tokio::task::unconstrained(self.ops(self.script(), phase));
        tokio::pin!(ops);
        let sample = Duration::from_millis(self.spec.sample_ms.max(SHORTEST_SAMPLE));
        let mut samples = ticks(phase.begin, sample);
        let mut told = ticks(phase.begin, PROGRESS);
        let mut listens = true;
        loop {
            let drained = phase
                .stopped_at()
                .map(|at| at + self.spec.scenario.phases.drain);
            tokio::select! {
                biased;
                // Checked before the scripts: nothing new begins at the same moment.
                () = at(limit.map(|limit| phase.begin + limit)), if drained.is_none() => {
                    phase.stop_as_of(limit.map_or_else(Instant::now, |limit| phase.begin + limit));
                }
                outcome = &mut ops => {
                    phase.done();
                    return outcome.map_err(Into::into);
                }
                () = at(drained) => return Ok(()),
                () = phase.stopping(), if drained.is_none() => {}
                _ = orders.recv(), if listens => {
                    // Only the order to stop is valid now; the end of the parent's pipe means the
                    // same.
                    listens = false;
                    phase.interrupt();
                }
                _ = samples.tick() => progress.sample(),
                _ = told.tick() => progress.tell()?,
            }
        }
    }
}

fn stopped(when: &str) -> FromClient {
    FromClient::Report(Box::new(Repetition {
        error: Some(format!("stopped {when}")),
        ..Repetition::default()
    }))
}

fn ticks(begin: Instant, period: Duration) -> tokio::time::Interval {
    let mut ticks = interval_at(begin + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// Waits until then. Timers of the runtime are up to a millisecond late; scripts that check earlier
/// notice it earlier.
async fn at(time: Option<Instant>) {
    let Some(time) = time else {
        return std::future::pending().await;
    };
    let sleep = sleep_until(time);
    tokio::pin!(sleep);
    poll_fn(|cx| {
        if Instant::now() >= time {
            return Poll::Ready(());
        }
        sleep.as_mut().poll(cx)
    })
    .await;
}
