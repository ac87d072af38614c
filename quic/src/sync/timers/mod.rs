//! The deadlines of a worker's connections.

use std::{
    collections::BTreeSet,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use hybriq_proto::endpoint::Slot;

use super::clock::Alarm;

/// Shortest time without a deadline after which a connection counts as quiet: longer than the
/// timers that run while anything is in flight.
const QUIET: Duration = Duration::from_millis(500);

/// Time after the last timer of a connection at which to check whether it has become quiet.
const LOOK: Duration = Duration::from_millis(1100);

/// Queue of connections by the time at which they want to be called, with one entry per connection.
///
/// When a deadline becomes later, as it does with every packet, its entry does not move. The entry
/// is queued again when its old time comes.
#[derive(Default)]
pub(crate) struct Timers {
    queue: BTreeSet<(Instant, Slot)>,
    alarm: Alarm,
}

/// Deadline of one connection, and the time of its entry in the queue.
#[derive(Clone, Copy, Default)]
pub(crate) struct Deadline {
    wanted: Option<Instant>,
    queued: Option<Instant>,
}

impl Deadline {
    /// Returns true if the connection has nothing to do for a while.
    pub(crate) fn is_quiet(&self, now: Instant) -> bool {
        self.wanted.is_some_and(|wanted| wanted > now + QUIET)
    }
}

impl Timers {
    /// Sets the time at which the connection wants to be called.
    pub(crate) fn set(&mut self, slot: Slot, deadline: &mut Deadline, wanted: Option<Instant>) {
        deadline.wanted = wanted;
        let Some(wanted) = wanted else { return };
        if let Some(queued) = deadline.queued {
            if queued <= wanted {
                return;
            }
            self.queue.remove(&(queued, slot));
        }
        self.queue.insert((wanted, slot));
        deadline.queued = Some(wanted);
    }

    /// Removes the entry of a connection.
    pub(crate) fn remove(&mut self, slot: Slot, deadline: &Deadline) {
        if let Some(queued) = deadline.queued {
            self.queue.remove(&(queued, slot));
        }
    }

    /// Returns the next connection whose entry is due. [`Timers::is_due`] checks its deadline.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Slot> {
        let &(at, slot) = self.queue.first()?;
        if at > now {
            return None;
        }
        self.queue.pop_first();
        Some(slot)
    }

    /// Returns true if the deadline of a connection has passed; queues the connection again if not.
    pub(crate) fn is_due(&mut self, slot: Slot, deadline: &mut Deadline, now: Instant) -> bool {
        deadline.queued = None;
        match deadline.wanted {
            Some(wanted) if wanted <= now => true,
            wanted => {
                self.set(slot, deadline, wanted);
                false
            }
        }
    }

    /// Notes when a connection that was just serviced wants to be called. If it becomes quiet, it
    /// is checked once before its deadline.
    pub(crate) fn set_after(
        &mut self,
        now: Instant,
        slot: Slot,
        deadline: &mut Deadline,
        wanted: Option<Instant>,
    ) {
        let had_entry = deadline.queued.is_some();
        let look = now + LOOK;
        if had_entry || wanted.is_none_or(|wanted| wanted <= look) {
            self.set(slot, deadline, wanted);
        } else {
            self.set(slot, deadline, Some(look));
            deadline.wanted = wanted;
        }
    }

    /// Calls a connection once more at the time `at`, before its deadline.
    pub(crate) fn look_again(&mut self, slot: Slot, deadline: &mut Deadline, at: Option<Instant>) {
        let wanted = deadline.wanted;
        if at.is_some() {
            self.set(slot, deadline, at);
            deadline.wanted = wanted;
        }
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns the time of the next entry.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.queue.first().map(|&(at, _)| at)
    }

    /// Returns ready at the time `at`.
    pub(crate) fn poll_alarm(&mut self, at: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        self.alarm.poll(at, cx)
    }
}

#[cfg(test)]
mod tests;
