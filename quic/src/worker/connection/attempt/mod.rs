//! Connections that a task waits for, from the request to the end of the handshake.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use hybriq_proto::events::agreement::Handshake;

use super::{Handle, SharedConnection};
use crate::{
    errors::ConnectError,
    sync::{
        Mutex,
        waiters::{lock, set_waker},
    },
};

/// A connection that a task waits for, from the request to the end of its handshake.
pub(crate) struct Attempt(Mutex<Waiting>);

struct Waiting {
    phase: Phase,
    waker: Option<Waker>,
    departure: Departure,
}

/// Time at which a client's first flight is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// At once.
    Now,
    /// With the first data, or when the application waits for something, if the connection may
    /// carry early data.
    WithData,
}

/// A handle of the connection and the result of its handshake, or the error that ended it.
pub(crate) type Outcome = Result<(Handle, Arc<Handshake>), ConnectError>;

enum Phase {
    /// The worker has not seen the request yet.
    Asked,
    /// The handshake is in progress.
    Started(Arc<SharedConnection>),
    /// The handshake is over.
    Over(Outcome),
    /// The handshake is over, and the connection was handed out.
    HandedOut,
    /// The task no longer waits.
    Left,
}

impl Attempt {
    pub(crate) fn new(departure: Departure) -> (Arc<Self>, Promise) {
        let attempt = Arc::new(Self(Mutex::new(Waiting {
            phase: Phase::Asked,
            waker: None,
            departure,
        })));
        (attempt.clone(), Promise(Some(attempt)))
    }

    /// Ends the wait. An unfinished handshake is given up.
    pub(crate) fn leave(&self) {
        let phase = std::mem::replace(&mut lock(&self.0).phase, Phase::Left);
        if let Phase::Started(connection) = phase {
            connection.close(0, Bytes::new());
        }
    }

    /// Ends the wait, and leaves the connection to the remaining handles.
    pub(crate) fn forget(&self) {
        let phase = std::mem::replace(&mut lock(&self.0).phase, Phase::Left);
        drop(phase);
    }

    /// Returns a handle of the connection once it exists, if it may carry early data. Returns `None`
    /// if it may not, or if the handshake is over.
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

    /// Returns the outcome. The connection is handed out once; an error is returned at each call.
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
                let started = match &phase {
                    Phase::Started(connection) => Some(connection.clone()),
                    _ => None,
                };
                waiting.phase = phase;
                waiting.departure = Departure::Now;
                let replaced = set_waker(&mut waiting.waker, cx);
                drop(waiting);
                drop(replaced);
                if let Some(connection) = started {
                    connection.send_first_flight();
                }
                Poll::Pending
            }
        }
    }

    /// Stores the outcome. Returns the waker of the task that waits.
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

/// The worker's side of an [`Attempt`]. If it is dropped before it is kept, the task learns that the
/// endpoint is closed or that the worker failed, so no task waits forever.
pub(crate) struct Promise(Option<Arc<Attempt>>);

impl Promise {
    /// Returns true if the task no longer waits.
    pub(in crate::worker) fn is_left(&self) -> bool {
        self.0
            .as_ref()
            .is_none_or(|attempt| matches!(lock(&attempt.0).phase, Phase::Left))
    }

    /// Returns true if the first flight should wait for data.
    pub(in crate::worker) fn holds_first_flight(&self) -> bool {
        let attempt = self.0.as_ref();
        attempt.is_some_and(|it| lock(&it.0).departure == Departure::WithData)
    }

    /// Stores the connection, whose handshake has begun, and wakes the task.
    pub(in crate::worker) fn on_started(
        &self,
        connection: &Arc<SharedConnection>,
        wakes: &mut Vec<Waker>,
    ) {
        let Some(attempt) = &self.0 else { return };
        let mut waiting = lock(&attempt.0);
        if let Phase::Asked = waiting.phase {
            if waiting.departure == Departure::Now {
                // The task may have begun to wait since the worker asked.
                connection.let_first_flight_go();
            }
            waiting.phase = Phase::Started(connection.clone());
            wakes.extend(waiting.waker.take());
        } else {
            drop(waiting);
            connection.close(0, Bytes::new());
        }
    }

    /// Hands the outcome to the task. If the task no longer waits, the outcome is dropped, which closes
    /// the connection.
    pub(in crate::worker) fn keep(mut self, outcome: Outcome, wakes: &mut Vec<Waker>) {
        if let Some(attempt) = self.0.take() {
            wakes.extend(attempt.on_over(outcome));
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        let Some(attempt) = self.0.take() else { return };
        let error = if std::thread::panicking() {
            ConnectError::Connection(failure::error(failure::PANIC))
        } else {
            ConnectError::EndpointClosed
        };
        let waker = attempt.on_over(Err(error));
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Errors of connections whose worker ended or failed.
pub(in crate::worker) mod failure {
    use bytes::Bytes;
    use hybriq_proto::wire::error::{By, Code, ConnectionError};

    /// Reason for connections whose worker was restarted after a panic.
    pub(in crate::worker) const PANIC: &str = "the worker of the connection failed";

    /// Reason for connections whose worker ended before them, with its runtime.
    pub(in crate::worker) const RUNTIME: &str = "the endpoint's task ended";

    /// Returns the error of connections that a worker left behind.
    pub(in crate::worker) fn error(reason: &'static str) -> ConnectionError {
        ConnectionError::Transport {
            by: By::Local,
            code: Code::INTERNAL_ERROR,
            frame: None,
            violation: None,
            reason: Bytes::from_static(reason.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests;
