//! Response data over TCP that was not sent yet.

use std::{
    cell::RefCell,
    io::IoSlice,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::{Buf, Bytes};
use futures_util::task::AtomicWaker;
use pin_project_lite::pin_project;

use crate::{limits::Patience, upgrade::Rest};

thread_local! {
    /// The response that the task being polled has begun.
    static BEGUN: RefCell<Option<Arc<Response>>> = const { RefCell::new(None) };
}

/// Data of a response, from the body to the connection.
#[derive(Debug, Default)]
pub(super) struct Response {
    /// Bytes that the body yielded and that were not sent.
    held: AtomicU64,
    /// Bytes that were sent.
    sent: AtomicU64,
    /// The body, if it waits until everything is sent.
    body: AtomicWaker,
    /// The task that sends the response over HTTP/2.
    task: AtomicWaker,
    task_state: AtomicTaskState,
    seen: Mutex<Option<Seen>>,
    /// Of a request with a body, or a route with its own time.
    patience: Option<Arc<Patience>>,
}

/// Whether a task sends the response, and whether it is told to end.
#[derive(Debug, Default)]
struct AtomicTaskState {
    lives: AtomicBool,
    ends: AtomicBool,
}

/// What the watch saw when data first made no progress.
#[derive(Clone, Copy, Debug)]
struct Seen {
    progress: u64,
    since: Instant,
}

/// What became of the data of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    All,
    /// The client accepts nothing of it.
    Ended,
}

/// Data that counts as held until it is sent or dropped.
#[derive(Debug)]
pub(super) struct Held<D: Buf> {
    data: D,
    response: Arc<Response>,
}

impl Response {
    pub(super) fn new(patience: Option<Arc<Patience>>) -> Self {
        Self {
            patience,
            ..Self::default()
        }
    }

    /// Tells the task that polls this about the response.
    pub(super) fn tell_task(response: &Arc<Self>) {
        response.task_state.lives.store(true, Ordering::Release);
        BEGUN.set(Some(response.clone()));
    }

    /// Returns true if a task sends the response, so that it can be ended alone.
    pub(super) fn has_task(&self) -> bool {
        self.task_state.lives.load(Ordering::Acquire)
    }

    /// Returns the bytes that the body yielded and that were not sent.
    pub(super) fn held(&self) -> u64 {
        self.held.load(Ordering::Acquire)
    }

    /// Returns true if data has waited for this time, or that of its route, and nothing was sent or has arrived.
    pub(super) fn has_stalled(&self, now: Instant, time: Duration) -> bool {
        let patience = self.patience.as_ref();
        let time = patience.map_or(Some(time), |patience| patience.time());
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(time) = time.filter(|_| self.held() > 0) else {
            *seen = None;
            return false;
        };
        let arrived = patience.map_or(0, |patience| patience.progress());
        let progress = self.sent.load(Ordering::Acquire).wrapping_add(arrived);
        match *seen {
            Some(before) if before.progress == progress => {
                now.saturating_duration_since(before.since) >= time
            }
            _ => {
                *seen = Some(Seen {
                    progress,
                    since: now,
                });
                false
            }
        }
    }

    /// Ends the task that sends the response, which resets its stream. Returns false if there is none.
    pub(super) fn end(&self) -> bool {
        let state = &self.task_state;
        if !self.has_task() || state.ends.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.task.wake();
        true
    }

    /// Waits until all data was sent, or the response is ended.
    pub(super) fn poll_sent(&self, cx: &mut Context<'_>) -> Poll<Sent> {
        self.body.register(cx.waker());
        if self.held() == 0 {
            Poll::Ready(Sent::All)
        } else if self.task_state.ends.load(Ordering::Acquire) {
            Poll::Ready(Sent::Ended)
        } else {
            Poll::Pending
        }
    }

    fn on_sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::AcqRel);
        if let Some(patience) = &self.patience {
            patience.on_progress();
        }
        self.let_go(bytes);
    }

    fn let_go(&self, bytes: usize) {
        let before = self.held.fetch_sub(bytes as u64, Ordering::AcqRel);
        if bytes > 0 && before == bytes as u64 {
            self.body.wake();
        }
    }
}

impl<D: Buf> Held<D> {
    pub(super) fn new(data: D, response: &Arc<Response>) -> Self {
        let bytes = data.remaining() as u64;
        response.held.fetch_add(bytes, Ordering::AcqRel);
        Self {
            data,
            response: response.clone(),
        }
    }
}

impl<D: Buf> Buf for Held<D> {
    fn remaining(&self) -> usize {
        self.data.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.data.chunk()
    }

    fn chunks_vectored<'a>(&'a self, target: &mut [IoSlice<'a>]) -> usize {
        self.data.chunks_vectored(target)
    }

    fn advance(&mut self, bytes: usize) {
        self.data.advance(bytes);
        self.response.on_sent(bytes);
    }

    fn copy_to_bytes(&mut self, len: usize) -> Bytes {
        let bytes = self.data.copy_to_bytes(len);
        self.response.on_sent(len);
        bytes
    }
}

impl<D: Buf> Drop for Held<D> {
    fn drop(&mut self) {
        self.response.let_go(self.data.remaining());
    }
}

pin_project! {
    /// The task of an HTTP/2 request. It ends, and its stream is reset, when the client accepts nothing of the
    /// response.
    pub(super) struct Sending<F, G> {
        #[pin]
        future: F,
        begun: Begun,
        // Counts until the task ends.
        guard: G,
    }
}

/// The response of a task, once it has begun.
#[derive(Default)]
struct Begun(Option<Arc<Response>>);

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some(response) = &self.0 {
            response.task_state.lives.store(false, Ordering::Release);
        }
    }
}

impl<F, G> Sending<F, G> {
    pub(super) fn new(future: F, guard: G) -> Self {
        Self {
            future,
            begun: Begun::default(),
            guard,
        }
    }
}

impl<F: Future, G> Future for Sending<F, G> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        let Begun(begun) = this.begun;
        if begun.is_some() {
            let polled = this.future.poll(cx).map(drop);
            let ends = |response: &Arc<Response>| response.task_state.ends.load(Ordering::Acquire);
            // A body that is waited for has ended it already.
            return if begun.as_ref().is_some_and(ends) {
                Poll::Ready(())
            } else {
                polled
            };
        }
        BEGUN.take();
        let polled = this.future.poll(cx).map(drop);
        // A response that was refused below may have left it.
        Rest::agreed();
        *begun = BEGUN.take();
        if let Some(response) = begun {
            response.task.register(cx.waker());
        }
        polled
    }
}
