//! Several tasks waiting for one event.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

/// Wakes all waiting tasks. A socket remembers only the last task, but several parts of a
/// connection may wait for it.
#[derive(Debug, Default)]
pub(crate) struct Wakers(Mutex<Vec<Waker>>);

impl Wakers {
    /// Adds a waiting task, and returns the waker for the socket.
    pub(crate) fn join(self: &Arc<Self>, cx: &Context<'_>) -> Waker {
        let mut wakers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            wakers.push(cx.waker().clone());
        }
        drop(wakers);
        Waker::from(Arc::clone(self))
    }

    pub(crate) fn wake_all(&self) {
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
