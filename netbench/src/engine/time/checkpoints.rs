//! Points at which a script waits for another one.

use std::cell::RefCell;
use std::collections::BTreeSet;

use tokio::sync::Notify;

/// Checkpoints of a connection, or of a client.
#[derive(Default)]
pub(crate) struct Checkpoints {
    unparked: RefCell<BTreeSet<u64>>,
    changed: Notify,
}

impl Checkpoints {
    /// Waits until the checkpoint is unparked; returns at once if it was before.
    pub(crate) async fn park(&self, number: u64) {
        loop {
            let changed = self.changed.notified();
            if self.unparked.borrow().contains(&number) {
                return;
            }
            changed.await;
        }
    }

    pub(crate) fn unpark(&self, number: u64) {
        self.unparked.borrow_mut().insert(number);
        self.changed.notify_waiters();
    }
}
