//! The worker whose thread this is.

use std::{cell::Cell, sync::Arc};

use super::Shared;

thread_local! {
    /// Endpoint and index of the worker of this thread.
    static HERE: Cell<Option<(usize, u8)>> = const { Cell::new(None) };
}

/// Notes that this thread belongs to a worker, for as long as it runs.
pub(super) fn begin(endpoint: &Arc<Shared>, worker: u8) {
    HERE.set(Some((place(endpoint), worker)));
}

/// Returns the worker of an endpoint whose thread this is.
pub(super) fn worker_of(endpoint: &Shared) -> Option<u8> {
    let (owner, worker) = HERE.get()?;
    (owner == place(endpoint)).then_some(worker)
}

fn place(endpoint: &Shared) -> usize {
    std::ptr::from_ref(endpoint).addr()
}
