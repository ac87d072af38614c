//! One connection of the client: counted, timed, and closed in every case.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use tokio::time::Instant;

use crate::drivers::{Connection, Negotiated, Stats};
use crate::engine::record::names::Name;
use crate::engine::record::observer::Observer;
use crate::engine::record::phase::Phase;
use crate::engine::record::recorder::Label;
use crate::system::outcome::{Failed, Kind};

/// A connection that was started. Dropped, it counts as unfinished.
pub(crate) struct Attempt<'a> {
    phase: &'a Phase,
    label: Label,
    intended: Instant,
    is_open: Cell<bool>,
    has_first_byte: Cell<bool>,
}

impl<'a> Attempt<'a> {
    /// Starts an attempt that was scheduled at `intended`.
    pub(crate) fn begin(phase: &'a Phase, label: Label, intended: Instant) -> Self {
        phase.recorder.begin();
        Self {
            phase,
            label,
            intended,
            is_open: Cell::new(true),
            has_first_byte: Cell::new(false),
        }
    }

    fn took(&self) -> Duration {
        self.intended.elapsed()
    }

    pub(crate) fn established(&self, negotiated: &Negotiated) {
        let recorder = &self.phase.recorder;
        recorder.handshake(self.label, self.took(), negotiated);
    }

    /// Counts the outcome, once.
    pub(crate) fn end(&self, outcome: Result<(), Failed>) {
        if self.is_open.replace(false) {
            let outcome = outcome.map(|()| self.took());
            self.phase.recorder.end(self.label, outcome);
        }
    }

    pub(crate) fn has_first_byte(&self) -> bool {
        self.has_first_byte.get()
    }

    fn on_application_data(&self) {
        if !self.has_first_byte.replace(true) {
            self.phase.recorder.first_byte(self.label, self.took());
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.end(Err(Failed::new(
            Kind::Unfinished,
            "it was still under way when the measurement ended",
        )));
    }
}

impl Observer for Attempt<'_> {
    fn sent(&self, bytes: u64) {
        self.phase.recorder.sent(self.label, bytes);
    }

    fn received(&self, bytes: u64) {
        self.on_application_data();
        self.phase.recorder.received(self.label, bytes);
    }

    fn request(&self, label: &str, took: Duration) {
        self.phase.recorder.request(self.label, label, took);
    }

    fn echo(&self, took: Duration) {
        self.on_application_data();
        self.phase.recorder.echo(self.label, took);
    }

    fn lost(&self, datagrams: u64) {
        self.phase.recorder.lost(self.label, datagrams);
    }

    fn is_stopping(&self) -> bool {
        self.phase.is_stopping()
    }

    fn stopping(&self) -> LocalBoxFuture<'_, ()> {
        self.phase.stopping()
    }
}

/// An open connection. Dropped, it is closed, and its traffic is counted.
pub(crate) struct Live<'a> {
    phase: &'a Phase,
    pub(crate) connection: Rc<dyn Connection>,
    began: Instant,
    established: Cell<Option<(Instant, Stats)>>,
    /// Name that other connections may use when this one has ended.
    _name: Name<'a>,
}

impl<'a> Live<'a> {
    pub(crate) fn new(
        phase: &'a Phase,
        connection: Rc<dyn Connection>,
        began: Instant,
        name: Name<'a>,
    ) -> Self {
        Self {
            phase,
            connection,
            began,
            established: Cell::new(None),
            _name: name,
        }
    }

    pub(crate) fn was_established(&self) -> bool {
        self.established.get().is_some()
    }

    /// Marks the end of the handshake: later traffic counts as data.
    pub(crate) fn is_established(&self) {
        let now = (Instant::now(), self.connection.stats());
        self.established.set(Some(now));
    }

    /// Returns a time by which the server has seen the complete handshake: one handshake duration,
    /// which is more than a round trip.
    pub(crate) fn is_seen_at(&self) -> Option<Instant> {
        let (at, _) = self.established.get()?;
        Some(at + at.duration_since(self.began))
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        // Has no effect if it was closed before.
        self.connection.close(GIVEN_UP);
        let recorder = &self.phase.recorder;
        let established = self.established.get().map(|(_, stats)| stats);
        recorder.traffic(established, self.connection.stats());
    }
}

/// Application error code of a connection that the client abandons.
pub(crate) const GIVEN_UP: u64 = 1;
