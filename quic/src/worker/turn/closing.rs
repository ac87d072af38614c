//! The close of an endpoint, which handles its connections in batches: the worker does other work
//! in between.

use bytes::Bytes;

use crate::worker::{Standing, Worker};

/// Largest number of connections that are closed in one turn.
const SHARE: usize = 128;

/// Close of an endpoint that has not yet reached every connection.
pub(in crate::worker) struct Closing {
    code: u64,
    reason: Bytes,
    /// Index of the first connection that has yet to be closed.
    next: usize,
}

impl Worker {
    /// Closes the endpoint: takes no new connections and begins to close the existing ones.
    pub(in crate::worker) fn close(&mut self, code: u64, reason: Bytes) {
        if self.standing.is_closed() {
            return;
        }
        self.standing = Standing::Closed;
        self.walks.closing = Some(Closing {
            code,
            reason,
            next: 0,
        });
        self.go_on_closing();
    }

    /// Closes this turn's batch of connections.
    pub(in crate::worker) fn go_on_closing(&mut self) {
        let Some(mut closing) = self.walks.closing.take() else {
            return;
        };
        for _ in 0..SHARE {
            let Some((index, entry)) = self.connections.first_from(closing.next) else {
                return;
            };
            closing.next = index + 1;
            let reason = closing.reason.clone();
            let mut state = entry.connection.lock();
            if state.closed.is_none() {
                self.shared.on_cut_off();
            }
            state.close(closing.code, reason, &mut self.wakes);
            drop(state);
            self.queues.touch(entry);
        }
        self.walks.closing = Some(closing);
    }
}
