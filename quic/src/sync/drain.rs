//! The signal by which an endpoint asks the applications of its connections to finish.

use std::task::Poll;

use super::waiters::{Waited, Waiters, lock, wait_until, wake};
use crate::sync::Mutex;

/// The signal by which an endpoint asks the applications of its connections to finish.
#[derive(Default)]
pub(crate) struct Drain(Mutex<State>);

#[derive(Default)]
struct State {
    begun: bool,
    waiting: Waiters,
}

impl Waited for State {
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
