//! A connection at each of its stages, for code that does not wait.

use std::{
    fmt,
    future::poll_fn,
    net::SocketAddr,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    task::{Context, Poll, Waker},
};

use hybriq::tls::EarlyData;

use crate::ConnectionError;

/// What the handles of a connection share.
///
/// quinn starts a connection where it is asked for one; a worker of hybriq starts it a little later. Between
/// [`Connecting::into_0rtt`](crate::Connecting::into_0rtt) and that moment there is no connection yet.
pub(crate) struct Inner {
    remote: Option<SocketAddr>,
    early: OnceLock<hybriq::EarlyConnection>,
    established: OnceLock<hybriq::Connection>,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    /// Tasks that wait for the next stage.
    wakers: Vec<Waker>,
    /// Reason why there is no next stage.
    failed: Option<ConnectionError>,
    /// Close that was asked for before there was a connection.
    close: Option<(u64, Vec<u8>)>,
}

/// Stage of a connection.
pub(crate) enum At<'a> {
    /// The handshake is complete.
    Established(&'a hybriq::Connection),
    /// The handshake is in progress.
    Early(&'a hybriq::EarlyConnection),
    /// There is no connection yet, or none any more for this reason.
    Nowhere(Option<ConnectionError>),
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner")
            .field("connection", &self.established.get())
            .finish_non_exhaustive()
    }
}

impl Inner {
    pub(crate) fn established(connection: hybriq::Connection) -> Self {
        let inner = Self::starting(None);
        let _ = inner.established.set(connection);
        inner
    }

    pub(super) fn starting(remote: Option<SocketAddr>) -> Self {
        Self {
            remote,
            early: OnceLock::new(),
            established: OnceLock::new(),
            pending: Mutex::default(),
        }
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the address that the connection was started to.
    pub(super) fn remote(&self) -> SocketAddr {
        self.remote.unwrap_or_else(|| ([0, 0, 0, 0], 0).into())
    }

    /// Returns the stage of the connection.
    pub(crate) fn at(&self) -> At<'_> {
        if let Some(connection) = self.established.get() {
            return At::Established(connection);
        }
        match self.early.get() {
            Some(connection) => At::Early(connection),
            None => At::Nowhere(self.pending().failed.clone()),
        }
    }

    /// Returns the connection if its handshake is complete.
    pub(crate) fn complete(&self) -> Option<&hybriq::Connection> {
        self.established.get()
    }

    /// Waits until there is a connection.
    pub(super) async fn started(&self) -> Result<(), ConnectionError> {
        poll_fn(|cx| match self.at() {
            At::Nowhere(_) => self.poll_next(cx, |inner| !matches!(inner.at(), At::Nowhere(_))),
            At::Established(_) | At::Early(_) => Poll::Ready(Ok(())),
        })
        .await
    }

    /// Waits until the handshake is complete.
    pub(crate) fn poll_complete(
        &self,
        cx: &Context<'_>,
    ) -> Poll<Result<&hybriq::Connection, ConnectionError>> {
        if self.established.get().is_none() {
            match self.poll_next(cx, |inner| inner.established.get().is_some()) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        match self.established.get() {
            Some(connection) => Poll::Ready(Ok(connection)),
            None => Poll::Pending,
        }
    }

    /// Registers the task for the next stage, unless it has come or never will.
    pub(super) fn poll_next(
        &self,
        cx: &Context<'_>,
        has_come: impl FnOnce(&Self) -> bool,
    ) -> Poll<Result<(), ConnectionError>> {
        let mut pending = self.pending();
        if let Some(error) = &pending.failed {
            return Poll::Ready(Err(error.clone()));
        }
        if !pending.wakers.iter().any(|it| it.will_wake(cx.waker())) {
            pending.wakers.push(cx.waker().clone());
        }
        drop(pending);
        // The stage may have changed before the task was registered.
        if has_come(self) {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    /// Closes the connection, as soon as there is one.
    pub(super) fn close(&self, code: u64, reason: &[u8]) {
        match self.at() {
            At::Established(connection) => connection.close(code, reason),
            At::Early(connection) => connection.close(code, reason),
            At::Nowhere(Some(_)) => {}
            At::Nowhere(None) => {
                self.pending().close = Some((code, reason.to_vec()));
                self.fail(ConnectionError::LocallyClosed);
                // The connection may have started meanwhile.
                self.close_if_asked();
            }
        }
    }

    fn close_if_asked(&self) {
        if matches!(self.at(), At::Nowhere(_)) {
            return;
        }
        let close = self.pending().close.take();
        if let Some((code, reason)) = close {
            self.close(code, &reason);
        }
    }

    fn wake(&self) {
        let wakers = std::mem::take(&mut self.pending().wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn fail(&self, error: ConnectionError) {
        self.pending().failed.get_or_insert(error);
        self.wake();
    }

    fn move_to(&self, set: impl FnOnce(&Self)) {
        set(self);
        self.close_if_asked();
        self.wake();
    }

    /// Follows a handshake to its end. Returns whether data that was sent before that has arrived.
    pub(super) async fn follow(&self, connecting: hybriq::Connecting) -> bool {
        let outcome = match connecting.early().await {
            Ok(early) => {
                self.move_to(|it| {
                    let _ = it.early.set(early.clone());
                });
                early.complete().await
            }
            // Without a ticket, what is written waits for the end of the handshake, and arrives.
            Err(connecting) => connecting.await.map(|it| (it, EarlyData::Accepted)),
        };
        match outcome {
            Ok((connection, early_data)) => {
                self.move_to(|it| {
                    let _ = it.established.set(connection);
                });
                early_data != EarlyData::Rejected
            }
            Err(error) => {
                self.fail(error.into());
                false
            }
        }
    }
}
