//! A connection that somebody waits for, from the request to the end of its handshake.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;

use super::{
    connection::{Handle, SharedConnection},
    waiters::{lock, set_waker},
};
use crate::{error::ConnectError, sync::Mutex};
use hybriq_proto::agreement::Handshake;

/// A connection somebody waits for: from the request until the handshake is over.
pub(crate) struct Attempt(Mutex<Waiting>);

struct Waiting {
    phase: Phase,
    waker: Option<Waker>,
}

/// A share in the connection and what the handshake agreed on.
pub(crate) type Outcome = Result<(Handle, Arc<Handshake>), ConnectError>;

enum Phase {
    /// The worker has not seen the request yet.
    Asked,
    /// The handshake is under way.
    Started(Arc<SharedConnection>),
    /// The handshake is over.
    Over(Outcome),
    /// The handshake is over, and the connection was handed out.
    HandedOut,
    /// Nobody waits any more.
    Left,
}

impl Attempt {
    pub(crate) fn new() -> (Arc<Self>, Promise) {
        let attempt = Arc::new(Self(Mutex::new(Waiting {
            phase: Phase::Asked,
            waker: None,
        })));
        (attempt.clone(), Promise(Some(attempt)))
    }

    /// Nobody waits any more: an unfinished handshake is given up.
    pub(crate) fn leave(&self) {
        let phase = std::mem::replace(&mut lock(&self.0).phase, Phase::Left);
        if let Phase::Started(connection) = phase {
            connection.close(0, Bytes::new());
        }
    }

    /// Nobody waits any more, and whoever has a share in the connection decides what becomes of it.
    pub(crate) fn forget(&self) {
        let phase = std::mem::replace(&mut lock(&self.0).phase, Phase::Left);
        drop(phase);
    }

    /// A share in the connection, once there is one and while it may carry early data; `None` if it
    /// is over or may not.
    pub(crate) fn poll_early(&self, cx: &Context<'_>) -> Poll<Option<Handle>> {
        let mut waiting = lock(&self.0);
        match &waiting.phase {
            Phase::Asked => {
                let replaced = set_waker(&mut waiting.waker, cx);
                drop(waiting);
                drop(replaced);
                Poll::Pending
            }
            Phase::Started(connection) => {
                let connection = connection.clone();
                drop(waiting);
                Poll::Ready(Handle::early(&connection))
            }
            Phase::Over(_) | Phase::HandedOut | Phase::Left => Poll::Ready(None),
        }
    }

    /// Returns the outcome. The connection is handed out once; the error of one that failed stays.
    pub(crate) fn poll(&self, cx: &Context<'_>) -> Poll<Outcome> {
        let mut waiting = lock(&self.0);
        match std::mem::replace(&mut waiting.phase, Phase::Left) {
            Phase::Over(Ok(established)) => {
                waiting.phase = Phase::HandedOut;
                Poll::Ready(Ok(established))
            }
            Phase::HandedOut => {
                waiting.phase = Phase::HandedOut;
                Poll::Ready(Err(ConnectError::HandedOut))
            }
            Phase::Over(Err(ConnectError::Connection(error))) => {
                waiting.phase = Phase::Over(Err(error.clone().into()));
                Poll::Ready(Err(error.into()))
            }
            Phase::Over(Err(error)) => Poll::Ready(Err(error)),
            Phase::Left => Poll::Ready(Err(ConnectError::EndpointClosed)),
            phase => {
                waiting.phase = phase;
                let replaced = set_waker(&mut waiting.waker, cx);
                drop(waiting);
                drop(replaced);
                Poll::Pending
            }
        }
    }

    /// Hands over the outcome, gives whom to wake.
    fn on_over(&self, outcome: Outcome) -> Option<Waker> {
        let mut waiting = lock(&self.0);
        if let Phase::Left = waiting.phase {
            drop(waiting);
            drop(outcome);
            return None;
        }
        waiting.phase = Phase::Over(outcome);
        waiting.waker.take()
    }
}

/// The worker's side of an [`Attempt`]. Dropped unkept, it says that the endpoint is closed, so
/// that whatever happens to a request nobody waits for ever.
pub(crate) struct Promise(Option<Arc<Attempt>>);

impl Promise {
    /// Returns true if nobody waits any more.
    pub(super) fn is_left(&self) -> bool {
        self.0
            .as_ref()
            .is_none_or(|attempt| matches!(lock(&attempt.0).phase, Phase::Left))
    }

    /// The handshake is under way.
    pub(super) fn on_started(&self, connection: &Arc<SharedConnection>, wakes: &mut Vec<Waker>) {
        let Some(attempt) = &self.0 else { return };
        let mut waiting = lock(&attempt.0);
        if let Phase::Asked = waiting.phase {
            waiting.phase = Phase::Started(connection.clone());
            wakes.extend(waiting.waker.take());
        } else {
            drop(waiting);
            connection.close(0, Bytes::new());
        }
    }

    /// The handshake is over. Where nobody waits any more the outcome is dropped, which closes it.
    pub(super) fn keep(mut self, outcome: Outcome, wakes: &mut Vec<Waker>) {
        if let Some(attempt) = self.0.take() {
            wakes.extend(attempt.on_over(outcome));
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        let attempt = self.0.take();
        let waker = attempt.and_then(|attempt| attempt.on_over(Err(ConnectError::EndpointClosed)));
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests;
