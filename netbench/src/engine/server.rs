//! The server process: answers by the scripts, and measures the cost.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::spawn_local;
use tokio::time::{Instant, timeout_at};

use super::plan::{Kind, Plan};
use super::record::observer::Nobody;
use super::record::process::Meter;
use super::script::Scope;
use super::script::session::Session;
use super::{FromServer, ServerReport, ServerSpec, ToServer};
use crate::drivers::{self, Accepting, Attempt, Connection, Driver, Listener};
use crate::system::failure::Failure;
use crate::system::outcome;
use crate::system::outcome::Failed;

/// Maximum time for connections to drain after the client is done. A connection that the client
/// abandoned may never have reached the server.
const DRAIN: Duration = Duration::from_secs(2);

/// Listens, and executes the parent's orders until there are no more. Runs in a `LocalSet`.
pub(crate) async fn run(
    spec: ServerSpec,
    orders: UnboundedReceiver<ToServer>,
    tell: impl Fn(FromServer) -> io::Result<()>,
) -> Result<(), Failure> {
    let driver = drivers::driver(spec.setup.cell.driver)?;
    obey(spec, &*driver, orders, tell).await
}

/// Does the same with a given stack.
pub(super) async fn obey(
    spec: ServerSpec,
    driver: &dyn Driver,
    mut orders: UnboundedReceiver<ToServer>,
    tell: impl Fn(FromServer) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut listener = driver.listen(&spec.setup, spec.listen)?;
    tell(FromServer::Listening(listener.address()))?;
    let serving = Arc::new(Serving {
        plan: Plan::new(&spec.scenario)?,
        tally: Tally::default(),
    });
    let mut meter = None;
    let mut waiting: Option<(ToServer, Instant)> = None;
    loop {
        tokio::select! {
            biased;
            order = orders.recv(), if waiting.is_none() => match order {
                Some(order) => {
                    let drain = listener.process().map_or(DRAIN, |_| Duration::ZERO);
                    waiting = Some((order, Instant::now() + drain));
                }
                None => return Ok(()),
            },
            () = serving.tally.has_drained(waiting.as_ref()), if waiting.is_some() => {
                let answer = match waiting.take() {
                    Some((ToServer::Measure { .. }, _)) => {
                        meter = Some(Meter::of(listener.process(), listener.traffic())?);
                        serving.tally.restart();
                        FromServer::Measuring
                    }
                    _ => report(&serving.tally, meter.as_ref(), &*listener)?,
                };
                tell(answer)?;
            }
            attempt = listener.attempt() => {
                let serving = Arc::clone(&serving);
                match attempt? {
                    Attempt::Here(accepting) => {
                        spawn_local(serving.accept(accepting));
                    }
                    Attempt::There(seat) => {
                        seat(Box::new(|accepting| Box::pin(serving.accept(accepting))));
                    }
                }
            }
        }
    }
}

fn report(
    tally: &Tally,
    meter: Option<&Meter>,
    listener: &dyn Listener,
) -> Result<FromServer, Failure> {
    let mut report = ServerReport {
        first_error: tally.first_error().clone(),
        ..ServerReport::default()
    };
    // Without a measurement there is no cost to report.
    if let Some(meter) = meter {
        report.process = meter.read(listener.traffic())?;
    }
    report.process.completed = tally.completed.load(Ordering::Relaxed);
    report.process.failed = tally.failed.load(Ordering::Relaxed);
    Ok(FromServer::Report(Box::new(report)))
}

/// State shared by all connections.
struct Serving {
    plan: Plan,
    tally: Tally,
}

impl Serving {
    /// Serves a connection until the client closes it.
    async fn accept(self: Arc<Self>, accepting: Accepting) {
        match accepting.await {
            Ok(connection) => self.connection(connection).await,
            Err(failed) => self.tally.record(Err(failed)),
        }
    }

    async fn connection(&self, connection: Rc<dyn Connection>) {
        let outcome = self.serve(connection).await;
        self.tally.record(outcome);
    }

    async fn serve(&self, connection: Rc<dyn Connection>) -> Result<(), Failed> {
        let name = connection.server_name();
        let Some(kind) = self.plan.kind_by_name(name.as_deref()) else {
            let name = name.unwrap_or_default();
            return Err(Failed::other(format_args!(
                "a connection for the server name \"{name}\", which the scenario has not"
            )));
        };
        let broken = RefCell::new(None);
        let outcome = tokio::select! {
            outcome = connection.closed() => outcome,
            () = self.scripts(&connection, kind, &broken) => connection.closed().await,
        };
        match broken.into_inner() {
            Some(failed) => Err(failed),
            None => outcome,
        }
    }

    /// Runs the scripts, at most until the connection ends. A script that the client's close cuts
    /// short succeeds; one that received wrong data fails.
    async fn scripts(
        &self,
        connection: &Rc<dyn Connection>,
        kind: &Kind,
        broken: &RefCell<Option<Failed>>,
    ) {
        let session = Session::new(
            Rc::clone(connection),
            &kind.server,
            &kind.client,
            Rc::new(Nobody),
        );
        let note = |outcome: Result<(), Failed>| {
            if let Err(failed) = outcome
                && matches!(failed.kind, outcome::Kind::Mismatch | outcome::Kind::Other)
            {
                broken.borrow_mut().get_or_insert(failed);
            }
        };
        let ops = async {
            let scope = Scope::default();
            let outcome = match session.run(&kind.server_ops, &scope).await {
                Ok(()) => session.finish(&scope).await,
                failed => failed,
            };
            note(outcome);
            // The streams stay open until the connection ends.
            std::future::pending::<()>().await;
        };
        let streams = async {
            let outcome = session
                .serve(|outcome| {
                    note(outcome);
                    Ok(())
                })
                .await;
            // `closed` reports the reason.
            drop(outcome);
        };
        tokio::join!(ops, streams);
    }
}

/// Counters since the measurement began.
#[derive(Default)]
struct Tally {
    completed: AtomicU64,
    failed: AtomicU64,
    first_error: Mutex<Option<String>>,
    progressed: Notify,
}

impl Tally {
    fn restart(&self) {
        self.completed.store(0, Ordering::Relaxed);
        self.failed.store(0, Ordering::Relaxed);
        *self.first_error() = None;
    }

    fn record(&self, outcome: Result<(), Failed>) {
        let count = match outcome {
            Ok(()) => &self.completed,
            Err(failed) => {
                self.first_error().get_or_insert_with(|| failed.to_string());
                &self.failed
            }
        };
        count.fetch_add(1, Ordering::Relaxed);
        self.progressed.notify_one();
    }

    fn first_error(&self) -> MutexGuard<'_, Option<String>> {
        self.first_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of connections that have ended.
    fn ended(&self) -> u64 {
        self.completed.load(Ordering::Relaxed) + self.failed.load(Ordering::Relaxed)
    }

    /// Waits, with a time limit, until as many connections have ended as the order says.
    async fn has_drained(&self, order: Option<&(ToServer, Instant)>) {
        let Some((ToServer::Measure { after } | ToServer::Stop { after }, deadline)) = order else {
            return;
        };
        let drained = async {
            while self.ended() < *after {
                self.progressed.notified().await;
            }
        };
        let _ = timeout_at(*deadline, drained).await;
    }
}
