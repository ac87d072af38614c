//! Waits for sending parts of streams that are independent of their handles: any number for each stream, and also after
//! the handle is gone.

pub(super) mod fates;

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

/// How a send stream ended before all of it was delivered, other than by the application's call. The protocol forgets
/// it once our reset is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It did not.
    #[default]
    No,
    /// By the peer's STOP_SENDING with this code.
    Stopped(u64),
    /// By its deadline.
    Expired,
}

/// The watched streams of a connection. Takes no memory beyond a pointer while there are none.
#[derive(Default)]
#[expect(
    clippy::box_collection,
    reason = "an empty map is as large as six pointers"
)]
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
    /// How the stream ended before it was delivered.
    ended: Ended,
}

impl Watches {
    fn of(&self, id: StreamId) -> Option<&Watch> {
        self.0.as_ref()?.get(&id)
    }

    fn of_mut(&mut self, id: StreamId) -> Option<&mut Watch> {
        self.0.as_mut()?.get_mut(&id)
    }

    /// Returns how a stream ended while it was watched.
    pub(super) fn ended(&self, id: StreamId) -> Ended {
        self.of(id).map_or(Ended::No, |watch| watch.ended)
    }

    /// Returns the bytes that the peer acknowledged while the stream was watched; `u64::MAX` for all of it.
    pub(crate) fn delivered(&self, id: StreamId) -> u64 {
        self.of(id).map_or(0, |watch| watch.delivered)
    }

    /// Notes how a stream ended before it was delivered.
    pub(super) fn on_ended(&mut self, id: StreamId, ended: Ended, wakes: &mut Vec<Waker>) {
        if let Some(watch) = self.of_mut(id) {
            watch.ended = ended;
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

    /// Wakes those who watch a stream, because the peer has all of it, or its reset.
    pub(super) fn on_all_acknowledged(&mut self, id: StreamId, wakes: &mut Vec<Waker>) {
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

impl State {
    pub(super) fn on_send_ended(&mut self, id: StreamId, ended: Ended, wakes: &mut Vec<Waker>) {
        self.watches.on_ended(id, ended, wakes);
        if let Some(side) = self.sends.get_mut(&id) {
            side.ended = ended;
            wakes.extend(side.writer.take());
            wakes.extend(side.watcher.take());
        }
    }

    /// Returns how a sending part ended before it was delivered.
    pub(crate) fn send_ended(&mut self, id: StreamId) -> Ended {
        let ended = self.sends.get(&id).map_or(Ended::No, |side| side.ended);
        match (ended, self.watches.ended(id)) {
            (Ended::No, Ended::No) => {
                let stopped = self.core.streams().stop_code(id);
                stopped.map_or(Ended::No, Ended::Stopped)
            }
            (Ended::No, watched) => watched,
            (ended, _) => ended,
        }
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
            let ended = state.send_ended(id);
            let watches = state.watches.0.get_or_insert_default();
            let watch = watches.entry(id).or_default();
            watch.futures += 1;
            watch.ended = ended;
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
