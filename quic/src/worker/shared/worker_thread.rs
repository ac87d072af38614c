//! The worker that the current thread belongs to.

use std::cell::Cell;

thread_local! {
    /// Address of the endpoint's shared state, and index of the worker of this thread.
    static CURRENT: Cell<Option<(usize, u8)>> = const { Cell::new(None) };
}

/// Notes that this thread belongs to a worker of an endpoint, identified by the address of its
/// shared state.
pub(in crate::worker) fn begin<T>(endpoint: &T, worker: u8) {
    CURRENT.set(Some((place(endpoint), worker)));
}

/// Returns the worker of an endpoint that this thread belongs to.
pub(in crate::worker) fn worker_of<T>(endpoint: &T) -> Option<u8> {
    let (owner, worker) = CURRENT.get()?;
    (owner == place(endpoint)).then_some(worker)
}

fn place<T>(endpoint: &T) -> usize {
    std::ptr::from_ref(endpoint).addr()
}
