//! One phase of a client: a warm-up, or a measurement.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::recorder::Recorder;
use crate::engine::time::checkpoints::Checkpoints;
use crate::engine::time::clock;

/// State that all scripts of a client share while a phase lasts.
pub(crate) struct Phase {
    pub(crate) begin: Instant,
    /// Limit for the number of connections of each operation.
    pub(crate) limit: Option<u64>,
    pub(crate) recorder: Recorder,
    pub(crate) checkpoints: Checkpoints,
    stopped: Cell<Option<Instant>>,
    stop: Notify,
    problem: RefCell<Option<String>>,
    /// Time at which its scripts were done.
    done: Cell<Option<Instant>>,
    is_interrupted: Cell<bool>,
}

impl Phase {
    pub(crate) fn new(limit: Option<u64>) -> Self {
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

    /// Returns the smaller of the script's number and the phase's limit; `None` if only time limits
    /// it.
    pub(crate) fn at_most(&self, wanted: Option<u64>) -> Option<u64> {
        match (wanted, self.limit) {
            (Some(wanted), Some(limit)) => Some(wanted.min(limit)),
            (wanted, limit) => wanted.or(limit),
        }
    }

    /// Stops it: nothing new begins from now on.
    pub(crate) fn stop(&self) {
        self.stop_as_of(Instant::now());
    }

    /// Stops it with an end in the past. Scripts notice the end late, and nothing is blamed for not
    /// having begun in between.
    pub(crate) fn stop_as_of(&self, end: Instant) {
        if self.stopped.get().is_none() {
            self.stopped.set(Some(end));
            self.stop.notify_waiters();
        }
    }

    /// Returns the time at which it was stopped.
    pub(crate) fn stopped_at(&self) -> Option<Instant> {
        self.stopped.get()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopped.get().is_some()
    }

    /// Waits until it is stopped.
    pub(crate) fn stopping(&self) -> LocalBoxFuture<'_, ()> {
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

    /// Waits until then; returns false if it is stopped before.
    pub(crate) async fn reaches(&self, at: Instant) -> bool {
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

    /// Notes a reason why it does less than it should; the first reason stays.
    pub(crate) fn complain(&self, problem: String) {
        self.problem.borrow_mut().get_or_insert(problem);
    }

    pub(crate) fn problem(&self) -> Option<String> {
        self.problem.borrow().clone()
    }

    /// Stops it by a request from outside.
    pub(crate) fn interrupt(&self) {
        self.is_interrupted.set(true);
        self.complain("stopped before its end".to_owned());
        self.stop();
    }

    pub(crate) fn was_interrupted(&self) -> bool {
        self.is_interrupted.get()
    }

    /// Notes that its scripts are done.
    pub(crate) fn done(&self) {
        self.done.set(Some(Instant::now()));
    }

    /// Returns the measured duration: until the scripts were done, or until everything in progress
    /// had ended after a stop.
    pub(crate) fn measured(&self) -> Duration {
        let end = match (self.done.get(), self.stopped.get()) {
            (Some(done), _) => done,
            (None, Some(stopped)) => stopped.max(self.recorder.last_event().unwrap_or(stopped)),
            (None, None) => Instant::now(),
        };
        end.duration_since(self.begin)
    }
}
