//! Stages of a connection: before and after its handshake is complete.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use hybriq_proto::{events::agreement::Handshake, wire::error::ConnectionError};

use super::Connection;
use crate::worker::{Handle, State, WaitFor};

/// Stage of a [`Connection`]: [`Established`], or [`Early`](crate::stage::Early) before the handshake
/// is complete. Functions for connections of both stages are generic over it.
///
/// # Examples
/// ```no_run
/// use hybriq::{Connection, stage::Stage};
///
/// async fn ask<S: Stage>(connection: &Connection<S>) -> Result<(), Box<dyn std::error::Error>> {
///     let mut request = connection.open_uni().await?;
///     request.write_all(b"a request that may be repeated").await?;
///     request.finish();
///     Ok(())
/// }
/// ```
pub trait Stage: sealed::Sealed {
    /// Error of an operation that waits for the connection.
    type Error: From<ConnectionError> + std::error::Error + Send + Sync + 'static;

    /// Name of the handle in `Debug`.
    #[doc(hidden)]
    const HANDLE: &'static str;

    /// Returns the error after the server refused 0-RTT data; `None` if this stage has none.
    #[doc(hidden)]
    fn refused() -> Option<Self::Error>;
}

/// The traits of stages are for this crate alone.
pub(in crate::api) mod sealed {
    pub trait Sealed {}
}

/// The handshake is complete.
#[derive(Clone, Debug)]
pub struct Established(pub(super) Arc<Handshake>);

impl sealed::Sealed for Established {}

impl Stage for Established {
    type Error = ConnectionError;

    const HANDLE: &'static str = "Connection";

    fn refused() -> Option<ConnectionError> {
        None
    }
}

impl<S: Stage> Connection<S> {
    /// Waits until `attempt` is ready.
    pub(super) async fn wait<R>(
        &self,
        what: WaitFor,
        mut attempt: impl FnMut(&mut State) -> Poll<Result<R, ConnectionError>>,
    ) -> Result<R, S::Error> {
        let attempt = |state: &mut State| attempt_at::<S, R>(&self.handle, state, &mut attempt);
        self.handle.wait(what, attempt).await
    }

    /// Calls `attempt`, and registers the task for `what` if the result is not ready.
    pub(super) fn poll<R>(
        &mut self,
        what: WaitFor,
        cx: &Context<'_>,
        attempt: impl FnOnce(&mut State) -> Poll<Result<R, ConnectionError>>,
    ) -> Poll<Result<R, S::Error>> {
        let attempt =
            |handle: &Handle, state: &mut State| attempt_at::<S, R>(handle, state, attempt);
        self.handle.poll(what, cx, attempt)
    }
}

/// Calls `attempt`, unless the handle belongs to 0-RTT data that the server refused.
fn attempt_at<S: Stage, R>(
    handle: &Handle,
    state: &mut State,
    attempt: impl FnOnce(&mut State) -> Poll<Result<R, ConnectionError>>,
) -> Poll<Result<R, S::Error>> {
    match S::refused().filter(|_| handle.check(state).is_err()) {
        Some(refused) => Poll::Ready(Err(refused)),
        None => attempt(state).map_err(S::Error::from),
    }
}
