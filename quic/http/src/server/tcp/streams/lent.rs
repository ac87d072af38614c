//! TCP streams that are lent to a service after an upgrade, and can be taken back.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that hyper uses, and passes to the service after an HTTP/1.1 upgrade. It fails once its [`Lender`] is
/// dropped.
pub(in crate::server::tcp) struct Lent<S>(Arc<Loan<S>>);

/// The other end of a [`Lent`] stream: dropping it closes the stream, whoever holds it.
pub(in crate::server::tcp) struct Lender<S>(Arc<Loan<S>>);

/// A stream whose other end may be gone.
pub(in crate::server::tcp) trait Line: Send + Sync {
    /// Returns true if the other end has closed it, even after unread data.
    fn is_gone(&self) -> bool;
}

/// A stream that may hold written data that was not sent.
pub(in crate::server::tcp) trait Buffered:
    AsyncRead + AsyncWrite + Unpin
{
    /// Returns true if data that was written waits for room in the socket.
    fn has_unsent(&self) -> bool;

    /// Returns true if the other end has closed the stream, even after unread data.
    fn is_gone(&self) -> bool;
}

struct Loan<S>(Mutex<State<S>>);

struct State<S> {
    /// Taken when either end is dropped.
    stream: Option<S>,
    /// Tasks that wait to read and to write.
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// The task that sends what the service has written, once it has the stream.
    sender: Option<Waker>,
}

/// Lends a stream.
pub(in crate::server::tcp) fn lend<S>(stream: S) -> (Lent<S>, Lender<S>) {
    let loan = Arc::new(Loan(Mutex::new(State {
        stream: Some(stream),
        reader: None,
        writer: None,
        sender: None,
    })));
    (Lent(loan.clone()), Lender(loan))
}

impl<S> Loan<S> {
    fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the stream, and wakes all tasks that wait for it.
    fn end(&self) {
        let mut state = self.lock();
        let stream = state.stream.take();
        let wakers = [
            state.reader.take(),
            state.writer.take(),
            state.sender.take(),
        ];
        drop(state);
        drop(stream);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

impl<S: Buffered + Send> Line for Loan<S> {
    fn is_gone(&self) -> bool {
        let state = self.lock();
        state.stream.as_ref().is_some_and(S::is_gone)
    }
}

impl<S: Buffered + Send + 'static> Lender<S> {
    /// Returns the stream, to check whether its other end is gone.
    pub(in crate::server::tcp) fn line(&self) -> Weak<dyn Line> {
        let line: Weak<Loan<S>> = Arc::downgrade(&self.0);
        line
    }
}

impl<S: Buffered> Lender<S> {
    /// Returns true if data that was written waits for room in the socket.
    pub(in crate::server::tcp) fn has_unsent(&self) -> bool {
        let state = self.0.lock();
        state.stream.as_ref().is_some_and(S::has_unsent)
    }

    /// Sends the end of the stream, if there is room for it.
    pub(in crate::server::tcp) fn finish(&self) {
        if let Some(stream) = &mut self.0.lock().stream {
            let mut cx = Context::from_waker(Waker::noop());
            // Whoever has lent the stream drops it next.
            let _ = Pin::new(stream).poll_shutdown(&mut cx);
        }
    }

    /// Waits until the stream is returned. Until then, sends what the service has written, even if the service
    /// neither flushes nor writes again.
    pub(in crate::server::tcp) async fn returned(&self) {
        std::future::poll_fn(|cx| self.poll_returned(cx)).await;
    }

    fn poll_returned(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        let State { stream, sender, .. } = &mut *state;
        let Some(stream) = stream else {
            return Poll::Ready(());
        };
        let replaced = set(sender, cx);
        let sent = if stream.has_unsent() {
            Pin::new(stream).poll_flush(cx)
        } else {
            Poll::Pending
        };
        let writer = sent.is_ready().then(|| state.writer.take()).flatten();
        drop(state);
        drop(replaced);
        // The stream tells only one task that it has room.
        writer.into_iter().for_each(Waker::wake);
        match ready!(sent) {
            Ok(()) => Poll::Pending,
            // The client accepts nothing, or is gone.
            Err(_) => Poll::Ready(()),
        }
    }
}

impl<S: Buffered> Lent<S> {
    fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        side: impl FnOnce(&mut State<S>) -> &mut Option<Waker>,
        act: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let mut state = self.0.lock();
        let Some(stream) = &mut state.stream else {
            let ended = "the server has ended the connection";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, ended)));
        };
        let polled = act(Pin::new(stream), cx);
        let sender = if stream.has_unsent() {
            state.sender.take()
        } else {
            None
        };
        let replaced = if polled.is_pending() {
            set(side(&mut state), cx)
        } else {
            None
        };
        drop(state);
        drop(replaced);
        sender.into_iter().for_each(Waker::wake);
        polled
    }
}

/// Records the waiting task. Returns the previous waker, to be dropped without the lock.
fn set(waker: &mut Option<Waker>, cx: &Context<'_>) -> Option<Waker> {
    match waker {
        Some(waker) if waker.will_wake(cx.waker()) => None,
        waker => waker.replace(cx.waker().clone()),
    }
}

impl<S: Buffered> AsyncRead for Lent<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = |stream: Pin<&mut S>, cx: &mut Context<'_>| stream.poll_read(cx, buffer);
        self.poll(cx, |state| &mut state.reader, read)
    }
}

impl<S: Buffered> AsyncWrite for Lent<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let write = |stream: Pin<&mut S>, cx: &mut Context<'_>| stream.poll_write(cx, data);
        self.poll(cx, |state| &mut state.writer, write)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write =
            |stream: Pin<&mut S>, cx: &mut Context<'_>| stream.poll_write_vectored(cx, data);
        self.poll(cx, |state| &mut state.writer, write)
    }

    fn is_write_vectored(&self) -> bool {
        let state = self.0.lock();
        state.stream.as_ref().is_some_and(S::is_write_vectored)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(cx, |state| &mut state.writer, S::poll_flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(cx, |state| &mut state.writer, S::poll_shutdown)
    }
}

impl<S> Drop for Lent<S> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl<S> Drop for Lender<S> {
    fn drop(&mut self) {
        self.0.end();
    }
}
