//! Waits for sending parts of streams that are independent of their handles: any number for each stream, and also after
//! the handle is gone.

use std::{
    collections::HashMap,
    task::{Context, Poll, Waker},
};

use hybriq_proto::owners::streams::StreamId;

use super::{
    State,
    handle::{Handle, Rejected},
};
use crate::sync::waiters::{Place, Waiters};

/// The watched streams of a connection. Takes no memory beyond a pointer while there are none.
#[derive(Default)]
pub(crate) struct Watches(Option<Box<HashMap<StreamId, Watch>>>);

/// A stream that futures watch, and what became of it since the first one.
#[derive(Default)]
pub(super) struct Watch {
    futures: usize,
    waiting: Waiters,
    /// Smallest number of delivered bytes that a future waits for.
    goal: Option<u64>,
    /// Bytes that the peer has acknowledged; `u64::MAX` once it has the whole stream.
    delivered: u64,
    /// Code of the peer's STOP_SENDING. The protocol forgets it once our reset is acknowledged.
    stopped: Option<u64>,
}

impl Watches {
    fn of(&self, id: StreamId) -> Option<&Watch> {
        self.0.as_ref()?.get(&id)
    }

    fn of_mut(&mut self, id: StreamId) -> Option<&mut Watch> {
        self.0.as_mut()?.get_mut(&id)
    }

    /// Returns the code with which the peer stopped a stream while it was watched.
    pub(crate) fn stop_code(&self, id: StreamId) -> Option<u64> {
        self.of(id)?.stopped
    }

    /// Returns the bytes that the peer acknowledged while the stream was watched; `u64::MAX` for all of it.
    pub(crate) fn delivered(&self, id: StreamId) -> u64 {
        self.of(id).map_or(0, |watch| watch.delivered)
    }

    /// Notes that the peer stopped a stream.
    pub(super) fn on_stopped(&mut self, id: StreamId, code: u64, wakes: &mut Vec<Waker>) {
        if let Some(watch) = self.of_mut(id) {
            watch.stopped = Some(code);
            watch.wake(wakes);
        }
    }

    /// Notes what the peer has acknowledged. Wakes nobody before the smallest goal is reached.
    pub(super) fn on_delivered(&mut self, id: StreamId, bytes: u64, wakes: &mut Vec<Waker>) {
        if let Some(watch) = self.of_mut(id) {
            watch.delivered = bytes;
            if watch.goal.is_some_and(|goal| goal <= bytes) {
                watch.wake(wakes);
            }
        }
    }

    /// Wakes those who watch a stream, because it has ended.
    pub(super) fn on_end(&mut self, id: StreamId, wakes: &mut Vec<Waker>) {
        if let Some(watch) = self.of_mut(id) {
            watch.wake(wakes);
        }
    }

    /// Wakes all, because the connection is over.
    pub(super) fn wake_all(&mut self, wakes: &mut Vec<Waker>) {
        for watch in self.0.iter_mut().flat_map(|all| all.values_mut()) {
            watch.wake(wakes);
        }
    }

    /// Forgets all streams, because they never existed for the server.
    pub(super) fn forget_all(&mut self, wakes: &mut Vec<Waker>) {
        self.wake_all(wakes);
        self.0 = None;
    }

    /// Returns the number of futures that watch a stream.
    pub(super) fn futures(&self) -> usize {
        let all = self.0.iter().flat_map(|all| all.values());
        all.map(|watch| watch.futures).sum()
    }
}

impl Watch {
    fn wake(&mut self, wakes: &mut Vec<Waker>) {
        self.goal = None;
        self.waiting.wake_all(wakes);
    }
}

/// One wait for a sending part. It counts as a handle of the connection.
pub(crate) struct StreamWatch {
    handle: Handle,
    id: StreamId,
    place: Place,
}

impl StreamWatch {
    /// Begins to watch a stream: what happens to it from now on is known to [`StreamWatch::poll`].
    pub(crate) fn new(handle: &Handle, id: StreamId) -> Self {
        if let Ok(mut state) = handle.lock_stream() {
            let watches = state.watches.0.get_or_insert_default();
            watches.entry(id).or_default().futures += 1;
            state.core.streams().watch_send(id);
        }
        Self {
            handle: handle.clone(),
            id,
            place: Place::of_handle(),
        }
    }

    /// Calls `attempt`, and registers the task if the result is not ready: it is woken at the end of the stream, and
    /// once the peer has acknowledged `goal` bytes.
    pub(crate) fn poll<R>(
        &mut self,
        cx: &Context<'_>,
        goal: Option<u64>,
        attempt: impl FnOnce(&mut State, StreamId) -> Poll<R>,
    ) -> Result<Poll<R>, Rejected> {
        let mut state = self.handle.lock_stream()?;
        let result = attempt(&mut state, self.id);
        let mut replaced = None;
        if let Some(watch) = state
            .watches
            .of_mut(self.id)
            .filter(|_| result.is_pending())
        {
            replaced = watch.waiting.register(&mut self.place, cx);
            watch.goal = [watch.goal, goal].into_iter().flatten().min();
        }
        drop(state);
        drop(replaced);
        Ok(self.handle.on_polled(result))
    }
}

impl Drop for StreamWatch {
    fn drop(&mut self) {
        let Ok(mut state) = self.handle.lock_stream() else {
            return;
        };
        let mut waker = None;
        let mut left = None;
        if let Some(watch) = state.watches.of_mut(self.id) {
            // All are woken at once, so that no wake is passed on.
            waker = watch.waiting.leave(&mut self.place, &mut Vec::new());
            watch.futures -= 1;
            left = Some(watch.futures);
        }
        if left == Some(0) {
            let watches = state.watches.0.as_mut();
            let is_last =
                watches.is_some_and(|all| all.remove(&self.id).is_some() && all.is_empty());
            if is_last {
                state.watches.0 = None;
            }
            state.core.streams().unwatch_send(self.id);
        }
        drop(state);
        drop(waker);
    }
}
