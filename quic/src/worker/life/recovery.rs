//! Recovery of a worker after a panic, either of the library or of application code that it calls:
//! verifiers, signers, observers, generators.

use std::{
    any::Any,
    future::{Future, poll_fn},
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::{Poll, Waker},
};

use crate::{
    sync::{timers::Timers, waiters},
    udp::Buffers,
    worker::{
        Worker,
        connection::{attempt::failure, table::Connections},
        meter::trace,
        sockets::batch::SendBatch,
    },
};

/// Runs a future and catches its panic.
pub(in crate::worker) async fn caught<F: Future>(
    future: F,
) -> Result<F::Output, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        match polled {
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await
}

impl Worker {
    /// Ends all connections and starts again on the same sockets. Other workers continue.
    pub(in crate::worker) fn recover(&mut self) {
        let endpoint = self.settings.name.as_deref();
        tracing::error!(
            endpoint,
            worker = self.index,
            "a worker failed and is started again"
        );
        let mut wakes = mem::take(&mut self.wakes);
        self.end_all(failure::PANIC, &mut wakes);
        // The request that was being handled is lost. Dropping its promise tells the waiting task.
        self.published.ended = self.inbox.begun();
        // Counters never shrink; the gauges start again with the next endpoint.
        self.stats = self.all_stats().without_gauges();
        self.endpoint = self.settings.endpoint(self.index);
        self.endpoint.set_newcomers(self.succession.newcomers());
        self.connections = Connections::default();
        self.timers = Timers::default();
        self.chores.clock_set = None;
        self.reports.connecting = 0;
        self.queues.clear();
        self.walks.closing = None;
        self.go_on_rebinding();
        self.batch = SendBatch::new();
        self.buffers = Buffers::new();
        self.stats.worker_failures += 1;
        self.wakes = wakes;
        self.publish();
        waiters::wake(&mut self.wakes);
    }

    /// Ends all connections with an internal error, without telling their peers.
    pub(in crate::worker) fn end_all(&mut self, reason: &'static str, wakes: &mut Vec<Waker>) {
        let error = failure::error(reason);
        for entry in self.connections.iter_mut() {
            let role = {
                let mut state = entry.connection.lock();
                state.end(error.clone(), wakes);
                state.core.side()
            };
            self.meter.on_failed(&entry.life, &error);
            if !entry.told_end {
                trace::on_closed(&entry.connection.span, &error);
            }
            if let Some(promise) = entry.promise.take() {
                let outcome = Err(error.clone().into());
                self.inbox.count_handshake(role, &outcome);
                promise.keep(outcome, wakes);
            }
            self.published.ended += 1;
        }
    }
}
