use std::{
    future::poll_fn,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use slab::Slab;

/// Futures that wait for the same thing.
///
/// A future keeps its key from its first wait until it is dropped, so what is held is bounded by
/// the futures alive, however often they are polled.
#[derive(Default)]
pub(crate) struct Waiters(Slab<Option<Waker>>);

impl Waiters {
    fn register(&mut self, key: &mut Option<usize>, cx: &Context<'_>) -> Option<Waker> {
        if let Some(waker) = key.and_then(|key| self.0.get_mut(key)) {
            return set_waker(waker, cx);
        }
        *key = Some(self.0.insert(Some(cx.waker().clone())));
        None
    }

    fn forget(&mut self, key: usize) -> Option<Waker> {
        self.0.try_remove(key).flatten()
    }

    /// Moves every waker to `wakes`, to be called once no lock is held.
    pub(crate) fn wake_all(&mut self, wakes: &mut Vec<Waker>) {
        wakes.extend(self.0.iter_mut().filter_map(|(_, waker)| waker.take()));
    }
}

/// Remembers whom to wake; cheap where it is the same task as before.
///
/// Gives back who was remembered before, to be dropped once no lock is held: a task may go with
/// its last waker, and its streams with it.
#[must_use = "drop it once no lock is held"]
pub(crate) fn set_waker(slot: &mut Option<Waker>, cx: &Context<'_>) -> Option<Waker> {
    match slot {
        Some(waker) if waker.will_wake(cx.waker()) => None,
        slot => slot.replace(cx.waker().clone()),
    }
}

/// Calls wakers that were collected under a lock, after it.
pub(crate) fn wake(wakes: &mut Vec<Waker>) {
    for waker in wakes.drain(..) {
        waker.wake();
    }
}

/// Locks, also after a panic elsewhere: what the locks guard is valid between statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Repeats `attempt` under the lock whenever `waiters` are woken, until it is ready.
///
/// # Cancel safety
/// Dropped before it is ready it has done nothing.
pub(crate) async fn wait_until<T, R>(
    mutex: &Mutex<T>,
    waiters: impl Fn(&mut T) -> &mut Waiters,
    mut attempt: impl FnMut(&mut T) -> Poll<R>,
) -> R {
    let mut place = Place {
        mutex,
        waiters,
        key: None,
    };
    poll_fn(|cx| {
        let mut guarded = lock(place.mutex);
        let result = attempt(&mut guarded);
        let mut replaced = None;
        if result.is_pending() {
            replaced = (place.waiters)(&mut guarded).register(&mut place.key, cx);
        }
        drop(guarded);
        drop(replaced);
        result
    })
    .await
}

/// A future's place among the waiters.
struct Place<'a, T, W: Fn(&mut T) -> &mut Waiters> {
    mutex: &'a Mutex<T>,
    waiters: W,
    key: Option<usize>,
}

impl<T, W: Fn(&mut T) -> &mut Waiters> Drop for Place<'_, T, W> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            let mut guarded = lock(self.mutex);
            let waker = (self.waiters)(&mut guarded).forget(key);
            drop(guarded);
            drop(waker);
        }
    }
}

#[cfg(test)]
mod tests;
