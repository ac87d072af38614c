//! Waits for the sending end of a stream, for callers that have its id.

use std::task::{Context, Poll};

use hybriq_proto::owners::streams::{self, StreamId};

use crate::{
    errors::WriteError,
    worker::{Ended, Handle, State, set_waker},
};

/// Returns the room of a stream's send buffer once it has at least this much.
pub(crate) fn poll_room(
    handle: &Handle,
    id: StreamId,
    least: usize,
    cx: &Context<'_>,
) -> Poll<Result<usize, WriteError>> {
    let mut state = handle.lock_stream()?;
    if let Some(error) = &state.closed {
        return Poll::Ready(Err(error.clone().into()));
    }
    match state.core.streams().room(id, least) {
        Ok(room) => Poll::Ready(Ok(room)),
        Err(streams::WriteError::Blocked) => {
            let Some(side) = state.sends.get_mut(&id) else {
                return Poll::Ready(Err(WriteError::Closed));
            };
            let replaced = set_waker(&mut side.writer, cx);
            drop(state);
            drop(replaced);
            handle.on_polled(Poll::Pending)
        }
        Err(streams::WriteError::Stopped(code)) => Poll::Ready(Err(WriteError::Stopped(code))),
        Err(_) => Poll::Ready(Err(refusal(&mut state, id))),
    }
}

/// Returns how the peer ended a stream that has a handle, once it is known.
pub(crate) fn poll_stopped(
    handle: &Handle,
    id: StreamId,
    cx: &Context<'_>,
) -> Poll<Result<Option<u64>, WriteError>> {
    let mut state = handle.lock_stream()?;
    if let Poll::Ready(ended) = ended(&mut state, id) {
        return Poll::Ready(ended);
    }
    let Some(side) = state.sends.get_mut(&id) else {
        // The stream no longer has a handle.
        return Poll::Ready(Ok(None));
    };
    let replaced = set_waker(&mut side.watcher, cx);
    drop(state);
    drop(replaced);
    handle.on_polled(Poll::Pending)
}

/// Returns how the peer ended a stream, if that is known.
pub(super) fn ended(state: &mut State, id: StreamId) -> Poll<Result<Option<u64>, WriteError>> {
    if let Ended::Stopped(code) = state.send_ended(id) {
        return Poll::Ready(Ok(Some(code)));
    }
    if state.core.streams().is_send_acknowledged(id) {
        return Poll::Ready(Ok(None));
    }
    match &state.closed {
        Some(error) => Poll::Ready(Err(error.clone().into())),
        None => Poll::Pending,
    }
}

/// Returns why a stream takes no more data, or can no longer be delivered.
pub(super) fn refusal(state: &mut State, id: StreamId) -> WriteError {
    match state.send_ended(id) {
        Ended::No => WriteError::Closed,
        Ended::Stopped(code) => WriteError::Stopped(code),
        Ended::Expired => WriteError::Expired,
    }
}
