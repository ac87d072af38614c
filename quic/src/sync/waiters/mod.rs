//! Futures and handles that wait for something behind a lock, and the helpers that wake them.

use std::{
    collections::VecDeque,
    future::poll_fn,
    mem,
    sync::PoisonError,
    task::{Context, Poll, Waker},
};

use crate::sync::{Mutex, MutexGuard};

/// Tasks that wait for the same event, oldest first.
///
/// A waiter keeps its [`Place`] from its first wait until it is dropped, so the memory is bounded
/// by the number of living waiters, however often they are polled.
///
/// # Who is woken
/// [`wake_one`](Self::wake_one) wakes the oldest future. That future is certain to be polled again
/// or dropped: it takes something and wakes the next one, it finds nothing, or it wakes the next
/// one as it is dropped. Handles may never be polled again, so all of them are woken as well and
/// none of them counts.
///
/// An event without a waiter so far takes no memory beyond a pointer: a connection has
/// several kinds of events, and most never have a waiter.
#[derive(Default)]
pub(crate) struct Waiters(Option<Box<Line>>);

#[derive(Default)]
struct Line {
    /// Sorted by their tickets.
    waiting: VecDeque<Waiter>,
    /// Number of handles among the waiters.
    handles: usize,
    /// Ticket of the next newcomer.
    next: u64,
}

struct Waiter {
    ticket: u64,
    kind: Kind,
    waker: Option<Waker>,
}

/// Kind of waiter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// A future: polled again after it is woken, or dropped.
    #[default]
    Future,
    /// A handle with a `poll` method, which nobody may call again.
    Handle,
}

/// Place among the waiters; empty before the first wait.
#[derive(Debug, Default)]
pub(crate) struct Place {
    ticket: Option<u64>,
    kind: Kind,
}

impl Place {
    /// Returns the place of a handle that is polled.
    pub(crate) const fn of_handle() -> Self {
        Self {
            ticket: None,
            kind: Kind::Handle,
        }
    }

    /// Returns true if the place is among the waiters, or was woken and not yet given up.
    pub(crate) const fn is_taken(&self) -> bool {
        self.ticket.is_some()
    }
}

impl Waiters {
    /// Registers the task for a wake-up. Returns its previous waker, to be dropped once no lock is held.
    pub(crate) fn register(&mut self, place: &mut Place, cx: &Context<'_>) -> Option<Waker> {
        self.0.get_or_insert_default().register(place, cx)
    }

    /// Gives up a place. If its future was already woken, the next one is woken instead.
    pub(crate) fn leave(&mut self, place: &mut Place, wakes: &mut Vec<Waker>) -> Option<Waker> {
        self.0.as_mut()?.leave(place, wakes)
    }

    /// Returns the number of futures and handles that wait.
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |line| line.waiting.len())
    }

    /// Moves the oldest future's waker to `wakes`, and those of all handles, to be called once no
    /// lock is held.
    pub(crate) fn wake_one(&mut self, wakes: &mut Vec<Waker>) {
        if let Some(line) = &mut self.0 {
            line.wake_one(wakes);
        }
    }

    /// Moves every waker to `wakes`, to be called once no lock is held.
    pub(crate) fn wake_all(&mut self, wakes: &mut Vec<Waker>) {
        if let Some(line) = &mut self.0 {
            line.wake_all(wakes);
        }
    }
}

impl Line {
    fn register(&mut self, place: &mut Place, cx: &Context<'_>) -> Option<Waker> {
        let ticket = *place.ticket.get_or_insert_with(|| {
            self.next += 1;
            self.next
        });
        match self.position(ticket) {
            Ok(index) => {
                let waiter = self.waiting.get_mut(index)?;
                set_waker(&mut waiter.waker, cx)
            }
            Err(index) => {
                self.handles += usize::from(place.kind == Kind::Handle);
                let waiter = Waiter {
                    ticket,
                    kind: place.kind,
                    waker: Some(cx.waker().clone()),
                };
                if self.waiting.is_empty() {
                    // Most events have one waiter.
                    self.waiting.reserve_exact(1);
                }
                self.waiting.insert(index, waiter);
                None
            }
        }
    }

    fn position(&self, ticket: u64) -> Result<usize, usize> {
        self.waiting
            .binary_search_by_key(&ticket, |waiter| waiter.ticket)
    }

    fn leave(&mut self, place: &mut Place, wakes: &mut Vec<Waker>) -> Option<Waker> {
        let ticket = place.ticket.take()?;
        if let Ok(index) = self.position(ticket) {
            self.handles -= usize::from(place.kind == Kind::Handle);
            return self.waiting.remove(index)?.waker;
        }
        if place.kind == Kind::Future {
            self.wake_one(wakes);
        }
        None
    }

    fn wake_one(&mut self, wakes: &mut Vec<Waker>) {
        let mut found = false;
        if self.handles == 0 {
            let oldest = self.waiting.pop_front();
            return wakes.extend(oldest.and_then(|waiter| waiter.waker));
        }
        self.handles = 0;
        self.waiting.retain_mut(|waiter| {
            let stays = waiter.kind == Kind::Future && mem::replace(&mut found, true);
            if !stays {
                wakes.extend(waiter.waker.take());
            }
            stays
        });
    }

    fn wake_all(&mut self, wakes: &mut Vec<Waker>) {
        self.handles = 0;
        wakes.extend(self.waiting.drain(..).filter_map(|waiter| waiter.waker));
    }
}

/// State behind a lock whose changes tasks can wait for.
pub(crate) trait Waited {
    /// Event to wait for.
    type For: Copy;

    /// Returns the tasks that wait for an event.
    fn waiters(&mut self, what: Self::For) -> &mut Waiters;
}

/// Stores the waker of a task. Costs little if it is the same task as before.
///
/// Returns the previous waker, to be dropped once no lock is held: the last waker may drop its task,
/// and with it streams that take the lock.
#[must_use = "drop it once no lock is held"]
pub(crate) fn set_waker(slot: &mut Option<Waker>, cx: &Context<'_>) -> Option<Waker> {
    match slot {
        Some(waker) if waker.will_wake(cx.waker()) => None,
        slot => slot.replace(cx.waker().clone()),
    }
}

/// Calls wakers that were collected under a lock. The lock must not be held.
pub(crate) fn wake(wakes: &mut Vec<Waker>) {
    for waker in wakes.drain(..) {
        waker.wake();
    }
}

/// Locks a mutex, even after a panic elsewhere: the state it guards is valid between statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `attempt` under the lock, and takes a place among the waiters if the result is not ready.
pub(crate) fn poll_waiting<T: Waited, R>(
    mutex: &Mutex<T>,
    what: T::For,
    place: &mut Place,
    cx: &Context<'_>,
    attempt: impl FnOnce(&mut T) -> Poll<R>,
) -> Poll<R> {
    let mut wakes = Vec::new();
    let mut guarded = lock(mutex);
    let result = attempt(&mut guarded);
    let waiters = guarded.waiters(what);
    let replaced = if result.is_pending() {
        waiters.register(place, cx)
    } else {
        waiters.leave(place, &mut wakes)
    };
    drop(guarded);
    drop(replaced);
    wake(&mut wakes);
    result
}

/// Calls `attempt` under the lock, and takes a new place among the waiters if the result is not ready.
pub(crate) fn poll_newcomer<T: Waited, R>(
    mutex: &Mutex<T>,
    what: T::For,
    cx: &Context<'_>,
    attempt: impl FnOnce(&mut T) -> Poll<R>,
) -> Result<R, Place> {
    let mut guarded = lock(mutex);
    match attempt(&mut guarded) {
        Poll::Ready(result) => Ok(result),
        Poll::Pending => {
            let mut place = Place::of_handle();
            // A new place has no previous waker.
            let _ = guarded.waiters(what).register(&mut place, cx);
            Err(place)
        }
    }
}

/// Gives up a place among the waiters.
pub(crate) fn leave<T: Waited>(mutex: &Mutex<T>, what: T::For, place: &mut Place) {
    if place.is_taken() {
        let mut wakes = Vec::new();
        let waker = lock(mutex).waiters(what).leave(place, &mut wakes);
        drop(waker);
        wake(&mut wakes);
    }
}

/// Calls `attempt` under the lock at each wake-up, until it is ready.
///
/// # Cancel safety
/// A future that is dropped before it is ready has had no effect.
pub(crate) async fn wait_until<T: Waited, R>(
    mutex: &Mutex<T>,
    what: T::For,
    mut attempt: impl FnMut(&mut T) -> Poll<R>,
) -> R {
    let mut wait = Wait {
        mutex,
        what,
        place: Place::default(),
    };
    poll_fn(|cx| poll_waiting(mutex, what, &mut wait.place, cx, &mut attempt)).await
}

/// Wait of a future, which ends when the future is dropped.
struct Wait<'a, T: Waited> {
    mutex: &'a Mutex<T>,
    what: T::For,
    place: Place,
}

impl<T: Waited> Drop for Wait<'_, T> {
    fn drop(&mut self) {
        leave(self.mutex, self.what, &mut self.place);
    }
}

#[cfg(test)]
mod tests;

/// The signal by which an endpoint asks the applications of its connections to finish.
#[derive(Default)]
pub(crate) struct Drain(Mutex<Signal>);

#[derive(Default)]
struct Signal {
    begun: bool,
    waiting: Waiters,
}

impl Waited for Signal {
    type For = ();

    fn waiters(&mut self, (): ()) -> &mut Waiters {
        &mut self.waiting
    }
}

impl Drain {
    /// Gives the signal, and wakes all tasks that wait for it.
    pub(crate) fn begin(&self) {
        let mut wakes = Vec::new();
        let mut state = lock(&self.0);
        state.begun = true;
        state.waiting.wake_all(&mut wakes);
        drop(state);
        wake(&mut wakes);
    }

    /// Returns the number of tasks that wait for it.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.0).waiting.len()
    }

    /// Waits until the endpoint drains.
    pub(crate) async fn begun(&self) {
        wait_until(&self.0, (), |state| {
            if state.begun {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}
