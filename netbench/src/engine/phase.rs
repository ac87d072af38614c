//! One phase of a client: a warm-up, or a measurement.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::checkpoints::Checkpoints;
use super::clock;
use super::recorder::Recorder;

/// State that all scripts of a client share while a phase lasts.
pub(super) struct Phase {
    pub(super) begin: Instant,
    /// Connections of each operation that makes some, should it be given more.
    pub(super) limit: Option<u64>,
    pub(super) recorder: Recorder,
    pub(super) checkpoints: Checkpoints,
    stopped: Cell<Option<Instant>>,
    stop: Notify,
    problem: RefCell<Option<String>>,
    /// When its scripts were done.
    done: Cell<Option<Instant>>,
    is_interrupted: Cell<bool>,
}

impl Phase {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self {
            begin: Instant::now(),
            limit,
            recorder: Recorder::default(),
            checkpoints: Checkpoints::default(),
            stopped: Cell::new(None),
            stop: Notify::new(),
            problem: RefCell::default(),
            done: Cell::new(None),
            is_interrupted: Cell::new(false),
        }
    }

    /// As many as the script wants and the phase allows; `None`: as many as there is time for.
    pub(super) fn at_most(&self, wanted: Option<u64>) -> Option<u64> {
        match (wanted, self.limit) {
            (Some(wanted), Some(limit)) => Some(wanted.min(limit)),
            (wanted, limit) => wanted.or(limit),
        }
    }

    /// Has nothing new begin from now on.
    pub(super) fn stop(&self) {
        self.stop_as_of(Instant::now());
    }

    /// The same, for what should have happened before then. Whoever notices that the time is over
    /// notices it late, and nobody is to be blamed for not having begun something in between.
    pub(super) fn stop_as_of(&self, end: Instant) {
        if self.stopped.get().is_none() {
            self.stopped.set(Some(end));
            self.stop.notify_waiters();
        }
    }

    /// When it was stopped.
    pub(super) fn stopped_at(&self) -> Option<Instant> {
        self.stopped.get()
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopped.get().is_some()
    }

    /// Waits until it is stopped.
    pub(super) fn stopping(&self) -> LocalBoxFuture<'_, ()> {
        Box::pin(async {
            loop {
                let stop = self.stop.notified();
                if self.is_stopping() {
                    return;
                }
                stop.await;
            }
        })
    }

    /// Waits until then. `false`: it was stopped before.
    pub(super) async fn reaches(&self, at: Instant) -> bool {
        if self.is_stopping() {
            return false;
        }
        if at <= Instant::now() {
            return true;
        }
        tokio::select! {
            biased;
            () = self.stopping() => false,
            () = clock::until(at) => true,
        }
    }

    /// Notes why it does not do all that it should; the first reason stands.
    pub(super) fn complain(&self, problem: String) {
        self.problem.borrow_mut().get_or_insert(problem);
    }

    pub(super) fn problem(&self) -> Option<String> {
        self.problem.borrow().clone()
    }

    /// Stops it because somebody outside wants it to end.
    pub(super) fn interrupt(&self) {
        self.is_interrupted.set(true);
        self.complain("stopped before its end".to_owned());
        self.stop();
    }

    pub(super) fn was_interrupted(&self) -> bool {
        self.is_interrupted.get()
    }

    /// Its scripts are done.
    pub(super) fn done(&self) {
        self.done.set(Some(Instant::now()));
    }

    /// How long was measured: until the scripts were done, or else until it was stopped and
    /// nothing more happened.
    pub(super) fn measured(&self) -> Duration {
        let end = match (self.done.get(), self.stopped.get()) {
            (Some(done), _) => done,
            (None, Some(stopped)) => stopped.max(self.recorder.last_event().unwrap_or(stopped)),
            (None, None) => Instant::now(),
        };
        end.duration_since(self.begin)
    }
}
