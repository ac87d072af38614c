//! The server process: answers by the scripts, and measures the cost.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::spawn_local;
use tokio::time::{Instant, timeout_at};

use super::observer::Nobody;
use super::plan::{Kind, Plan};
use super::process::Meter;
use super::script::Scope;
use super::session::Session;
use super::{FromServer, ServerReport, ServerSpec, ToServer};
use crate::Failure;
use crate::drivers::{self, Accepting, Connection, Driver, Listener};
use crate::outcome::{self, Failed};

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
    let serving = Rc::new(Serving {
        plan: Plan::new(&spec.scenario)?,
        tally: Tally::default(),
    });
    let mut meter = None;
    let mut waiting: Option<(ToServer, Instant)> = None;
    loop {
        tokio::select! {
            biased;
            order = orders.recv(), if waiting.is_none() => match order {
                Some(order) => waiting = Some((order, Instant::now() + DRAIN)),
                None => return Ok(()),
            },
            () = serving.tally.has_drained(waiting.as_ref()), if waiting.is_some() => {
                let answer = match waiting.take() {
                    Some((ToServer::Measure { .. }, _)) => {
                        meter = Some(Meter::start(listener.traffic())?);
                        serving.tally.restart();
                        FromServer::Measuring
                    }
                    _ => report(&serving.tally, meter.as_ref(), &*listener)?,
                };
                tell(answer)?;
            }
            accepted = listener.accept() => {
                let serving = Rc::clone(&serving);
                let accepting = accepted?;
                spawn_local(async move { serving.connection(accepting).await });
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
        first_error: tally.first_error.borrow().as_ref().map(Failed::to_string),
        ..ServerReport::default()
    };
    // Without a measurement there is no cost to report.
    if let Some(meter) = meter {
        report.process = meter.read(listener.traffic())?;
    }
    report.process.completed = tally.completed.get();
    report.process.failed = tally.failed.get();
    Ok(FromServer::Report(Box::new(report)))
}

/// State shared by all connections.
struct Serving {
    plan: Plan,
    tally: Tally,
}

impl Serving {
    /// Serves a connection until the client closes it.
    async fn connection(&self, accepting: Accepting) {
        let outcome = self.serve(accepting).await;
        self.tally.record(outcome);
    }

    async fn serve(&self, accepting: Accepting) -> Result<(), Failed> {
        let connection = accepting.await?;
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
    completed: Cell<u64>,
    failed: Cell<u64>,
    first_error: RefCell<Option<Failed>>,
    progressed: Notify,
}

impl Tally {
    fn restart(&self) {
        self.completed.set(0);
        self.failed.set(0);
        self.first_error.take();
    }

    fn record(&self, outcome: Result<(), Failed>) {
        let count = match outcome {
            Ok(()) => &self.completed,
            Err(failed) => {
                self.first_error.borrow_mut().get_or_insert(failed);
                &self.failed
            }
        };
        count.set(count.get() + 1);
        self.progressed.notify_one();
    }

    /// Waits, with a time limit, until as many connections have ended as the order says.
    async fn has_drained(&self, order: Option<&(ToServer, Instant)>) {
        let Some((ToServer::Measure { after } | ToServer::Stop { after }, deadline)) = order else {
            return;
        };
        let drained = async {
            while self.completed.get() + self.failed.get() < *after {
                self.progressed.notified().await;
            }
        };
        let _ = timeout_at(*deadline, drained).await;
    }
}
