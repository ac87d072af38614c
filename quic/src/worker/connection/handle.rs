//! Shares of application handles in a connection.

use std::{
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use bytes::Bytes;

use super::{SharedConnection, State, WaitFor};
use crate::{
    sync::MutexGuard,
    worker::{
        Drain,
        tasks::Tasks,
        waiters::{Place, leave, poll_waiting, wait_until},
    },
};

/// The handle is of a stream that never was, since the server refused 0-RTT data.
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

/// An application's share in a connection: the last one to go closes it with code 0.
pub(crate) struct Handle {
    connection: Arc<SharedConnection>,
    /// 0-RTT data when the handle was made: it is for the streams since.
    early: EarlyStreams,
}

impl Handle {
    /// Returns the runtime of the connection's worker and the tasks on it.
    pub(crate) fn tasks(&self) -> &Tasks {
        self.connection.tasks()
    }

    /// Returns the wish of the endpoint that connections end.
    pub(crate) fn drain(&self) -> &Drain {
        self.connection.drain()
    }

    /// For the streams from now on.
    pub(crate) fn new(connection: Arc<SharedConnection>) -> Self {
        let early = EarlyStreams::of(&connection.lock());
        Self::of(connection, early)
    }

    /// A handle for early data, if the connection is to carry some.
    pub(crate) fn early(connection: &Arc<SharedConnection>) -> Option<Self> {
        let state = connection.lock();
        let offered = state.closed.is_none() && state.core.may_use_early();
        let early = EarlyStreams::of(&state);
        drop(state);
        offered.then(|| Self::of(connection.clone(), early))
    }

    fn of(connection: Arc<SharedConnection>, early: EarlyStreams) -> Self {
        connection.handles.fetch_add(1, Ordering::Relaxed);
        Self { connection, early }
    }

    /// Waits until `attempt` is ready; it is repeated whenever `what` may have come.
    pub(crate) async fn wait<R>(
        &self,
        what: WaitFor,
        attempt: impl FnMut(&mut State) -> Poll<R>,
    ) -> R {
        wait_until(self.state(), what, attempt).await
    }

    /// Checks that the streams of this handle still exist. Asks the protocol itself, which may know
    /// of a refusal whose event nobody took yet.
    pub(crate) fn check(&self, state: &State) -> Result<(), Rejected> {
        if self.early == EarlyStreams::of(state) {
            Ok(())
        } else {
            Err(Rejected)
        }
    }

    /// Locks for an operation on a stream of this handle.
    pub(crate) fn lock_stream(&self) -> Result<MutexGuard<'_, State>, Rejected> {
        let state = self.lock();
        self.check(&state)?;
        Ok(state)
    }
}

/// The places that one application handle has among a connection's waiters through its `poll`
/// methods.
///
/// A clone begins with none; dropped, it gives its places up.
pub(crate) struct Polling {
    handle: Handle,
    /// Made with the first wait: most handles are never polled.
    places: Option<Box<[Place; WaitFor::ALL.len()]>>,
}

impl Polling {
    pub(crate) const fn new(handle: Handle) -> Self {
        Self {
            handle,
            places: None,
        }
    }

    /// Tries, and waits for `what` if it must.
    pub(crate) fn poll<R>(
        &mut self,
        what: WaitFor,
        cx: &Context<'_>,
        attempt: impl FnOnce(&Handle, &mut State) -> Poll<R>,
    ) -> Poll<R> {
        let handle = &self.handle;
        let places = self
            .places
            .get_or_insert_with(|| Box::new([const { Place::of_handle() }; WaitFor::ALL.len()]));
        let place = &mut places[what.index()];
        poll_waiting(handle.state(), (what, place), cx, |state| {
            attempt(handle, state)
        })
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
            self.connection.close(0, Bytes::new());
        }
    }
}

impl std::ops::Deref for Handle {
    type Target = Arc<SharedConnection>;

    fn deref(&self) -> &Arc<SharedConnection> {
        &self.connection
    }
}
