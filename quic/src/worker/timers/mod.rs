//! The deadlines of a worker's connections.

use std::{
    collections::BTreeSet,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use super::clock::Alarm;
use hybriq_proto::endpoint::Slot;

/// Time without a deadline from which on a connection counts as quiet: longer than the timers that
/// run while something is in flight.
const QUIET: Duration = Duration::from_millis(500);

/// Time from the last timer of a connection to a look at it, by which it may have become quiet.
const LOOK: Duration = Duration::from_millis(1100);

/// Queue of connections by the time at which they want to be called, with one entry per connection.
///
/// A deadline that becomes later, which happens with every packet, does not move the entry. The entry
/// is queued again when its old time comes.
#[derive(Default)]
pub(super) struct Timers {
    queue: BTreeSet<(Instant, Slot)>,
    alarm: Alarm,
}

/// Deadline of one connection, and the time of its entry in the queue.
#[derive(Clone, Copy, Default)]
pub(super) struct Deadline {
    wanted: Option<Instant>,
    queued: Option<Instant>,
}

impl Deadline {
    /// Returns true if the connection has nothing to do for a while.
    pub(super) fn is_quiet(&self, now: Instant) -> bool {
        self.wanted.is_some_and(|wanted| wanted > now + QUIET)
    }
}

impl Timers {
    /// Sets the time at which the connection wants to be called.
    pub(super) fn set(&mut self, slot: Slot, deadline: &mut Deadline, wanted: Option<Instant>) {
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
    pub(super) fn remove(&mut self, slot: Slot, deadline: &Deadline) {
        if let Some(queued) = deadline.queued {
            self.queue.remove(&(queued, slot));
        }
    }

    /// Returns the next connection whose entry is due. [`Timers::is_due`] checks its deadline.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Slot> {
        let &(at, slot) = self.queue.first()?;
        if at > now {
            return None;
        }
        self.queue.pop_first();
        Some(slot)
    }

    /// Returns true if the deadline of a connection has passed; queues the connection again if not.
    pub(super) fn is_due(&mut self, slot: Slot, deadline: &mut Deadline, now: Instant) -> bool {
        deadline.queued = None;
        match deadline.wanted {
            Some(wanted) if wanted <= now => true,
            wanted => {
                self.set(slot, deadline, wanted);
                false
            }
        }
    }

    /// Notes when a connection that was serviced wants to be called. If it becomes quiet, it is looked
    /// at once before its deadline.
    pub(super) fn set_after(
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
    pub(super) fn look_again(&mut self, slot: Slot, deadline: &mut Deadline, at: Option<Instant>) {
        let wanted = deadline.wanted;
        if at.is_some() {
            self.set(slot, deadline, at);
            deadline.wanted = wanted;
        }
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns the time of the next entry.
    pub(super) fn next(&self) -> Option<Instant> {
        self.queue.first().map(|&(at, _)| at)
    }

    /// Returns ready at the time `at`.
    pub(super) fn poll_alarm(&mut self, at: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        self.alarm.poll(at, cx)
    }
}

#[cfg(test)]
mod tests;
