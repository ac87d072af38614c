//! An agent: its groups, and its limit of connections.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use super::control::options::Options;
use super::group::{self, Event};
use crate::system::terminal::complain;

/// Maximum number of connections that have not identified themselves.
const STRANGERS: usize = 64;

/// Minimum interval between log lines about refusals, so that strangers cannot fill the disk.
const COMPLAIN_EVERY: Duration = Duration::from_secs(1);

/// State that all connections of an agent share.
pub(super) struct Agent {
    pub(super) options: Rc<Options>,
    pub(super) strangers: Count,
    sessions: Count,
    /// Groups by the key of what their clients want.
    groups: RefCell<BTreeMap<String, UnboundedSender<Event>>>,
    complained: Cell<Option<Instant>>,
    kept_back: Cell<u64>,
    connections: Cell<u64>,
}

/// Counter with a maximum.
pub(super) struct Count {
    now: Rc<Cell<usize>>,
    most: usize,
}

/// Place in a [`Count`], which is freed when dropped.
pub(super) struct Counted(Rc<Cell<usize>>);

impl Agent {
    pub(super) fn new(options: Options) -> Self {
        Self {
            strangers: Count::of(STRANGERS),
            sessions: Count::of(options.sessions),
            options: Rc::new(options),
            groups: RefCell::default(),
            complained: Cell::default(),
            kept_back: Cell::default(),
            connections: Cell::default(),
        }
    }

    /// Takes a place for a controller.
    pub(super) fn admit(&self) -> Result<Counted, String> {
        self.sessions.take().ok_or_else(|| {
            format!(
                "this agent has {} sessions already, which is all it may have (--sessions)",
                self.sessions.most
            )
        })
    }

    /// Returns a number that no connection had before.
    pub(super) fn next_connection(&self) -> u64 {
        self.connections.set(self.connections.get() + 1);
        self.connections.get()
    }

    /// Returns the group with that key. Clients outside a fleet have one each.
    pub(super) fn group(&self, key: String) -> UnboundedSender<Event> {
        if self.options.fleet == 1 {
            return self.begin_group();
        }
        let mut groups = self.groups.borrow_mut();
        groups.retain(|_, group| !group.is_closed());
        groups
            .entry(key)
            .or_insert_with(|| self.begin_group())
            .clone()
    }

    fn begin_group(&self) -> UnboundedSender<Event> {
        let (to, events) = unbounded_channel();
        tokio::task::spawn_local(group::conduct(Rc::clone(&self.options), events));
        to
    }

    /// Writes one line to standard error, at a limited rate.
    pub(super) fn complain(&self, line: &str) {
        let now = Instant::now();
        let too_soon = |last: Instant| now.duration_since(last) < COMPLAIN_EVERY;
        if self.complained.get().is_some_and(too_soon) {
            self.kept_back.set(self.kept_back.get().saturating_add(1));
            return;
        }
        self.complained.set(Some(now));
        match self.kept_back.take() {
            0 => complain(line),
            more => complain(&format!("{line} (and {more} more before)")),
        }
    }
}

impl Count {
    fn of(most: usize) -> Self {
        Self {
            now: Rc::default(),
            most,
        }
    }

    /// Takes a place unless all are taken.
    pub(super) fn take(&self) -> Option<Counted> {
        if self.now.get() >= self.most {
            return None;
        }
        self.now.set(self.now.get() + 1);
        Some(Counted(Rc::clone(&self.now)))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}
