//! Work on the threads of an endpoint's workers, which need not be `Send`.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;

use futures_util::future::LocalBoxFuture;
use hybriq::Incoming;
use tokio::task::LocalSet;

thread_local! {
    /// Work on the connections of this thread's worker.
    static WORK: RefCell<LocalSet> = RefCell::new(LocalSet::new());
    /// True while a task of the worker's runtime drives it.
    static IS_DRIVEN: Cell<bool> = const { Cell::new(false) };
}

/// Starts work on a client on the thread of the worker that received it.
pub(super) fn start(
    incoming: Incoming,
    work: impl FnOnce(Incoming) -> LocalBoxFuture<'static, ()> + Send + 'static,
) {
    drop(incoming.spawn(|incoming| async move {
        WORK.with_borrow(|tasks| drop(tasks.spawn_local(work(incoming))));
        if !IS_DRIVEN.replace(true) {
            poll_fn(|cx| WORK.with_borrow_mut(|tasks| Pin::new(tasks).poll(cx))).await;
            IS_DRIVEN.set(false);
        }
    }));
}
