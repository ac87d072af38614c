//! Several tasks that wait for one event.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

/// Wakes all who wait. A socket remembers only the last who asked, but several parts of a
/// connection wait for it.
#[derive(Debug, Default)]
pub(super) struct Wakers(Mutex<Vec<Waker>>);

impl Wakers {
    /// Adds one who waits, and gives what the socket is to wake.
    pub(super) fn join(self: &Arc<Self>, cx: &Context<'_>) -> Waker {
        let mut wakers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            wakers.push(cx.waker().clone());
        }
        drop(wakers);
        Waker::from(Arc::clone(self))
    }

    pub(super) fn wake_all(&self) {
        let mut wakers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let woken = std::mem::take(&mut *wakers);
        drop(wakers);
        for waker in woken {
            waker.wake();
        }
    }
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }
}
