//! Handles of a connection.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use super::{SharedConnection, State, WaitFor};
use crate::{
    sync::{
        MutexGuard,
        tasks::Tasks,
        waiters::{Place, leave, poll_newcomer, poll_waiting, wait_until},
    },
    worker::Drain,
};

/// The handle's stream does not exist, because the server refused 0-RTT data.
pub(crate) struct Rejected;

/// Fate of the streams that were opened early, as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EarlyStreams {
    /// The streams exist, or may exist.
    Live,
    /// The server refused 0-RTT data, and they are gone.
    Refused,
}

impl EarlyStreams {
    fn of(state: &State) -> Self {
        if state.core.is_early_data_refused() {
            Self::Refused
        } else {
            Self::Live
        }
    }
}

/// A handle of a connection. Dropping the last one closes the connection without an error, once
/// the streams that were finished have arrived.
pub(crate) struct Handle {
    connection: Arc<SharedConnection>,
    /// Fate of early streams when the handle was created. The handle is valid for streams opened
    /// since.
    early: EarlyStreams,
}

impl Handle {
    /// Returns the runtime of the connection's worker and the tasks on it.
    pub(crate) fn tasks(&self) -> &Tasks {
        self.connection.tasks()
    }

    /// Returns the signal that the endpoint drains.
    pub(crate) fn drain(&self) -> &Drain {
        self.connection.drain()
    }

    /// Returns a handle for streams that are opened from now on.
    pub(crate) fn new(connection: Arc<SharedConnection>) -> Self {
        let early = EarlyStreams::of(&connection.lock());
        Self::of(connection, early)
    }

    /// Returns a handle for early data, if the connection may carry some.
    pub(crate) fn early(connection: &Arc<SharedConnection>) -> Option<Self> {
        let state = connection.lock();
        let early = EarlyStreams::of(&state);
        // After a refusal, the streams of the connection start afresh once its event was handled.
        let offered =
            state.closed.is_none() && state.core.may_use_early() && early == EarlyStreams::Live;
        drop(state);
        offered.then(|| Self::of(connection.clone(), early))
    }

    fn of(connection: Arc<SharedConnection>, early: EarlyStreams) -> Self {
        connection.handles.fetch_add(1, Ordering::Relaxed);
        Self { connection, early }
    }

    /// Waits until `attempt` is ready, and calls it again whenever `what` may have happened.
    pub(crate) async fn wait<R>(
        &self,
        what: WaitFor,
        attempt: impl FnMut(&mut State) -> Poll<R>,
    ) -> R {
        let mut wait = pin!(wait_until(self.state(), what, attempt));
        poll_fn(|cx| self.on_polled(wait.as_mut().poll(cx))).await
    }

    /// Sends the first flight, if it is held, before the application waits.
    pub(crate) fn on_polled<R>(&self, result: Poll<R>) -> Poll<R> {
        if result.is_pending() {
            self.connection.send_first_flight();
        }
        result
    }

    /// Checks that the streams of this handle still exist. Asks the core, which may know of a refusal
    /// before its event is handled.
    pub(crate) fn check(&self, state: &State) -> Result<(), Rejected> {
        if self.early == EarlyStreams::of(state) {
            Ok(())
        } else {
            Err(Rejected)
        }
    }

    /// Locks the state for an operation on a stream of this handle.
    pub(crate) fn lock_stream(&self) -> Result<MutexGuard<'_, State>, Rejected> {
        let state = self.lock();
        self.check(&state)?;
        Ok(state)
    }
}

/// A handle with `poll` methods, and its places among the tasks that wait for the connection.
///
/// A clone starts without places. Dropping it gives up its places.
pub(crate) struct Polling {
    handle: Handle,
    /// Created by the first wait, because most handles never wait.
    places: Option<Box<[Place; WaitFor::ALL.len()]>>,
}

impl Polling {
    pub(crate) const fn new(handle: Handle) -> Self {
        Self {
            handle,
            places: None,
        }
    }

    /// Calls `attempt`, and registers the task for `what` if the result is not ready.
    pub(crate) fn poll<R>(
        &mut self,
        what: WaitFor,
        cx: &Context<'_>,
        attempt: impl FnOnce(&Handle, &mut State) -> Poll<R>,
    ) -> Poll<R> {
        let handle = &self.handle;
        let attempt = |state: &mut State| attempt(handle, state);
        if let Some(places) = &mut self.places {
            let place = &mut places[what.index()];
            return handle.on_polled(poll_waiting(handle.state(), what, place, cx, attempt));
        }
        match poll_newcomer(handle.state(), what, cx, attempt) {
            Ok(result) => Poll::Ready(result),
            Err(place) => {
                let mut places = Box::new([const { Place::of_handle() }; WaitFor::ALL.len()]);
                places[what.index()] = place;
                self.places = Some(places);
                self.handle.on_polled(Poll::Pending)
            }
        }
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        let Some(places) = &mut self.places else {
            return;
        };
        for (what, place) in WaitFor::ALL.into_iter().zip(places.iter_mut()) {
            leave(self.handle.state(), what, place);
        }
    }
}

impl Clone for Polling {
    fn clone(&self) -> Self {
        Self::new(self.handle.clone())
    }
}

impl std::ops::Deref for Polling {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        Self::of(self.connection.clone(), self.early)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.connection.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.connection.leave();
        }
    }
}

impl std::ops::Deref for Handle {
    type Target = Arc<SharedConnection>;

    fn deref(&self) -> &Arc<SharedConnection> {
        &self.connection
    }
}
