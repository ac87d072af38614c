use std::{
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;

use super::{
    cell::{Cell, Handle},
    waiters::{lock, set_waker},
};
use crate::{error::ConnectError, handshake::Handshake};

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
    Started(Arc<Cell>),
    /// The handshake is over.
    Over(Outcome),
    /// Nobody waits any more.
    Left,
}

impl Attempt {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Waiting {
            phase: Phase::Asked,
            waker: None,
        })))
    }

    /// Nobody waits any more: an unfinished handshake is given up.
    pub(crate) fn leave(&self) {
        let phase = std::mem::replace(&mut lock(&self.0).phase, Phase::Left);
        if let Phase::Started(cell) = phase {
            cell.close(0, Bytes::new());
        }
    }

    /// The outcome, handed out once.
    pub(crate) fn poll(&self, cx: &Context<'_>) -> Poll<Outcome> {
        let mut waiting = lock(&self.0);
        match std::mem::replace(&mut waiting.phase, Phase::Left) {
            Phase::Over(outcome) => Poll::Ready(outcome),
            Phase::Left => Poll::Ready(Err(ConnectError::EndpointClosed)),
            phase => {
                waiting.phase = phase;
                set_waker(&mut waiting.waker, cx);
                Poll::Pending
            }
        }
    }

    pub(super) fn is_left(&self) -> bool {
        matches!(lock(&self.0).phase, Phase::Left)
    }

    pub(super) fn on_started(&self, cell: &Arc<Cell>) {
        let mut waiting = lock(&self.0);
        if let Phase::Asked = waiting.phase {
            waiting.phase = Phase::Started(cell.clone());
        } else {
            drop(waiting);
            cell.close(0, Bytes::new());
        }
    }

    /// Hands over the outcome. Where nobody waits any more it is dropped, which closes it.
    pub(crate) fn on_over(&self, outcome: Outcome, wakes: &mut Vec<Waker>) {
        let mut waiting = lock(&self.0);
        wakes.extend(waiting.waker.take());
        if matches!(waiting.phase, Phase::Left) {
            drop(waiting);
            drop(outcome);
        } else {
            waiting.phase = Phase::Over(outcome);
        }
    }
}
