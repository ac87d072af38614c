//! The worker's end of its mailbox, and the handshakes that wait for their turn.

use std::{
    collections::VecDeque,
    mem,
    sync::Arc,
    task::{Context, Poll},
};

use hybriq_proto::stats::EndpointStats;
use hybriq_tls::Side;

use crate::worker::{
    admit::handshakes::HandshakeOutcome,
    connection::{SharedConnection, attempt::Outcome},
    shared::mailbox::{Command, Mailbox, Requests},
};

/// Largest number of handshakes that are started in one turn. They cost more than everything else,
/// and established connections come first.
const STARTS: usize = 16;

/// Largest number of connections touched by the application that are serviced in one turn. More of
/// them come together only when an application closes many at once, and datagrams must not wait for
/// all of them.
const DIRTY: usize = 512;

/// Requests that a worker has taken from its mailbox but not yet handled.
pub(in crate::worker) struct Inbox {
    pub(in crate::worker) mailbox: Arc<Mailbox>,
    /// Lists to exchange with those of the mailbox. They are empty between turns.
    pub(in crate::worker) taken: Requests,
    /// Commands other than handshakes. They are kept here until they are handled, so that a panic
    /// loses only the command that caused it.
    pub(in crate::worker) commands: VecDeque<Command>,
    /// Handshakes that exceeded this turn's budget. Only handshakes wait for the budget.
    pub(in crate::worker) starts: VecDeque<Command>,
    /// Handshakes that may still be started in this turn.
    pub(in crate::worker) budget: usize,
    /// Touched connections that did not fit into a turn.
    pub(in crate::worker) dirty: VecDeque<Arc<SharedConnection>>,
    /// Touched connections that this turn may still service.
    pub(in crate::worker) dirty_budget: usize,
    /// Connections that were requested of this worker and have not ended.
    pub(in crate::worker) live: usize,
}

impl Inbox {
    pub(in crate::worker) fn new(mailbox: Arc<Mailbox>) -> Self {
        Self {
            mailbox,
            taken: Requests::default(),
            commands: VecDeque::new(),
            starts: VecDeque::new(),
            budget: STARTS,
            dirty: VecDeque::new(),
            dirty_budget: DIRTY,
            live: 0,
        }
    }

    /// Returns the mailbox, by which connections reach their worker.
    pub(in crate::worker) const fn mailbox(&self) -> &Arc<Mailbox> {
        &self.mailbox
    }

    /// Resets the budget of handshakes at the start of a turn.
    pub(in crate::worker) const fn begin_turn(&mut self) {
        self.budget = STARTS;
        self.dirty_budget = DIRTY;
    }

    /// Counts a handshake that was started.
    pub(in crate::worker) const fn on_started(&mut self) {
        self.budget = self.budget.saturating_sub(1);
    }

    /// Takes everything that waits in the mailbox, and keeps the commands. Give the lists back once
    /// they are handled. Also returns the number of messages.
    pub(in crate::worker) fn take(&mut self) -> Option<(usize, Requests)> {
        let mut taken = mem::take(&mut self.taken);
        if self.mailbox.take(&mut taken) {
            let count = taken.len();
            for command in taken.commands.drain(..) {
                if command.starts_handshake() {
                    self.live += 1;
                    self.starts.push_back(command);
                } else {
                    self.commands.push_back(command);
                }
            }
            return Some((count, taken));
        }
        self.taken = taken;
        None
    }

    /// Takes back empty lists, to reuse their memory.
    pub(in crate::worker) fn give_back(&mut self, done: Requests) {
        self.taken = done;
    }

    /// Returns the next command that does not start a handshake.
    pub(in crate::worker) fn next_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// Returns the next handshake to start, while the budget lasts.
    pub(in crate::worker) fn next_start(&mut self) -> Option<Command> {
        (self.budget > 0).then(|| self.starts.pop_front())?
    }

    /// Sets aside the touched connections that exceed this turn's budget.
    pub(in crate::worker) fn limit_dirty(&mut self, dirty: &mut Vec<Arc<SharedConnection>>) {
        let now = dirty.len().min(self.dirty_budget);
        self.dirty_budget -= now;
        if now < dirty.len() {
            self.dirty.extend(dirty.drain(now..));
        }
    }

    /// Returns the next touched connection that was set aside, while the budget lasts.
    pub(in crate::worker) fn next_dirty(&mut self) -> Option<Arc<SharedConnection>> {
        if self.dirty.is_empty() {
            return None;
        }
        self.dirty_budget = self.dirty_budget.checked_sub(1)?;
        self.dirty.pop_front()
    }

    /// Returns true if handshakes, touched connections or, after a panic, other commands wait for
    /// the next turn.
    pub(in crate::worker) fn has_waiting(&self) -> bool {
        !self.starts.is_empty() || !self.dirty.is_empty() || !self.commands.is_empty()
    }

    /// Returns ready when something waits in the mailbox.
    pub(in crate::worker) fn poll_requests(&self, cx: &Context<'_>) -> Poll<()> {
        self.mailbox.poll_requests(cx)
    }

    /// Publishes the worker's counters.
    pub(in crate::worker) fn set_stats(&self, stats: &EndpointStats) {
        self.mailbox.set_stats(stats);
    }

    /// Counts a handshake that is over.
    pub(in crate::worker) fn count_handshake(&self, role: Side, outcome: &Outcome) {
        let outcome = match outcome {
            Ok((_, handshake)) => HandshakeOutcome::from(&**handshake),
            Err(error) => HandshakeOutcome::from(error),
        };
        self.mailbox.count_handshake(role, outcome);
    }

    /// Counts connections that ended.
    pub(in crate::worker) const fn on_ended(&mut self, count: usize) {
        self.live = self.live.saturating_sub(count);
    }

    /// Returns the number of connections that were begun and not yet counted as ended.
    pub(in crate::worker) fn begun(&self) -> usize {
        self.live.saturating_sub(self.starts.len())
    }

    /// Closes the mailbox, if nothing waits in it.
    pub(in crate::worker) fn try_end(&self) -> bool {
        self.mailbox.try_end()
    }

    /// Closes the mailbox and drops its contents, so that promises report that the endpoint is
    /// closed. Returns the number of handshakes that are never started.
    pub(in crate::worker) fn end(&mut self) -> usize {
        let waiting = self.mailbox.end();
        let dropped = waiting.commands.iter().chain(&self.starts);
        let count = dropped.filter(|command| command.starts_handshake()).count();
        self.commands.clear();
        self.starts.clear();
        self.dirty.clear();
        count
    }
}
