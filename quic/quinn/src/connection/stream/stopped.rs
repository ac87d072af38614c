//! Waits for the end of a stream by the peer.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Wake, Waker},
};

use crate::{Connection, StoppedError, VarInt, connection::with};

/// How the peer ended a stream: the code of its STOP_SENDING, or `None` if it has everything.
type End = Result<Option<VarInt>, StoppedError>;

/// All waits for the end of one stream. hybriq wakes one task for a stream; this wakes them all.
#[derive(Default)]
pub(super) struct Waits(Mutex<State>);

#[derive(Default)]
struct State {
    wakers: Vec<Waker>,
    end: Option<End>,
}

impl Waits {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the end if it is known, and registers the task otherwise.
    fn poll(&self, cx: &Context<'_>) -> Poll<End> {
        let mut state = self.lock();
        if let Some(end) = &state.end {
            return Poll::Ready(end.clone());
        }
        if !state.wakers.iter().any(|it| it.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Wake for Waits {
    fn wake(self: Arc<Self>) {
        let wakers = std::mem::take(&mut self.lock().wakers);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Waits until the peer has ended the stream.
pub(super) async fn stopped(
    connection: Connection,
    stream: hybriq::StreamId,
    waits: Arc<Waits>,
) -> End {
    let mut ended = pin!(async {
        match with!(connection, |it| it.stream_stopped(stream).await) {
            Some(Ok(code)) => Ok(code.map(VarInt::of_wire)),
            Some(Err(error)) => Err(error.into()),
            None => Err(StoppedError::ZeroRttRejected),
        }
    });
    let waker = Waker::from(waits.clone());
    poll_fn(|cx| {
        if let Poll::Ready(end) = waits.poll(cx) {
            return Poll::Ready(end);
        }
        match ended.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(end) => {
                waits.lock().end.get_or_insert(end.clone());
                waits.clone().wake();
                Poll::Ready(end)
            }
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
